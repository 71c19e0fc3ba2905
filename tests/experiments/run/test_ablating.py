"""The runs of an ablation: their configs, shared imitators, and their training in turn."""

import sys

import pytest
from absl import flags

from starleague.common.errors import UserError
from starleague.experiments.configs import mini
from starleague.experiments.configs.ablations import ABLATIONS
from starleague.experiments.run import ablating, config_flags, processes, settings, wiring
from tests.experiments.run import ablations

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
    return (sys.executable, "-c", _TRAIN, str(run.path / wiring.CHECKPOINTS), how)

  monkeypatch.setattr(ablating, "command", command)
  monkeypatch.setattr(ablating, "copy_imitator", lambda source, target: None)
  monkeypatch.setattr(ablating, "POLL_S", 0.01)
  return started


def test_arms_precede_the_command_line_which_precedes_the_ablation(runs):
  assert [run.path.name for run in runs] == [
    "noise_3", "plain_3", "z_3", "noise_5", "plain_5", "z_5"]
  for run in runs:
    assert run.config.seed == run.seed
    assert run.config.learner.updates == 40 and run.config.seconds == ablating.SECONDS
    assert run.config.learner.entropy == 0.5  # the ablation
    assert run.config.unroll_length == 4  # the command line
    assert run.config.actor.games == 64  # the config file
  assert [run.config.learner.learning_rate for run in runs[:3]] == [1e-2, 1e-2, 1e-4]
  assert [run.config.init for run in runs[:3]] == ["random", "imitation", "imitation"]


def test_the_first_run_of_a_seed_that_imitates_makes_its_imitator(runs, tmp_path):
  def names(given):
    return [path and path.name for path in (
      ablating.imitator_of(run, runs, given) for run in runs)]

  assert names(None) == [None, None, "plain_3", None, None, "plain_5"]
  given = tmp_path / "given"
  assert names(given) == [None, "given", "given", None, "given", "given"]


def test_an_imitator_is_copied_once_and_whole(tmp_path):
  source, target = tmp_path / "source", tmp_path / "target"
  source.mkdir()
  with pytest.raises(settings.SettingsError, match="source has no 'z.npz': expected a run that"):
    ablating.copy_imitator(source, target)
  (source / wiring.LIBRARY).write_bytes(b"z")
  (source / wiring.INITIAL / "params").mkdir(parents=True)
  (source / wiring.INITIAL / "params" / "data").write_bytes(b"weights")
  ablating.copy_imitator(source, target)
  assert (target / wiring.LIBRARY).read_bytes() == b"z"
  assert (target / wiring.INITIAL / "params" / "data").read_bytes() == b"weights"
  (source / wiring.LIBRARY).write_bytes(b"another")
  ablating.copy_imitator(source, target)
  assert (target / wiring.LIBRARY).read_bytes() == b"z"


@pytest.mark.parametrize("ablation", ABLATIONS.values(), ids=list(ABLATIONS))
def test_the_command_line_of_a_run_gives_its_config(ablation, tmp_path):
  for run in ablating.make_runs(ablation, load, {"seed": 7, "actor.games": 96}, tmp_path):
    words = ablating.command(run)
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
  ablation = ABLATIONS["figure3_league"]
  run = ablating.make_runs(ablation, load, {}, tmp_path)[1]
  assert run.updates == 0 and run.config.learner.updates == 4000
  for player, steps in (("terran-main-0", (100, 2500)), ("terran-main_exploiter-0", (1499,))):
    for step in steps:
      (wiring.learner_dir(run.path, player) / wiring.CHECKPOINTS / f"{step:012d}").mkdir(
        parents=True)
  assert run.updates == 3999 and not run.finished


def test_arms_of_leagues_differ_in_one_choice_each(tmp_path):
  for name, key in (("figure3_self_play", "league.matchmaking"),
                    ("figure3_league", "league.composition"),
                    ("figure3_upgo", "learner.upgo_cost"),
                    ("figure3_values", "learner.opponent_values")):
    runs = ablating.make_runs(ABLATIONS[name]._replace(seeds=(0,)), load, {}, tmp_path)
    changed = {found for run in runs[1:]
               for found, *_ in settings.differences(runs[0].config, run.config)}
    assert changed == {key}


def test_arms_of_the_papers_figure_differ_in_one_choice_each(tmp_path):
  runs = ablating.make_runs(ABLATIONS["figure3_human_data"], load, {}, tmp_path)[:4]
  changed = [{key for key, *_ in settings.differences(one.config, other.config)}
             for one, other in zip(runs, runs[1:], strict=False)]
  assert changed[0] - set(settings.flat(mini.FROM_RANDOM)) == {"init"}
  assert changed[1:] == [{"learner.teacher_kl"}, {"actor.pseudo_probability"}]


def test_runs_are_trained_in_turn_and_finished_ones_skipped(runs, train):
  (runs[1].path / wiring.CHECKPOINTS / f"{40:012d}").mkdir(parents=True)
  reported = []
  with pytest.raises(UserError, match="z_3 ended after 25 updates, expected 40; raise"):
    ablating.train(runs, None, lambda *report: reported.append(report))
  assert train == ["noise_3", "z_3"]
  assert reported[-1][0] >= 80
  ablating.train(runs[:3], None, lambda *report: reported.append(report))
  assert train == ["noise_3", "z_3", "z_3"]
  assert reported[-1] == (120, "z_3")


def test_a_run_that_dies_is_reported_with_its_log(runs, monkeypatch):
  monkeypatch.setattr(ablating, "command", lambda run: (
    sys.executable, "-c", "import sys; sys.exit('no room')"))
  with pytest.raises(processes.ProcessFailed, match="'noise_3' exited with status 1(.|\n)*no room"):
    ablating.train(runs, None, lambda *report: None)
