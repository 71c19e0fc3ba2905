"""Games between the players of a league, for recordings."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import players
from starleague.actor.loops import programs
from starleague.actor.loops.options import ActorOptions
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints, wire
from starleague.data.assembler import Assembler
from starleague.data.z.conditioning import Conditioning, unconditional
from starleague.league.league_file import open_league_file
from starleague.league.players import HISTORICAL, Player, is_first_snapshot


class Loaded(NamedTuple):
  """A player of a league and its weights."""

  player: Player
  params: Any


def load(parts: Parts, run_dir: pathlib.Path, most: int) -> list[Loaded]:
  """Returns the learning players of a league with their newest weights, then its newest snapshots.

  Args:
    parts: of the run.
    run_dir: the league's directory.
    most: number of players.

  Raises:
    DatabaseFileError: the league's file cannot be used.
    CheckpointDamagedError, CheckpointMismatchError: weights cannot be used.
  """
  found = open_league_file(run_dir / run_files.LEAGUE).players()
  learning = [player for player in found if player.learns]
  frozen = [player for player in found if player.kind == HISTORICAL]
  return [Loaded(player, checkpoints.load_params(_weights(run_dir, player), parts.config))
          for player in [*learning, *reversed(frozen)][:most]]


def _weights(run_dir: pathlib.Path, player: Player) -> pathlib.Path:
  if player.learns:
    path = run_files.learner_dir(run_dir, player.name) / run_files.CHECKPOINTS
  else:
    path = run_files.snapshot_path(run_dir, player.name)
  begins = player.learns or is_first_snapshot(player.name)
  # A learner that never saved, and snapshot 0, have the weights that all began with.
  return run_dir / run_files.INITIAL if begins and not path.is_dir() else path


def pairs(number: int) -> np.ndarray:
  """Returns [M, 2] int32: all pairs of so many players, each with itself included."""
  return np.array([*itertools.combinations_with_replacement(range(number), 2)], np.int32)


def conditioning(parts: Parts, found: Sequence[Player]) -> Conditioning:
  """Returns the conditioning of the games of all pairs: each player's race, and no z."""
  races = np.array([types.RACES.index(player.race) for player in found], np.int32)
  return unconditional(len(parts.maps), parts.mmr)._replace(races=races[pairs(len(found))])


def play(parts: Parts, options: ActorOptions, unroll_length: int, found: Sequence[Loaded],
         seed: int) -> Iterator[wire.Packed]:
  """Yields the trajectories of both players in games of all pairs, without end.

  Each pair has an equal share of the games.

  Args:
    parts: of the run.
    options: sizes of the program.
    unroll_length: T.
    found: the players.
    seed: of the games.

  Raises:
    UserError: the game is not played inside the compiled program.
  """
  chosen = pairs(len(found))
  program = programs.make_league(
    parts, options, players.Sizes(len(found), len(chosen), 0, options.league_chunk))
  shown = conditioning(parts, [each.player for each in found])
  loaded = jax.device_put(players.stack([each.params for each in found], chosen))
  state = program.init(jax.random.key(seed), np.arange(options.games) % len(chosen), shown)
  probabilities = np.full(len(chosen), 1 / len(chosen), np.float32)
  assembler = Assembler(parts.config, unroll_length, 2 * options.games)
  while True:
    state, records, _ = program.run(loaded, state, probabilities, shown)
    for cut in assembler.add(records):
      yield cut.packed
