"""Matches of an agent that is conditioned on strategies, in games that are known."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from starleague.actor import evaluation
from starleague.agent import types, vocabulary
from starleague.common.errors import UserError
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary
from starleague.environments.skirmish.bots import tournament
from starleague.experiments.run.evaluation import strategies
from starleague.viewers import standings
from tests.actor.builders import ACTIONS, building, make_policy

TERRAN = types.RACES.index("terran")
BUILDINGS = [vocabulary.UNIT_TYPES.index(name)
             for name in ("Barracks", "CommandCenter", "Bunker")]


def library(kind: int, sides=(0, 1)) -> StatisticsLibrary:
  """Three z of a strategy, which builds one type only, for each side."""
  empty = types.zeros(types.statistics_spec())
  order = np.full(20, kind, np.uint8)
  return StatisticsLibrary.from_games([
    PlayedGame("first", TERRAN, away, side, empty._replace(build_order=order))
    for side in sides for away in (1, 2, 3)])


def test_each_side_has_z_of_its_strategy():
  kinds = dict(zip(("rush", "macro", "defence"), BUILDINGS, strict=True))
  made = strategies.make(
    {name: library(kind) for name, kind in kinds.items()}, ["first"], TERRAN, 5000, seed=0)
  match = evaluation.make_match(building(), make_policy(follows_z=True), 6)
  ended = []
  fixtures, outcomes = strategies.play(made, match, np.int32(0), jax.random.key(0), ended.append)
  assert made.names == ("rush", "macro", "defence") and ended[-1] == len(fixtures.players) == 18
  built = np.array(list(kinds.values()))[fixtures.players]
  length = min(ACTIONS, tournament.OPENING)
  np.testing.assert_array_equal(
    outcomes.openings[..., :length], np.repeat(built[..., None], length, axis=-1))
  assert (fixtures.races == TERRAN).all() and fixtures.swap_sides.sum() == 9
  assert (outcomes.winner == 2).all()  # players of equal MMR have equally many good actions
  table = standings.standing(made.names, fixtures, outcomes, 0)
  np.testing.assert_array_equal(table.score, 0.5)
  np.testing.assert_array_equal(table.games, 6 * (1 - np.eye(3)))


def test_a_strategy_without_z_for_a_side_is_refused():
  with pytest.raises(UserError, match="strategy 'macro': No z for map first, terran against any, "
                                      "side 1, among 3 games"):
    strategies.make(
      {"rush": library(BUILDINGS[0]), "macro": library(BUILDINGS[1], sides=(0,))}, ["first"],
      TERRAN, 5000, seed=0)


def test_a_player_that_won_no_game_is_refused():
  episodes = SimpleNamespace(name=np.array(["rush", "macro"]), result=np.array([1, -1], np.int8))
  dataset = SimpleNamespace(path="data/strategies", episodes=episodes)
  with pytest.raises(UserError, match="data/strategies: expected games that 'macro' won, found "
                                      "those of rush"):
    strategies.libraries(dataset, ["macro"])
