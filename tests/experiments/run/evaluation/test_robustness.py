"""Leagues that exploit a frozen agent, and games against past selves and exploiters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import evaluation
from starleague.actor.evaluation import Counts
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.evaluation import robustness
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.processes import league_run
from tests.actor import builders

KEY = jax.random.key(0)


def config_of(**overrides):
  return settings.complete({"init": "imitation"}, overrides)


@pytest.fixture(scope="module")
def parts():
  return registry.make_parts(config_of())


@pytest.fixture(scope="module")
def match():
  """The player with the larger weight wins."""
  return evaluation.make_match(builders.building(), builders.make_policy(follows_z=False), games=4)


@pytest.fixture
def weights(monkeypatch):
  """Makes a folder's weight the integer in the file that stands for it."""
  monkeypatch.setattr(checkpoints, "load_params", lambda path, config: jnp.int32(path.read_text()))
  monkeypatch.setattr(saved_agents, "load", lambda parts, path, agent: (
    jnp.int32((path / "trained").read_text()), 7))


def write(path, value):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(str(value))


def test_exploiters_learn_against_the_frozen_agent_alone(parts):
  found = robustness.exploiting(config_of(seed=5), parts, False, exploiters=3, updates=181)
  assert found.league.composition == "terran:0:0:3:1" and found.learner.updates == 181
  assert found.seed == 5 and found.league.evaluators == 0
  assert found.league.snapshot_steps > 1e15 and found.league.timeout_steps > 1e15
  changed = {key for key, *_ in settings.differences(config_of(seed=5), found)}
  assert changed == {"league.composition", "league.snapshot_steps", "league.timeout_steps",
                     "league.evaluators", "league.seconds", "learner.updates"}


def test_exploiters_may_minimise_the_agents_value_and_pursue_goals(parts):
  found = robustness.exploiting(config_of(), parts, False, 2, 400, minimax=0.5, pursue=True)
  assert (found.league.exploiter_minimax, found.league.exploiter_goals) == (0.5, True)


@pytest.mark.parametrize("key, value, expected", [
  ("cluster.learners", "each", "one"), ("cluster.learner_hosts", 2, 1)])
def test_one_learner_counts_the_updates_of_all_exploiters(parts, key, value, expected):
  source = settings.complete(config_of().to_dict(), {key: value, "cluster.learner": "CPU:4"})
  found = settings.flat(robustness.exploiting(source, parts, False, 2, 400).to_dict())
  assert found[key] == expected and found["cluster.learner"] == "CPU:4"


@pytest.mark.parametrize("chunk, batch, expected", [(16, 64, 16), (16, 24, 8), (7, 64, 1)])
def test_chunks_divide_the_batches_of_the_agents_run(chunk, batch, expected, parts):
  """A run of one agent has no chunks."""
  source = config_of(**{"league.chunk": chunk, "actor.inference_batch": batch})
  found = robustness.exploiting(source, parts, False, 2, 400)
  assert found.league.chunk == expected
  league_run.check(found)


def test_exploiters_meet_no_scripted_player(parts):
  source = config_of(**{"league.scripted": "rusher"})
  assert robustness.exploiting(source, parts, False, 2, 400).league.scripted == ""


def test_exploiters_of_a_run_in_stages_have_one(parts):
  source = settings.complete(config_of().to_dict(), {"learner.stages": 2})
  assert robustness.exploiting(source, parts, False, 2, 400).learner.stages == 1


def test_exploiters_play_the_race_of_a_leagues_main_agent(parts):
  several = parts._replace(races=(1, 2, 3))
  config = config_of(**{"league.composition": "zerg:1:1:2,terran:1:0:0"})
  exploited = robustness.exploiting(config, several, True, 2, 400)
  assert exploited.league.composition == "zerg:0:0:2:1"
  exploited = robustness.exploiting(config, several, False, 2, 400)
  assert exploited.league.composition == "terran:0:0:2:1,zerg:0:0:2:1,protoss:0:0:2:1"


def test_exploiters_meet_all_main_agents_of_the_first_ones_race(parts, tmp_path):
  config = config_of(**{"league.composition": "terran:3:1:0,zerg:1:0:0"})
  exploited = robustness.exploiting(config, parts, True, 2, 400, mixture=True)
  assert exploited.league.composition == "terran:0:0:2:3"
  source, run_dir = tmp_path / "source", tmp_path / "exploited"
  settings.save(config, source)

  def save(folder, value, step=0):
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  for number, name in enumerate(("terran-main-0", "terran-main-1", "terran-main-2", "zerg-main-0")):
    folder = run_files.learner_dir(source, name) / run_files.CHECKPOINTS
    save(folder / f"{3:012d}", 5.0 + number, 3)
  save(source / run_files.INITIAL, 1.0)
  (source / run_files.LIBRARY).write_bytes(b"z")
  robustness.freeze(parts, source, exploited, run_dir)
  folder = run_files.snapshot_path(run_dir, "terran-main-0-0000").parent
  assert {path.name: checkpoints.load_params(path, parts.config)["m"]["w"][0]
          for path in folder.iterdir()} == {
    "terran-main-0-0000": 5.0, "terran-main-1-0000": 6.0, "terran-main-2-0000": 7.0}


@pytest.mark.parametrize("composition, race, value", [
  ("zerg:1:1:0,protoss:1:1:0", "zerg", 5.0), ("protoss:1:1:0,zerg:1:1:0", "protoss", 6.0)])
def test_the_frozen_agent_is_the_compositions_first_and_keeps_its_race(
    composition, race, value, parts, tmp_path):
  config = config_of(**{"league.composition": composition})
  source, run_dir = tmp_path / "source", tmp_path / "exploited"
  settings.save(config, source)

  def save(folder, value, step=0):
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  for name, weight in (("zerg-main-0", 5.0), ("protoss-main-0", 6.0)):
    save(run_files.learner_dir(source, name) / run_files.CHECKPOINTS / f"{3:012d}", weight, 3)
  save(source / run_files.INITIAL, 1.0)
  (source / run_files.LIBRARY).write_bytes(b"z")
  exploited = robustness.exploiting(config, parts._replace(races=(1, 2, 3)), True, 2, 400)
  robustness.freeze(parts, source, exploited, run_dir)
  frozen = run_files.snapshot_path(run_dir, f"{race}-main-0-0000")
  assert list(frozen.parent.iterdir()) == [frozen]
  assert checkpoints.load_params(frozen, parts.config)["m"]["w"].tolist() == [value, value]
  assert robustness.past_selves(source) == [f"{race}-main-0-0000"]


def test_exploiters_play_each_of_a_mixture_and_its_agents_each_other(
    parts, match, weights, tmp_path):
  config = robustness.exploiting(
    config_of(**{"league.composition": "terran:2:0:0"}), parts, True, 1, 400, mixture=True)
  one, other, exploiter = "terran-main-0-0000", "terran-main-1-0000", "terran-league_exploiter-0"
  write(run_files.snapshot_path(tmp_path, one), 2)
  write(run_files.snapshot_path(tmp_path, other), 4)
  write(run_files.learner_dir(tmp_path, exploiter) / run_files.CHECKPOINTS, 3)
  ended = []
  found = robustness.play_mixture(
    match, parts, config, tmp_path, KEY, unconditional(1, 0), ended.append)
  assert found == {(exploiter, one): Counts(4, 0, 0), (exploiter, other): Counts(0, 0, 4),
                   (one, other): Counts(0, 0, 4)}
  assert ended[-1] == 4 * robustness.mixture_pairs(1, 2) == 12
  # The Nash mixture is the stronger agent alone.
  assert robustness.mixture_exploitability(found) == 0.0


def test_the_exploitability_of_a_cycle_counts_its_agents_equally():
  played = {("a", "b"): Counts(4, 0, 0), ("b", "c"): Counts(4, 0, 0), ("a", "c"): Counts(0, 0, 4)}
  for exploiter, wins in (("e", (4, 2, 0)), ("f", (3, 2, 2))):
    played |= {(exploiter, agent): Counts(won, 0, 4 - won)
               for agent, won in zip("abc", wins, strict=True)}
  assert robustness.mixture_exploitability(played) == pytest.approx((0.75 + 0.5 + 0.5) / 3)
  # Draws are half a win. An agent's share is proportional to the edge between the other two.
  played["b", "c"] = Counts(2, 2, 0)
  mixture = np.array([0.25, 0.5, 0.5]) / 1.25
  expected = max(mixture @ [1, 0.5, 0], mixture @ [0.75, 0.5, 0.5])
  assert robustness.mixture_exploitability(played) == pytest.approx(expected)


def test_an_agent_that_began_with_random_weights_is_refused(parts):
  with pytest.raises(settings.SettingsError, match="'init' of the agent's run must be 'imitation' "
                                                   "or 'pretrained', found 'random'"):
    robustness.exploiting(config_of(init="random"), parts, False, 2, 400)


def test_an_agent_of_games_outside_jax_is_refused(parts):
  config = config_of(**{"environment.name": "sc2", "demonstrations.dataset": "games"})
  with pytest.raises(settings.SettingsError, match="'environment.name': expected .* found 'sc2'"):
    robustness.exploiting(config, parts, False, 2, 400)


@pytest.mark.parametrize("league, races, warm_up", [(True, (1,), 120), (False, (1, 2, 3), 360)])
def test_updates_within_the_warm_up_are_refused(parts, league, races, warm_up):
  """All of them: exploiters would play as their imitator."""
  played = parts._replace(races=races)
  with pytest.raises(settings.SettingsError, match=f"^{warm_up} .* above {warm_up}: .* 60 "):
    robustness.exploiting(config_of(), played, league, 2, warm_up)
  robustness.exploiting(config_of(), played, league, 2, warm_up + 1)


def test_an_agent_is_frozen_once(parts, tmp_path):
  source, run_dir = tmp_path / "source", tmp_path / "exploited"

  def save(folder, value):
    step = int(folder.name) if folder.name.isdecimal() else 0
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  save(source / run_files.CHECKPOINTS / f"{3:012d}", 3.0)
  save(source / run_files.INITIAL, 1.0)
  (source / run_files.LIBRARY).write_bytes(b"z")
  config = robustness.exploiting(config_of(), parts, False, 2, 400)
  robustness.freeze(parts, source, config, run_dir)
  moved = source.rename(tmp_path / "moved")
  robustness.freeze(parts, moved, config, run_dir)
  frozen = run_files.snapshot_path(run_dir, "terran-main-0-0000")
  assert [path.name for path in frozen.parent.iterdir()] == [frozen.name]
  for path, value in ((frozen, 3.0), (run_dir / run_files.INITIAL, 1.0)):
    params = checkpoints.load_params(path, parts.config)
    assert params["m"]["w"].tolist() == [value, value]


@pytest.mark.parametrize("pseudo_probability", [0.0, 0.5])
def test_exploiters_start_from_the_pretrained_weights_of_a_run(
    pseudo_probability, parts, tmp_path):
  """Such a run has no library of its own."""
  source, run_dir = tmp_path / "source", tmp_path / "exploited"
  config = robustness.exploiting(config_of(**{
    "init": "pretrained", "actor.pseudo_probability": pseudo_probability,
    "actor.library": "z.npz" if pseudo_probability else ""}), parts, False, 2, 400)
  league_run.check(config)

  def save(folder, value, step=0):
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  save(source / run_files.CHECKPOINTS / f"{3:012d}", 3.0, 3)
  with pytest.raises(settings.SettingsError, match="source has no 'initial': expected a run that "):
    robustness.freeze(parts, source, config, run_dir)
  save(source / run_files.INITIAL, 1.0)
  robustness.freeze(parts, source, config, run_dir)
  assert sorted(path.name for path in run_dir.iterdir()) == ["initial", "players"]
  for path, value in ((run_files.snapshot_path(run_dir, "terran-main-0-0000"), 3.0),
                      (run_dir / run_files.INITIAL, 1.0)):
    params = checkpoints.load_params(path, parts.config)
    assert params["m"]["w"].tolist() == [value, value]


def test_a_league_of_exploiters_keeps_its_agent(parts, tmp_path):
  """Runs that differ in their seed have equal configs of exploiters."""
  one, other, run_dir = tmp_path / "a" / "mini", tmp_path / "b" / "mini", tmp_path / "exploited"

  def save(folder, value, step=0):
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  for source, value in ((one, 3.0), (other, 4.0)):
    save(source / run_files.CHECKPOINTS / f"{7:012d}", value, 7)
    save(source / run_files.INITIAL, 1.0)
    (source / run_files.LIBRARY).write_bytes(b"z")
  config = robustness.exploiting(config_of(), parts, False, 2, 400)
  robustness.freeze(parts, one, config, run_dir)
  with pytest.raises(UserError) as refused:
    robustness.freeze(parts, other, config, run_dir)
  assert str(refused.value) == (
    f"{run_dir} exploits update 7 of {one}, whose weights are not those that update 7 of {other} "
    "has now: choose another name for the exploiters' run, or remove that one")
  save(one / run_files.CHECKPOINTS / f"{9:012d}", 5.0, 9)
  with pytest.raises(UserError, match=f"update 7 of {one}, whose .* update 9 of {one} has now"):
    robustness.freeze(parts, one, config, run_dir)
  # Earlier versions did not describe the agent.
  earlier = tmp_path / "earlier"
  save(run_files.snapshot_path(earlier, "terran-main-0-0000"), 3.0)
  with pytest.raises(UserError, match=f"{earlier} exploits an agent, whose .* update 7 of"):
    robustness.freeze(parts, other, config, earlier)


def test_exploiters_start_from_the_agents_past(parts, tmp_path):
  source, run_dir = tmp_path / "source", tmp_path / "exploited"
  main = "terran-main-0"

  def save(folder, value, step=0):
    checkpoints.save_params(folder, {"m": {"w": np.full(2, value)}}, parts.config, step)

  assert robustness.middle_self(source) is None  # no league
  settings.save(config_of(), source)
  save(run_files.learner_dir(source, main) / run_files.CHECKPOINTS / f"{3:012d}", 9.0, 3)
  assert robustness.middle_self(source) is None  # the imitator is its only past
  save(source / run_files.INITIAL, 1.0)
  (source / run_files.LIBRARY).write_bytes(b"z")
  for number in (1, 2, 3):
    save(run_files.snapshot_path(source, f"{main}-{number:04d}"), 1.0 + number)
  start = robustness.middle_self(source)
  assert start == f"{main}-0002"
  config = robustness.exploiting(config_of(), parts, True, 2, 400)
  robustness.freeze(parts, source, config, run_dir, start)
  for path, value in ((run_files.snapshot_path(run_dir, f"{main}-0000"), 9.0),
                      (run_dir / run_files.INITIAL, 3.0)):
    assert checkpoints.load_params(path, parts.config)["m"]["w"].tolist() == [value, value]
  assert (run_dir / run_files.LIBRARY).read_bytes() == b"z"


def test_a_main_agent_plays_all_its_past_selves(parts, match, weights, tmp_path):
  assert robustness.past_selves(tmp_path) == []
  settings.save(config_of(), tmp_path)
  run_files.learner_dir(tmp_path, "terran-main-0").mkdir(parents=True)
  write(tmp_path / "trained", 2)
  write(tmp_path / run_files.INITIAL, 0)
  write(run_files.snapshot_path(tmp_path, "terran-main-0-0001"), 2)
  write(run_files.snapshot_path(tmp_path, "terran-main-0-0002"), 3)
  write(run_files.snapshot_path(tmp_path, "terran-main_exploiter-0-0001"), 9)
  ended = []
  found = robustness.play_past(
    match, parts, tmp_path, KEY, unconditional(1, 0), ended.append)
  assert found == {"terran-main-0-0000": Counts(4, 0, 0), "terran-main-0-0001": Counts(0, 4, 0),
                   "terran-main-0-0002": Counts(0, 0, 4)}
  assert ended[-1] == 12 and ended == sorted(ended)


def test_exploiters_play_the_frozen_agent(parts, match, weights, tmp_path):
  config = robustness.exploiting(config_of(), parts, False, 2, 400)
  write(run_files.snapshot_path(tmp_path, "terran-main-0-0000"), 2)
  for number, weight in enumerate((1, 4)):
    folder = run_files.learner_dir(tmp_path, f"terran-league_exploiter-{number}")
    write(folder / run_files.CHECKPOINTS, weight)
  found = robustness.play_exploiters(match, parts, config, tmp_path, KEY, unconditional(1, 0))
  assert found == {"terran-league_exploiter-0": Counts(0, 0, 4),
                   "terran-league_exploiter-1": Counts(4, 0, 0)}


def test_exploiters_with_goals_alone_play_for_their_z(parts, weights, monkeypatch, tmp_path):
  names = ["terran-league_exploiter-0", "terran-league_exploiter-1"]
  drawn_by = {run_files.learner_dir(tmp_path, name): np.array(row, np.float32)
              for name, row in zip(names, ([1, 2], [3, 5]), strict=True)}
  found = unconditional(1, 0)._replace(active=np.array([0.5, 0.25, 0.0, 0.0], np.float32))
  monkeypatch.setattr(robustness.z_source, "of_games", lambda *arguments: found)
  monkeypatch.setattr(robustness.goals, "learnt", lambda shown, folder: drawn_by[folder])
  monkeypatch.setattr(robustness, "_play", lambda match, pairs, key, conditioning_of, on_games: {
    name: conditioning_of(name) for name in pairs})
  write(run_files.snapshot_path(tmp_path, "terran-main-0-0000"), 2)
  for folder in drawn_by:
    write(folder / run_files.CHECKPOINTS, 1)

  def shown(pursue):
    config = robustness.exploiting(config_of(), parts, False, 2, 400, pursue=pursue)
    return robustness.play_exploiters(None, parts, config, tmp_path, KEY, unconditional(1, 0))

  assert all(each.goals is None for each in shown(False).values())
  pursued = shown(True)
  assert sorted(pursued) == names
  for name, goals in zip(names, ([[0, 0], [1, 2]], [[0, 0], [3, 5]]), strict=True):
    assert pursued[name].active.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    assert pursued[name].goals.tolist() == goals
    assert pursued[name].goal.tolist() == [[1, 0]]


def test_players_of_a_league_keep_their_races(parts, weights, monkeypatch, tmp_path):
  """In a game of three races, where those of other games are drawn."""
  match = evaluation.make_match(
    builders.building(), builders.make_policy(follows_z=False), games=16, races=(1, 2, 3))
  races_played = builders.record_races(monkeypatch)
  several, shown = parts._replace(races=(1, 2, 3)), unconditional(1, 0)
  write(tmp_path / "trained", 2)
  write(tmp_path / run_files.INITIAL, 1)
  settings.save(config_of(**{"league.composition": "zerg:1:0:0"}), tmp_path)
  run_files.learner_dir(tmp_path, "zerg-main-0").mkdir(parents=True)
  robustness.play_past(match, several, tmp_path, KEY, shown)
  assert races_played == [{(2, 2)}]
  races_played.clear()
  for league, races in ((True, {"zerg": {(2, 2)}}),
                        (False, {"terran": {(1, 1), (1, 2), (1, 3)},
                                 "zerg": {(2, 1), (2, 2), (2, 3)},
                                 "protoss": {(3, 1), (3, 2), (3, 3)}})):
    config = robustness.exploiting(
      config_of(**{"league.composition": "zerg:1:0:0"}), several, league, 1, 400)
    for race in races:
      write(run_files.snapshot_path(tmp_path, f"{race}-main-0-0000"), 2)
      folder = run_files.learner_dir(tmp_path, f"{race}-league_exploiter-0")
      write(folder / run_files.CHECKPOINTS, 4)
    found = robustness.play_exploiters(match, several, config, tmp_path, KEY, shown)
    assert {name: races_played[i] for i, name in enumerate(found)} == {
      f"{race}-league_exploiter-0": pairs for race, pairs in races.items()}
    races_played.clear()
