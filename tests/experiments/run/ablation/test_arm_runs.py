"""The runs of an ablation: their configs, shared imitators, and their training in turn."""

import sys

import numpy as np
import pytest
from absl import flags

from starleague import agent
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.experiments.configs import mini
from starleague.experiments.configs.ablations import ABLATIONS
from starleague.experiments.run.ablation import arm_runs
from starleague.experiments.run.config import config_flags, settings
from starleague.experiments.run.evaluation import robustness
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.processes import process_runner
from starleague.league import matchmaking
from tests.experiments.run import ablations, libraries

# In the place of `train`: saves a checkpoint of 25 updates, of 40 when it is started again.
_TRAIN = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
(folder / f"{40 if list(folder.iterdir()) or sys.argv[2] == 'once' else 25:012d}").mkdir()
"""


def load(init):
  return mini.get_config(init or "imitation").to_dict()


@pytest.fixture
def runs(tmp_path):
  return ablations.make_runs(tmp_path)


@pytest.fixture
def train(monkeypatch):
  """Replaces the child processes; returns the names of the runs that were started."""
  started = []

  def command(run):
    started.append(run.path.name)
    how = "once" if run.arm.name != "z" else "twice"
    return (sys.executable, "-c", _TRAIN, str(run.path / run_files.CHECKPOINTS), how)

  monkeypatch.setattr(arm_runs, "command", command)
  monkeypatch.setattr(saved_agents, "copy_imitator", lambda source, target: None)
  monkeypatch.setattr(arm_runs, "POLL_S", 0.01)
  return started


def test_arms_precede_the_command_line_which_precedes_the_ablation(runs):
  assert [run.path.name for run in runs] == [
    "noise_3", "plain_3", "z_3", "noise_5", "plain_5", "z_5"]
  for run in runs:
    assert run.config.seed == run.seed
    assert run.config.learner.updates == 40 and run.config.seconds == arm_runs.SECONDS
    assert run.config.learner.entropy == 0.5  # the ablation
    assert run.config.unroll_length == 4  # the command line
    assert run.config.actor.games == 64  # the config file
  assert [run.config.learner.learning_rate for run in runs[:3]] == [1e-2, 1e-2, 1e-4]
  assert [run.config.init for run in runs[:3]] == ["random", "imitation", "imitation"]


def test_the_first_run_of_a_seed_that_imitates_makes_its_imitator(runs, tmp_path):
  def names(imitator):
    return [path and path.name for path in (
      arm_runs.imitator_of(run, runs, imitator) for run in runs)]

  assert names(None) == [None, None, "plain_3", None, None, "plain_5"]
  imitator = tmp_path / "given"
  assert names(imitator) == [None, "given", "given", None, "given", "given"]


@pytest.mark.parametrize("ablation", ABLATIONS.values(), ids=list(ABLATIONS))
def test_the_command_line_of_a_run_gives_its_config(ablation, tmp_path):
  for run in arm_runs.make_runs(ablation, load, {"seed": 7, "actor.games": 96}, tmp_path):
    words = arm_runs.command(run)
    launched = ["league"] if ablation.league else ["train", "--noevaluate"]
    start = ["-m", f"starleague.experiments.{launched[0]}", *launched[1:], "--run", run.path.name,
             "--runs_dir", str(tmp_path)]
    assert list(words[1:1 + len(start)]) == start
    found = flags.FlagValues()
    overrides = {}
    for key, value in settings.flat(settings.complete({}).to_dict()).items():
      overrides[key] = config_flags._DEFINE[type(value)](
        f"config.{key}", None, "", flag_values=found)
    found(["train", *(word for word in words if str(word).startswith("--config."))])
    chosen = {key: flag.value for key, flag in overrides.items() if flag.value is not None}
    assert settings.complete(load(chosen["init"]), chosen).to_dict() == run.config.to_dict()


def test_updates_of_a_league_are_those_of_all_its_players(tmp_path):
  ablation = ABLATIONS["figure3_league"]._replace(updates=4000, of_main=False)
  run = arm_runs.make_runs(ablation, load, {}, tmp_path)[1]
  assert run.updates == 0 and run.budget == run.config.learner.updates == 4000
  for player, steps in (("terran-main-0", (100, 2500)), ("terran-main_exploiter-0", (1499,))):
    for step in steps:
      (run_files.learner_dir(run.path, player) / run_files.CHECKPOINTS / f"{step:012d}").mkdir(
        parents=True)
  assert run.updates == 3999 and not run.finished


def test_updates_of_a_main_agent_exclude_those_of_exploiters(tmp_path):
  run = arm_runs.make_runs(ABLATIONS["figure3_league"], load, {}, tmp_path)[2]
  assert run.arm.name == "exploiters" and run.config.learner.updates == 0
  assert run.updates == 0 and run.budget == run.config.league.main_updates == 1500
  for player, step in (("terran-main-0", 1499), ("terran-league_exploiter-1", 1600)):
    (run_files.learner_dir(run.path, player) / run_files.CHECKPOINTS / f"{step:012d}").mkdir(
      parents=True)
  assert (run.updates, run.all_updates, run.finished) == (1499, 3099, False)
  main = run_files.learner_dir(run.path, "terran-main-0")
  (main / run_files.CHECKPOINTS / f"{1500:012d}").mkdir()
  assert run.finished


def test_exploiters_follow_the_agents_that_they_exploit(tmp_path):
  ablation = ABLATIONS["figure3_league"]._replace(seeds=(3,))
  runs = arm_runs.make_runs(ablation, load, {}, tmp_path)
  exploits = arm_runs.make_exploits(ablation, runs)
  assert [run.path.name for run in exploits] == [
    f"{name}_3_exploited_1500{suffix}" for name in ("main", "main_exploiter", "exploiters")
    for suffix in ("", "_from_past")]
  for run, exploit in zip(np.repeat(np.arange(3), 2), exploits, strict=True):
    run = runs[run]
    assert exploit.from_past == exploit.path.name.endswith("_from_past")
    assert exploit.target is run and exploit.league and exploit.config.seed == 3
    assert exploit.config.league.composition == "terran:0:0:2:1"
    assert exploit.config.learner.updates == exploit.budget == ablation.exploiter_updates == 800
  assert exploits[0].config.to_dict() == exploits[1].config.to_dict()
  assert arm_runs.make_exploits(ABLATIONS["figure3_upgo"], runs) == []


def test_exploiters_of_varied_leagues_meet_all_main_agents(tmp_path):
  ablation = ABLATIONS["personal_objectives"]._replace(seeds=(3,))
  runs = arm_runs.make_runs(ablation, load, {}, tmp_path)
  for exploit in arm_runs.make_exploits(ablation, runs):
    assert exploit.config.league.composition == "terran:0:0:2:3"
    assert not exploit.config.league.objectives and exploit.budget == 400
  races = {"league.composition": "terran:1:0:0,zerg:1:0:0"}
  with pytest.raises(settings.SettingsError, match="all main agents of this ablation must have"):
    arm_runs.make_runs(ablation._replace(overrides=races, arms=ablation.arms[:1]), load, {},
                       tmp_path)


def test_leagues_whose_learners_do_not_share_the_updates_are_refused(tmp_path):
  ablation = ABLATIONS["personal_objectives"]._replace(of_main=False)
  with pytest.raises(settings.SettingsError, match="'cluster.learners' must be 'one' in a league"):
    arm_runs.make_runs(ablation, load, {"cluster.learners": "each"}, tmp_path)


def test_arms_of_games_outside_jax_are_refused(tmp_path):
  chosen = {"environment.name": "sc2", "demonstrations.dataset": "games"}
  with pytest.raises(settings.SettingsError, match="'environment.name': expected .* found 'sc2'"):
    arm_runs.make_runs(ABLATIONS["figure3_upgo"], lambda init: {}, chosen, tmp_path)


def test_an_exploiters_run_begins_with_the_frozen_agent(runs, train, monkeypatch):
  frozen = []
  monkeypatch.setattr(
    robustness, "freeze", lambda parts, source, config, run_dir, start: frozen.append(
      (source.name, run_dir.name, start)))
  monkeypatch.setattr(robustness, "middle_self", lambda run_dir: f"middle of {run_dir.name}")
  exploit = runs[4]._replace(path=runs[4].path.with_name("exploited"), target=runs[4])
  past = exploit._replace(path=exploit.path.with_name("past"), from_past=True)
  arm_runs.train([exploit, past], None, lambda *_: None)
  each = [("plain_5", "exploited", None), ("plain_5", "past", "middle of plain_5")]
  assert frozen == each and train == ["exploited", "past"]
  finished = exploit._replace(league=False)
  (finished.path / run_files.CHECKPOINTS / f"{40:012d}").mkdir(parents=True, exist_ok=True)
  arm_runs.train([finished], None, lambda *_: None)
  assert frozen == [*each, each[0]] and train == ["exploited", "past"]  # compared, not trained


def test_arms_differ_in_one_choice_each(tmp_path):
  for name, key in (("figure3_self_play", "league.matchmaking"),
                    ("figure3_league", "league.composition"),
                    ("figure3_upgo", "learner.upgo_cost"),
                    ("figure3_values", "learner.opponent_values"),
                    ("value_warm_up", "learner.value_warm_up"),
                    ("personal_objectives", "league.objectives")):
    runs = arm_runs.make_runs(ABLATIONS[name]._replace(seeds=(0,)), load, {}, tmp_path)
    changed = {found for run in runs[1:]
               for found, *_ in settings.differences(runs[0].config, run.config)}
    assert changed == {key}


def test_the_last_arm_of_matchmaking_has_half_pfsp_and_half_self_play(tmp_path):
  run = arm_runs.make_runs(ABLATIONS["figure3_self_play"], load, {}, tmp_path)[3]
  rules = matchmaking.SCHEMES[run.config.league.matchmaking]
  assert run.arm.title == "PFSP and self-play"
  assert (rules.pfsp_share, rules.verification_share, rules.past_weighting) == (.5, 0, "squared")


def test_arms_of_the_papers_figure_differ_in_one_choice_each(tmp_path):
  runs = arm_runs.make_runs(ABLATIONS["figure3_human_data"], load, {}, tmp_path)[:4]
  changed = [{key for key, *_ in settings.differences(one.config, other.config)}
             for one, other in zip(runs, runs[1:], strict=False)]
  assert changed[0] - set(settings.flat(mini.FROM_RANDOM)) == {"init"}
  assert changed[1:] == [{"learner.teacher_kl"}, {"actor.pseudo_probability"}]


def test_runs_are_trained_in_turn_and_finished_ones_skipped(runs, train):
  (runs[1].path / run_files.CHECKPOINTS / f"{40:012d}").mkdir(parents=True)
  reported = []
  with pytest.raises(UserError, match="z_3 ended after 25 updates, expected 40; raise"):
    arm_runs.train(runs, None, lambda *report: reported.append(report))
  assert train == ["noise_3", "z_3"]
  assert reported[-1][0] >= 80
  arm_runs.train(runs[:3], None, lambda *report: reported.append(report))
  assert train == ["noise_3", "z_3", "z_3"]
  assert reported[-1] == (120, "z_3")


def test_a_run_with_more_updates_than_the_budget_is_refused_before_any_training(runs, train):
  exploit = runs[4]._replace(path=runs[4].path.with_name("exploited"), target=runs[4])
  for run, key in ((runs[1], "--updates"), (exploit, "--exploiter_updates")):
    more = run.path / run_files.CHECKPOINTS / f"{41:012d}"
    more.mkdir(parents=True)
    with pytest.raises(settings.SettingsError, match=(
        f"{run.path.name}' has 41 updates, expected at most 40; raise {key}, or choose")):
      arm_runs.train([runs[0], run], None, lambda *_: None)
    assert train == []


def test_an_imitator_that_cannot_be_used_is_refused_before_any_training(runs, train, tmp_path):
  imitator = tmp_path / "given"
  for word in ("'z.npz'", "'initial'"):
    with pytest.raises(settings.SettingsError, match=f"given has no {word}: expected a run that"):
      arm_runs.train(runs[:2], imitator, lambda *_: None)
    libraries.save_library(imitator / run_files.LIBRARY)
  weights = {"m": {"w": np.zeros(2)}}
  checkpoints.save_params(imitator / run_files.INITIAL, weights, agent.small())
  with pytest.raises(checkpoints.CheckpointMismatchError, match="preset.*small.*mini"):
    arm_runs.train(runs[:2], imitator, lambda *_: None)
  assert train == []
  arm_runs.train(runs[:1], imitator, lambda *_: None)  # it does not imitate
  assert train == ["noise_3"]


def finish(run, initial):
  """Writes what a finished run has: its config, its initial weights, its last checkpoint."""
  settings.save(run.config, run.path)
  (run.path / run_files.CHECKPOINTS / f"{40:012d}").mkdir(parents=True)
  save_initial(run.path, initial)


def save_initial(path, value):
  checkpoints.save_params(
    path / run_files.INITIAL, {"m": {"w": np.full(2, value)}}, agent.mini())


def test_finished_runs_of_another_config_are_refused_before_any_training(runs, train, tmp_path):
  (runs[1].path / run_files.IMITATED).mkdir(parents=True)
  finish(runs[1], 1.0)
  other = {"unroll_length": 4, "learner.learning_rate": 1e-2, "learner.batch_size": 32}
  changed = arm_runs.make_runs(ablations.ABLATION, lambda init: {"actor": {"games": 64}}, other,
                               tmp_path)
  with pytest.raises(settings.SettingsError, match=(
      "plain_3' was started with learner.batch_size = 16, found 32; .* another --runs_dir.$")):
    arm_runs.train(changed[:2], None, lambda *_: None)
  assert train == []
  arm_runs.train(runs[:2], None, lambda *_: None)
  assert train == ["noise_3"]


def test_runs_of_another_imitator_are_refused_before_any_training(runs, train, tmp_path):
  for name, value in (("one", 1.0), ("other", 2.0)):
    save_initial(tmp_path / name, value)
    libraries.save_library(tmp_path / name / run_files.LIBRARY)
  finish(runs[1], 1.0)
  for imitator, message in ((tmp_path / "other", f"than {tmp_path / 'other'}; give --imitator as"),
                            (tmp_path / "typo", f"than {tmp_path / 'typo'}; give"),
                            (None, "than its own; give --imitator as before")):
    with pytest.raises(settings.SettingsError, match=f"plain_3' was started from .*{message}"):
      arm_runs.train(runs[:2], imitator, lambda *_: None)
  assert train == []
  arm_runs.check_begun(runs[:2], tmp_path / "one")
  # The imitator of a seed may be that of an arm which is left out.
  (runs[1].path / run_files.IMITATED).mkdir()
  finish(runs[2], 1.0)
  arm_runs.check_begun(runs[2:3], None)


def test_a_run_that_dies_is_reported_with_its_log(runs, monkeypatch):
  monkeypatch.setattr(arm_runs, "command", lambda run: (
    sys.executable, "-c", "import sys; sys.exit('no room')"))
  with pytest.raises(process_runner.ProcessFailed, match=(
      "'noise_3' exited with status 1(.|\n)*no room")):
    arm_runs.train(runs, None, lambda *report: None)
