"""Skirmish as the game of a run."""

import types as modules

import jax
import numpy as np
import pytest

from starleague import league
from starleague.agent import types, vocabulary
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables import tiers
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry, skirmish
from starleague.league.ratings.archive import NEVER

MAIN = league.Player("main", league.MAIN, "terran")
SCRIPT = league.Player("rusher", league.SCRIPTED)


def test_parts_are_those_of_the_tier():
  parts = registry.make_parts(settings.complete({}))
  assert parts.maps == (("open",),) and parts.races == (types.RACES.index("terran"),)
  assert parts.opponent_races == parts.races
  assert parts.compiled.grid_per_unit == types.POSITION_GRID / tiers.TIERS["mini"].map_size
  assert skirmish.game_of(parts).tier == "mini"


SMALL = {"preset": "small", "environment.tier": "default", "environment.opponents": "rush",
         "actor.demonstrators": ""}


@pytest.mark.parametrize("races, indices", [
  ("", (1, 3, 2)), ("zerg", (2,)), ("zerg,terran", (2, 1))])
def test_a_run_may_have_fewer_races_than_its_tier(races, indices):
  config = settings.complete({}, {**SMALL, "environment.races": races})
  parts = registry.make_parts(config)
  assert parts.races == parts.opponent_races == indices
  key, known = skirmish.GAME.races(config)
  assert key == ("environment.races" if races else "environment.tier")
  assert [types.RACES.index(race) for race in known] == list(indices)


def test_scripted_players_of_an_evaluator_have_the_races_of_the_run(monkeypatch):
  config = settings.complete({}, {**SMALL, "environment.races": "zerg,protoss"})
  drawn = []

  def record(players, seed, *, match_up, **rest):
    drawn.append(tuple(match_up.races.tolist()))
    return modules.SimpleNamespace(winner=0, steps=10)

  monkeypatch.setattr(replays, "record", record)
  monkeypatch.setattr(replays, "scripted_player", lambda name, game: name)
  arena = skirmish.SkirmishArena(registry.make_parts(config), np.random.default_rng(0))
  zerg, script = league.Player("z", league.MAIN, "zerg"), league.Player("rush", league.SCRIPTED)
  play = arena.match([zerg, script], ["weights", None])
  for game in range(16):
    play(game, lambda: None)
  assert set(drawn) == {(2, 2), (2, 3)}


def test_the_opponents_index_chooses_the_script(monkeypatch):
  """The run's first opponent is another script than the tier's first."""
  monkeypatch.setattr(skirmish.bots, "make_scripted",
                      lambda **sizes: lambda index, key, state, player: index)
  parts = registry.make_parts(settings.complete({}, {
    "environment.opponents": "builder,passive", "actor.demonstrators": "builder"}))
  drawn = [int(parts.compiled.scripted(i, jax.random.key(0), None, 0)) for i in range(2)]
  names = scripts.names_of("mini")
  assert [names[i] for i in drawn] == ["builder", "passive"]


# A game at loop 1200 in which player 0 has built a barracks and a marine, and has killed a unit.
_ORDER = np.zeros((2, 20), np.uint8)
_ORDER[0, :2] = [vocabulary.UNIT_TYPES.index(name) for name in ("Barracks", "Marine")]
GAME = modules.SimpleNamespace(state=modules.SimpleNamespace(
  loop=np.int32(1200), executed=modules.SimpleNamespace(build_order=_ORDER)))


@pytest.mark.parametrize("winner, result", [(0, league.WIN), (1, league.LOSS), (-1, league.DRAW)])
def test_a_match_alternates_sides_and_has_the_first_players_result(
    winner, result, monkeypatch, tmp_path):
  recorded = []

  def record(players, seed, *, game, match_up, predictions, on_step):
    on_step(GAME)
    recorded.append((players, seed, bool(match_up.swap_sides), predictions))
    return modules.SimpleNamespace(winner=winner, steps=10)

  columns = np.zeros((2, 10), np.int32), np.zeros((2, 13), np.int32)
  columns[0][0, [types.PLAYER_COLUMNS.index(name) for name in ("food_army", "army_count")]] = 3, 2
  columns[1][0, types.SCORE_COLUMNS.index("killed_value_units")] = 50
  monkeypatch.setattr(live, "columns", lambda game: columns)
  monkeypatch.setattr(replays, "record", record)
  monkeypatch.setattr(replays, "scripted_player", lambda name, game: name)
  monkeypatch.setattr(replays, "policy_player", lambda name, policy, params, game, mmr: params)
  monkeypatch.setattr(replays, "save", lambda path, replay: path.write_text(f"{replay.steps}"))
  config = settings.complete({}, {"league.replay_predictions": True} if winner else {})
  arena = skirmish.SkirmishArena(registry.make_parts(config), np.random.default_rng(0))
  steps, play = [], arena.match([MAIN, SCRIPT], ["weights", None])
  played = [play(game, lambda: steps.append(1)) for game in range(2)]
  assert [each.result for each in played] == [result] * 2 and len(steps) == 2
  assert [each.behaviours for each in played] == [((0.5, 1.5, 1200), (0.0, 0.0, NEVER))] * 2
  assert [each[0] for each in recorded] == [("weights", "rusher")] * 2
  assert [each[2] for each in recorded] == [False, True] and recorded[0][1] != recorded[1][1]
  assert [each[3] for each in recorded] == [bool(winner)] * 2  # off by default
  played[0].save(tmp_path / "kept.npz")
  assert (tmp_path / "kept.npz").read_text() == "10"
