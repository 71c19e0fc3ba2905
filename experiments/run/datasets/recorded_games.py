"""Games for recordings: of a run's agent, or between the players of a league."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import players, rollouts
from starleague.actor.loops import programs, weights
from starleague.actor.loops.options import ActorOptions
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints, wire
from starleague.data.assembler import Assembler
from starleague.data.z.conditioning import Conditioning, unconditional
from starleague.league.league_file import open_league_file
from starleague.league.players import HISTORICAL, Player
from starleague.league.run_copy import RunCopy


class Loaded(NamedTuple):
  """A player of a league and its weights."""

  player: Player
  params: Any


class Games(NamedTuple):
  """A compiled program, and its games without z; each opponent index has an equal share."""

  program: rollouts.Rollouts
  params: Any
  opponents: int  # number of opponent indices
  conditioning: Conditioning


def load_players(parts: Parts, run_dir: pathlib.Path, most: int) -> list[Loaded]:
  """Returns a league's learning players with their newest weights, then its newest snapshots.

  Args:
    parts: of the run.
    run_dir: the league's directory.
    most: maximum number of players.

  Raises:
    DatabaseFileError: the league's file cannot be used.
    FileNotFoundError, FinalError, CheckpointDamagedError, CheckpointMismatchError: weights are
      missing or cannot be used.
  """
  found = open_league_file(run_dir / run_files.LEAGUE).players()
  learning = [player for player in found if player.learns]
  frozen = [player for player in found if player.kind == HISTORICAL]
  return [Loaded(player, _weights(parts, run_dir, player))
          for player in [*learning, *reversed(frozen)][:most]]


def _weights(parts: Parts, run_dir: pathlib.Path, player: Player) -> Any:
  if not player.learns:
    return weights.load_snapshot(parts.config, RunCopy(run_dir), player.name)
  saved = run_files.learner_dir(run_dir, player.name) / run_files.CHECKPOINTS
  # A learning player without a checkpoint still has the weights that the league began with. A
  # learner makes the folders of all its players at once.
  return checkpoints.load_params(
    saved if checkpoints.find(saved) else run_dir / run_files.INITIAL, parts.config)


def pairs(number: int) -> np.ndarray:
  """Returns [M, 2] int32: all pairs of so many players, each with itself included."""
  return np.array([*itertools.combinations_with_replacement(range(number), 2)], np.int32)


def conditioning(parts: Parts, found: Sequence[Player]) -> Conditioning:
  """Returns the conditioning of the games of all pairs: each player's race, and no z."""
  races = np.array([types.RACES.index(player.race) for player in found], np.int32)
  return unconditional(len(parts.maps), parts.mmr)._replace(races=races[pairs(len(found))])


def of_agent(parts: Parts, options: ActorOptions, params: Any) -> Games:
  """Returns an agent's games against itself and each scripted player.

  Raises:
    UserError: the game is not played inside the compiled program.
  """
  return Games(programs.make_single(parts, options), params, 1 + len(parts.opponents),
               unconditional(len(parts.maps), parts.mmr))


def of_league(parts: Parts, options: ActorOptions, found: Sequence[Loaded]) -> Games:
  """Returns the games of all pairs of players. Raises the error of `of_agent`."""
  chosen = pairs(len(found))
  sizes = players.Sizes(len(found), len(chosen), 0, options.league_chunk)
  return Games(programs.make_league(parts, options, sizes),
               jax.device_put(players.stack([each.params for each in found], chosen)),
               len(chosen), conditioning(parts, [each.player for each in found]))


def play(games: Games, parts: Parts, options: ActorOptions, unroll_length: int,
         seed: int) -> Iterator[wire.Packed]:
  """Yields the trajectories of all policies in games, without end.

  Args:
    games: of an agent or a league.
    parts: of the run.
    options: those that the games were made with.
    unroll_length: T.
    seed: of the games.
  """
  state = games.program.init(
    jax.random.key(seed), np.arange(options.games) % games.opponents, games.conditioning)
  probabilities = np.full(games.opponents, 1 / games.opponents, np.float32)
  assembler = Assembler(parts.config, unroll_length, 2 * options.games)
  while True:
    state, records, _ = games.program.run(games.params, state, probabilities, games.conditioning)
    for cut in assembler.add(records):
      yield cut.packed
