"""Matches of an agent against itself, each side conditioned on z of another strategy.

Each strategy is a set of z, of games that a scripted player of its name won.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import evaluation
from starleague.agent import types
from starleague.common.errors import UserError
from starleague.data import games
from starleague.data.z.conditioning import Conditioning, with_races
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.environments.skirmish.bots import tournament

PER_PLACE = 32  # z of a strategy for each map and starting side
_NEVER = -1e9  # logarithm of the weight of another strategy's z


class Strategies(NamedTuple):
  """The strategies of an agent."""

  names: tuple[str, ...]
  conditioning: Conditioning  # row i of `goals` draws the z of strategy i


def libraries(dataset: games.GamesDataset, names: Sequence[str]) -> dict[str, StatisticsLibrary]:
  """Returns the z of the games that players of these names won.

  Raises:
    UserError: a player has won no game of the dataset.
  """
  found = {}
  for name in names:
    won = np.flatnonzero((dataset.episodes.name == name) & (dataset.episodes.result > 0))
    if not won.size:
      known = ", ".join(sorted(set(dataset.episodes.name[dataset.episodes.result > 0])))
      raise UserError(f"{dataset.path}: expected games that {name!r} won, found those of {known}")
    found[name] = games.library(dataset, won)
  return found


def make(found: Mapping[str, StatisticsLibrary], maps: Sequence[str], race: int, mmr: int,
         seed: int) -> Strategies:
  """Returns strategies for mirror matches of a race.

  Args:
    found: z of each strategy.
    maps: names of the environment's maps, in its order.
    race: of both players, an index of types.RACES.
    mmr: that the agent observes.
    seed: of the choice of z.

  Raises:
    UserError: a strategy has no z for a map and a starting side.
  """
  random, every = np.random.default_rng(seed), len(types.RACES)
  places = [(index, name, side) for index, name in enumerate(maps) for side in range(2)]
  rows = np.zeros((len(maps), every, every, 2, PER_PLACE * len(found)), np.int32)
  goals = np.full((len(found), 1 + sum(map(len, found.values()))), _NEVER, np.float32)
  first = 1  # row 0 is the unconditional z
  for number, (strategy, library) in enumerate(found.items()):
    goals[number, first:first + len(library)] = 0.0
    columns = slice(PER_PLACE * number, PER_PLACE * (number + 1))
    for index, name, side in places:
      try:
        fitting = random.permutation(library.rows(name, race, None, side))
      except KeyError as error:
        raise UserError(f"strategy {strategy!r}: {error.args[0]}") from error
      rows[index, race, race, side, columns] = first + fitting[np.arange(PER_PLACE) % len(fitting)]
    first += len(library)
  z = jax.tree.map(lambda *x: np.concatenate([np.zeros_like(x[0][:1]), *x]),
                   *(library.z for library in found.values()))
  return Strategies(tuple(found), with_races(Conditioning(
    z, rows, np.ones(len(types.PSEUDO_REWARDS), np.float32), np.asarray(mmr, np.int16),
    goals=goals), (race, race)))


def play(strategies: Strategies, match: evaluation.Evaluator, params: Any, key: jax.Array,
         report: Callable[[int], object]) -> tuple[tournament.Fixture, tournament.Outcomes]:
  """Plays each pair of strategies.

  Args:
    strategies: of the agent.
    match: from `compiled_evaluation.make_match`: the games of a pair.
    params: of the agent.
    key: random key; equal keys give equal games.
    report: called with the number of games that have ended.

  Returns:
    The games, whose players are indices of `strategies.names`, and their outcomes without lengths.
  """
  fixtures, outcomes = [], []
  for number, pair in enumerate(itertools.combinations(range(len(strategies.names)), 2)):
    def on_games(ended: int, before: int = number * len(match.opponents)) -> None:
      report(before + ended)

    played = evaluation.play(
      match, evaluation.pair(params, params), jax.random.fold_in(key, number),
      strategies.conditioning._replace(goal=np.array([pair], np.int32)), on_games=on_games)
    count, lead = len(played.over), np.sign(np.asarray(played.reward)[:, 0])
    fixtures.append(tournament.Fixture(
      np.tile(np.array(pair, np.int32), (count, 1)), np.asarray(played.race),
      np.asarray(played.map_index), np.asarray(played.side)[:, 0] == 1))
    outcomes.append(tournament.Outcomes(
      np.select([lead > 0, lead < 0], [0, 1], 2).astype(np.int32), np.zeros(count, np.int32),
      np.asarray(played.executed.build_order, np.int32)[:, :, :tournament.OPENING]))
  return (jax.tree.map(lambda *x: np.concatenate(x), *fixtures),
          jax.tree.map(lambda *x: np.concatenate(x), *outcomes))
