"""Games of entrants whose results are known: each makes as many good actions as its weight."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor.evaluation import Counts
from starleague.common import run_files
from starleague.data.checkpoints.checkpoint_manifest import MANIFEST
from starleague.data.z import conditioning
from starleague.experiments.run.ablation import games
from starleague.experiments.run.config import settings
from starleague.experiments.run.evaluation import robustness
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents, z_source
from tests.actor import builders
from tests.experiments.run import ablations

# Good actions of an entrant: those of its arm, and one for each 1000 MMR of the run's 3000.
WEIGHTS = {"noise": 0, "plain": 1, "z": 2}
ORDERS = np.array([[5, 5], [6, 6], [7, 7], [8, 8]]).repeat(10, axis=1)


def write_checkpoint(run, update, weights="first"):
  folder = run.path / run_files.CHECKPOINTS / f"{update:012d}"
  folder.mkdir(parents=True, exist_ok=True)
  (folder / MANIFEST).write_text(f"step {update}, {weights}")


@pytest.fixture
def runs(tmp_path, monkeypatch):
  runs = ablations.make_runs(tmp_path)
  for run in runs:
    write_checkpoint(run, 40)
  made = registry.make_parts(runs[0].config)
  parts = made._replace(
    policy=builders.make_policy(follows_z=True), mmr=3000,
    compiled=made.compiled._replace(
      environment=builders.building(), scripted=builders.scripted))
  loaded = []

  def load(parts, path, agent):
    assert agent == saved_agents.TRAINED
    loaded.append(path.name)
    return jnp.int32(WEIGHTS[path.name.split("_")[0]]), 40

  monkeypatch.setattr(registry, "make_parts", lambda config: parts)
  monkeypatch.setattr(saved_agents, "load", load)
  monkeypatch.setattr(z_source, "from_library",
                      lambda *_: builders.make_conditioning(ORDERS, 3000))
  return runs, loaded


def test_entrants_play_scripts_and_other_arms_of_their_seed(runs, tmp_path):
  runs, loaded = runs
  reported = []
  found = games.play_games(ablations.ABLATION, runs, [], tmp_path, lambda *x: reported.append(x))
  assert [entrant.name for entrant in found.entrants[:4]] == [
    "noise, seed 3", "plain, seed 3", "z, seed 3", "z, z shown, seed 3"]
  # Scripted players make four good actions.
  for name, counts in (("noise, seed 3", Counts(0, 0, 10)), ("plain, seed 5", Counts(0, 10, 0)),
                       ("z, seed 3", Counts(10, 0, 0)), ("z, z shown, seed 5", Counts(10, 0, 0))):
    for opponent in ("rusher", "builder"):
      assert found.played[name, opponent] == counts
  assert found.played["plain, seed 3", "z, z shown, seed 3"] == Counts(0, 0, 4)
  assert found.played["noise, seed 5", "plain, seed 5"] == Counts(0, 0, 4)
  pairs = [pair for pair in found.played if "seed" in pair[1]]
  assert len(pairs) == 2 * 5 and ("z, seed 3", "z, z shown, seed 3") not in pairs
  # Without z nothing is built. Of four orders, twenty games show about two bits.
  assert found.entropy["z, seed 3"] == found.entropy["noise, seed 5"] == 0.0
  assert 1.0 < found.entropy["z, z shown, seed 3"] <= 2.0
  total = games.count_games(ablations.ABLATION, runs)
  assert total == 2 * 4 * 2 * 10 + 10 * 4 and reported[-1][0] == total


def test_stored_games_are_kept_unless_the_weights_changed(runs, tmp_path):
  runs, loaded = runs
  first = games.play_games(ablations.ABLATION, runs[:3], [], tmp_path, lambda *_: None)
  loaded.clear()
  assert games.play_games(ablations.ABLATION, runs[:3], [], tmp_path, lambda *_: None) == first
  assert loaded == []
  for update, weights in ((41, "first"), (41, "second")):  # trained further, and trained again
    write_checkpoint(runs[1], update, weights)
    games.play_games(ablations.ABLATION, runs[:3], [], tmp_path, lambda *_: None)
    # Its games against scripts and its pairs: with noise, with z, with z that is shown.
    assert loaded == ["plain_3", "noise_3", "plain_3", "plain_3", "z_3", "plain_3", "z_3"]
    loaded.clear()
  path = tmp_path / games.MEASURED
  path.write_text(json.dumps([1]))
  with pytest.raises(settings.SettingsError, match="games.json is not a file of an ablation's"):
    games.play_games(ablations.ABLATION, runs[:3], [], tmp_path, lambda *_: None)


def test_agents_of_leagues_meet_their_past_and_their_exploiters(runs, tmp_path, monkeypatch):
  runs = runs[0][:2]
  exploits = [run._replace(path=run.path.with_name(f"{run.path.name}_exploited{from_past}"),
                           target=run, from_past=from_past)
              for run in runs for from_past in (False, True)]
  past = {"m-0000": Counts(4, 0, 0), "m-0001": Counts(1, 0, 3), "m-0002": Counts(2, 2, 0)}
  exploiters = {"e-0": Counts(0, 0, 4), "e-1": Counts(3, 0, 1)}
  played = []

  def play(found):
    def counts(match, parts, *rest):
      played.append(rest[-4])  # the run's folder, before key, conditioning and progress
      return found
    return counts

  monkeypatch.setattr(robustness, "past_selves", lambda path: list(past))
  monkeypatch.setattr(robustness, "play_past", play(past))
  monkeypatch.setattr(robustness, "play_exploiters", play(exploiters))
  ablation = ablations.ABLATION._replace(league=True, exploiters=2)
  reported: list[tuple] = []
  for _ in range(2):  # the second time nothing is played
    found = games.play_games(ablation, runs, exploits, tmp_path, lambda *x: reported.append(x))
    assert played == [run.path for run in (*runs, *exploits)]
    assert found.past == {f"{name}, seed 3": tuple(past.values()) for name in ("noise", "plain")}
    assert found.exploited == {
      f"{name}, seed 3": 2 * tuple(exploiters.values()) for name in ("noise", "plain")}
    total = games.count_games(ablation, runs)
    assert total == 2 * 2 * 10 + 4 + 2 * (3 + 4) * 4 and reported[-1][0] == total
  played.clear()
  again = [run._replace(path=run.path.with_name(f"{run.path.name}_again")) for run in exploits]
  exploiters["e-0"] = Counts(4, 0, 0)
  found = games.play_games(ablation, runs, again, tmp_path, lambda *_: None)
  assert played == [run.path for run in again]  # not the games of the exploiters before
  assert found.exploited["plain, seed 3"] == 2 * (Counts(4, 0, 0), Counts(3, 0, 1))


def test_all_main_agents_of_varied_leagues_count(runs, tmp_path, monkeypatch):
  """Their behaviours are measured, and exploiters meet all of them."""
  [run], main = runs[0][1:2], "terran-main-{}"
  config = run.config.copy_and_resolve_references()
  config.league.composition = "terran:2:0:0"
  run = run._replace(config=config)
  settings.save(config, run.path)
  run_files.learner_dir(run.path, main.format(0)).joinpath(
    run_files.CHECKPOINTS, f"{40:012d}").mkdir(parents=True)
  exploits = [run._replace(path=run.path.with_name(f"{run.path.name}_exploited{from_past}"),
                           target=run, from_past=from_past) for from_past in (False, True)]
  loaded = []

  def load(parts, path, agent):
    loaded.append(agent)
    return jnp.int32(1 + (agent == main.format(1))), 40  # the second one makes more good actions

  monkeypatch.setattr(saved_agents, "load", load)
  monkeypatch.setattr(robustness, "past_selves", lambda path: [])
  monkeypatch.setattr(robustness, "play_past", lambda *_: {})
  mixture = {("e", "a"): Counts(3, 0, 1), ("e", "b"): Counts(1, 0, 3), ("a", "b"): Counts(2, 0, 2)}
  monkeypatch.setattr(robustness, "play_mixture", lambda *_: mixture)
  ablation = ablations.ABLATION._replace(league=True, exploiters=1, varied=True)
  reported: list[tuple] = []
  found = games.play_games(ablation, [run], exploits, tmp_path, lambda *x: reported.append(x))
  name = "plain, seed 3"
  assert loaded == [saved_agents.TRAINED, main.format(0), main.format(1)]
  # Both agents stay in one cell; the second one wins all its games against the scripted players.
  assert found.variety == {name: (pytest.approx(1 / 200), 1.0)}
  assert found.mixtures == {name: (mixture, mixture)} and found.exploited == {}
  total = games.count_games(ablation, [run])
  assert total == 2 * 10 + 2 * 2 * 10 + 2 * 3 * 4 and reported[-1][0] == total


@pytest.mark.parametrize("key, value", [("opponents", "rusher"), ("races", "terran")])
def test_arms_of_different_games_cannot_play_each_other(runs, key, value):
  runs, _ = runs
  config = runs[0].config.copy_and_resolve_references()
  config.environment[key] = value
  with pytest.raises(settings.SettingsError, match="one preset, agent, environment.tier, .ra"):
    games.MatchRunner(ablations.ABLATION, [runs[1], runs[0]._replace(config=config)])


def test_the_agent_of_a_league_plays_mirror_matches_of_its_race(runs, tmp_path, monkeypatch):
  """The games have three races; other agents meet all of them."""
  runs = runs[0][1:3]
  settings.save(settings.complete({}, {"league.composition": "zerg:1:0:0"}), runs[1].path)
  run_files.learner_dir(runs[1].path, "zerg-main-0").joinpath(
    run_files.CHECKPOINTS, f"{40:012d}").mkdir(parents=True)
  parts = registry.make_parts(None)._replace(races=(1, 2, 3))
  monkeypatch.setattr(registry, "make_parts", lambda config: parts)
  monkeypatch.setattr(z_source, "from_library",
                      lambda *_: conditioning.unconditional(len(parts.maps), 3000))
  races = builders.record_races(monkeypatch)
  player = games.MatchRunner(ablations.ABLATION, runs)
  one, other = (games.Entrant(run, False) for run in runs)
  player.evaluate(one, lambda _: None)
  assert len(races[-1]) > 3
  player.evaluate(other, lambda _: None)
  player.match((other, one), lambda _: None)
  assert races[1:] == [{(2, 2)}, {(2, 2)}]
