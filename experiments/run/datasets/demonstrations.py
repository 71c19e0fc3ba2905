"""Records demonstrations: games between scripted players as a dataset of whole games."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from starleague.actor import demonstrations, rollouts, shards
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import compiling
from starleague.common.errors import UserError
from starleague.data import wire
from starleague.data.games import episodes, files, waits
from starleague.data.records import Records
from starleague.data.z import conditioning, statistics_library
from starleague.environments.skirmish.bots import players as scripted_players
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.tables import game_config
from starleague.experiments.run.games.skirmish import RECORDED
from starleague.experiments.run.processes import graph

DRAWN = -1, -1  # races of both players
CHUNKS = 4  # of a batch's games; about a quarter of them have a player that is due
SHARDS = 2  # independent batches of games, on any number of cores: the files are the same


class Sizes(NamedTuple):
  """Where and how many games of a preset are played at once, in each shard."""

  tier: str
  games: int
  inference_batch: int
  iterations: int


SIZES = {preset: Sizes(tier, 64, 32, 32) for preset, tier in RECORDED.items()}


class Demonstrators(NamedTuple):
  """Everything that determines the games."""

  preset: str
  names: tuple[str, ...]  # of the scripted players
  seed: int
  most: int | None = None  # games at once, in all shards; None: those of the preset
  opponents: tuple[str, ...] = ()  # of player 1; none: `names`, in every pair of them
  races: tuple[int, int] = DRAWN  # of player 0 and player 1, indices of types.RACES; -1: drawn

  @property
  def everyone(self) -> tuple[str, ...]:
    """Names of all scripted players, each once."""
    return tuple(dict.fromkeys(self.names + self.opponents))

  @property
  def sizes(self) -> Sizes:
    """The sizes of the preset, or smaller ones of the same proportions for fewer games."""
    sizes = SIZES[self.preset]
    games = sizes.games if self.most is None else min(sizes.games, -(-self.most // SHARDS))
    return sizes._replace(
      games=games, inference_batch=max(1, sizes.inference_batch * games // sizes.games))

  def recording(self, games: int) -> "Demonstrators":
    """Returns the same ones, who play no more games at once than are to be recorded."""
    return self._replace(most=min(games, SHARDS * SIZES[self.preset].games))

  @property
  def origin(self) -> str:
    """The description in the dataset's manifest."""
    return f"demonstrations of {', '.join(self.names)}{self.chosen}, seed {self.seed}"

  @property
  def chosen(self) -> str:
    """What the description says of chosen opponents and races."""
    races = ["a drawn race" if race < 0 else types.RACES[race] for race in self.races]
    return (f" against {', '.join(self.opponents)}" if self.opponents else "") + (
      f", {races[0]} against {races[1]}" if self.races != DRAWN else "")


class Played(NamedTuple):
  """Outputs of one call of the program."""

  records: Records
  results: rollouts.Results


def use_cores() -> None:
  """Makes a device of each core, up to `SHARDS`, unless JAX has started; see `actor.shards`."""
  cores = len(os.sched_getaffinity(0))
  changed = graph.data_parallel(os.environ, SHARDS, 1, cores)
  with contextlib.suppress(RuntimeError):  # it has started
    jax.config.update("jax_num_cpu_devices", int(changed["JAX_NUM_CPU_DEVICES"]))
    os.environ.update(changed)


def race_indices(names: Sequence[str]) -> tuple[int, int]:
  """Returns the races of player 0 and player 1, indices of types.RACES, or -1: drawn.

  Raises:
    UserError: they are not two races.
  """
  races = [race.lower() for race in constants.RACES]
  known = {"random": -1} | {race: types.RACES.index(race) for race in races}
  if len(names) != 2 or not set(names) <= known.keys():
    raise UserError(f"--races: expected two of {', '.join(known)}; found {','.join(names)!r}")
  return known[names[0]], known[names[1]]


def check(demonstrators: Demonstrators) -> None:
  """Raises UserError if the preset has no tier, or its tier lacks a player or a race."""
  if demonstrators.preset not in SIZES:
    raise UserError(f"preset {demonstrators.preset!r}: expected one of {', '.join(SIZES)}, which "
                    "have a tier of Skirmish")
  if not demonstrators.names or len(set(demonstrators.names)) < len(demonstrators.names):
    raise UserError(f"players: expected different names, found {','.join(demonstrators.names)}")
  if len(set(demonstrators.opponents)) < len(demonstrators.opponents):
    raise UserError("opponents: expected different names, found "
                    f"{','.join(demonstrators.opponents)}")
  tier = demonstrators.sizes.tier
  try:
    scripts.check_names(demonstrators.everyone, tier)
  except ValueError as error:
    raise UserError(str(error)) from error
  playable = dm_environment.playable(tier)
  for race in demonstrators.races:
    if race >= 0 and types.RACES[race] not in playable:
      raise UserError(f"race {types.RACES[race]!r}: expected one of {', '.join(playable)}, which "
                      f"tier {tier!r} has")


def pairs_of(demonstrators: Demonstrators, names: np.ndarray) -> np.ndarray:
  """Returns the pairings of a program: [P, 2] int32, indices of `everyone`.

  Args:
    demonstrators: who plays.
    names: [Q, 2], the pairings of `names`, where the opponents are not chosen.
  """
  if not demonstrators.opponents:
    return names
  of = demonstrators.everyone.index
  return np.array([(of(one), of(other)) for one in demonstrators.names
                   for other in demonstrators.opponents], np.int32)


def all_pairs(demonstrators: Demonstrators) -> np.ndarray:
  """Returns the pairings of demonstrations: [P, 2] int32, indices of `everyone`."""
  return pairs_of(demonstrators, demonstrations.pairings(len(demonstrators.names)))


def conditions(demonstrators: Demonstrators, pairs: np.ndarray) -> conditioning.Conditioning:
  """Returns the conditioning of games of these pairings: without z, of the chosen races."""
  drawn = conditioning.unconditional(len(dm_environment.map_names(demonstrators.sizes.tier)), 0)
  if demonstrators.races == DRAWN:
    return drawn
  return conditioning.with_races(drawn, demonstrators.races, len(pairs))


def players_of(demonstrators: Demonstrators) -> list[demonstrations.Player]:
  """Returns the demonstrators as players of a compiled program, in their order."""
  tier = demonstrators.sizes.tier
  every = scripts.scripts_of(tier)
  return [demonstrations.Player(int(i), every[i].skill.mmr, every[i].skill.income)
          for i in scripts.indices_of(demonstrators.everyone, tier)]


def rollout_config(demonstrators: Demonstrators, restart: bool) -> rollouts.RolloutConfig:
  """Returns the sizes of the compiled program of a shard.

  Args:
    demonstrators: who plays.
    restart: whether new games replace finished ones.
  """
  sizes = demonstrators.sizes
  return rollouts.RolloutConfig(
    games=sizes.games, inference_batch=sizes.inference_batch, iterations=sizes.iterations,
    races=tuple(types.RACES.index(race) for race in dm_environment.playable(sizes.tier)),
    maps=len(dm_environment.map_names(sizes.tier)), restart=restart,
    chunk=max(sizes.games // CHUNKS, 1))


@functools.lru_cache(maxsize=1)  # a process that continues a dataset compiles once
def make_program(demonstrators: Demonstrators) -> rollouts.Rollouts:
  """Returns the compiled program that plays the games of all pairings."""
  game = game_config(demonstrators.sizes.tier, agent_config.preset(demonstrators.preset))
  players = players_of(demonstrators)
  return shards.make_shards(demonstrations.make_demonstrations(
    skirmish.make_skirmish(**game._asdict()), players, all_pairs(demonstrators),
    rollout_config(demonstrators, restart=True),
    scripted_players.make_scripted(**game._asdict()), game.max_selected,
    constants.LOOPS_PER_STEP, pack_step=wire.pack_steps), SHARDS)


def play(demonstrators: Demonstrators, stream: int) -> Iterator[list[Played]]:
  """Yields the outputs of calls of the program, of each shard, without end.

  The next call runs on the device while the caller uses the outputs of the previous one.

  Args:
    demonstrators: who plays.
    stream: number of the random stream; equal demonstrators play other games with another one.
  """
  sizes = demonstrators.sizes
  program = make_program(demonstrators)
  without_z = conditions(demonstrators, all_pairs(demonstrators))
  pairs = len(all_pairs(demonstrators))
  key = jax.random.fold_in(jax.random.key(demonstrators.seed), stream)
  probabilities = np.full(pairs, 1 / pairs, np.float32)
  with compiling.without_collection():
    opponents = np.arange(SHARDS * sizes.games, dtype=np.int32).reshape(SHARDS, -1) % pairs
    state = program.init(key, opponents, without_z)
    state, *outputs = program.run((), state, probabilities, without_z)
  while True:
    state, *following = program.run((), state, probabilities, without_z)
    yield shards.to_host(Played(*outputs))
    outputs = following


def make_episodes(demonstrators: Demonstrators, found: episodes.FinishedGame, number: int,
                  results: rollouts.Results) -> list[files.Episode]:
  """Returns both sides of a finished game.

  Args:
    demonstrators: who plays.
    found: the game.
    number: of the game in the dataset.
    results: of the call in which the game was finished.
  """
  at = found.iteration, found.game
  pair = all_pairs(demonstrators)[results.opponent[at]]
  one, other = (make_side(demonstrators, demonstrators.everyone[i], found, player, results)
                for player, i in enumerate(pair))
  return episodes.make_episodes(
    number, int(results.map_index[at]), (one, other), agent_config.preset(demonstrators.preset))


def make_side(demonstrators: Demonstrators, name: str, found: episodes.FinishedGame, player: int,
              results: rollouts.Results) -> episodes.Side:
  """Returns a scripted player's side of a finished game.

  Args:
    demonstrators: who plays.
    name: of the player.
    found: the game.
    player: 0 or 1.
    results: of the call in which the game was finished.
  """
  at, tier = (found.iteration, found.game), demonstrators.sizes.tier
  z = types.Statistics(*(x[(*at, player)] for x in results.executed))
  order, places = statistics_library.filter_build_order(z.build_order, z.build_order_xy)
  script = scripts.scripts_of(tier)[int(scripts.indices_of([name], tier)[0])]
  return episodes.Side(
    name=name, race=int(results.race[at][player]), side=int(results.side[at][player]),
    mmr=script.skill.mmr, result=int(np.sign(results.reward[at][player])),
    z=z._replace(build_order=order, build_order_xy=places),
    steps=waits.merge_waits(found.steps[player], agent_config.preset(demonstrators.preset)))


class Recorder:
  """Collects the steps of all shards and writes the games that they finish."""

  def __init__(self, writer: files.GamesWriter, demonstrators: Demonstrators, games: int):
    """Starts without steps.

    Args:
      writer: of the dataset.
      demonstrators: who plays.
      games: number of games to write: the ones that begin first in each shard.
    """
    config = agent_config.preset(demonstrators.preset)
    self._writer, self._demonstrators = writer, demonstrators
    self._first_number = writer.last_game + 1
    self._assemblers = [
      episodes.EpisodeAssembler(config, demonstrators.sizes.games, -(-(games - shard) // SHARDS))
      for shard in range(SHARDS)]

  def add(self, played: Sequence[Played]) -> None:
    """Adds the steps of a call, of each shard."""
    for shard, (assembler, one) in enumerate(zip(self._assemblers, played, strict=True)):
      for found in assembler.add(one.records, one.results.over):
        number = self._first_number + found.number * SHARDS + shard
        self._writer.add(make_episodes(self._demonstrators, found, number, one.results))


def record(path: str | os.PathLike, demonstrators: Demonstrators, games: int,
           report: Callable[[files.Description], None] = lambda written: None,
           ) -> files.Description:
  """Records games until a dataset has as many as asked for; continues one that has fewer.

  Equal demonstrators and numbers of games give equal files, unless recording was interrupted.

  Args:
    path: the dataset's folder.
    demonstrators: who plays.
    games: number of games.
    report: called after each call of the program with what is written.

  Returns:
    The description of the dataset.

  Raises:
    UserError: see `check`.
    GamesError: the folder holds something else, or a dataset of other demonstrators.
  """
  check(demonstrators)
  sizes, config = demonstrators.sizes, agent_config.preset(demonstrators.preset)
  with files.GamesWriter(
      path, config, sizes.tier, dm_environment.map_names(sizes.tier),
      demonstrators.origin) as writer:
    missing = games - writer.complete.games
    if missing <= 0:
      return writer.complete
    few = demonstrators.recording(missing)
    recorder = Recorder(writer, few, missing)
    for played in play(few, writer.parts):
      recorder.add(played)
      report(writer.written)
      if writer.written.games >= games:
        break
  return writer.complete
