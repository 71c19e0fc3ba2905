"""Records demonstrations: games between scripted players as a dataset of whole games."""

import functools
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from starleague.actor import demonstrations, rollouts
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common.errors import UserError
from starleague.data import conditioning, episodes, games_files, statistics, waits, wire
from starleague.data.records import Records
from starleague.environments.skirmish.bots import players as scripted_players
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules import constants
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.config import game_config
from starleague.experiments.run import compiling


class Sizes(NamedTuple):
  """Where and how many games of a preset are played at once."""

  tier: str
  games: int
  inference_batch: int
  iterations: int


SIZES = {"mini": Sizes("mini", 128, 64, 16), "medium": Sizes("default", 64, 32, 16)}


class Demonstrators(NamedTuple):
  """Everything that determines the games."""

  preset: str
  names: tuple[str, ...]  # of the scripted players
  seed: int

  @property
  def sizes(self) -> Sizes:
    """The sizes of the preset."""
    return SIZES[self.preset]

  @property
  def origin(self) -> str:
    """The description in the dataset's manifest."""
    return f"demonstrations of {', '.join(self.names)}, seed {self.seed}"


class Played(NamedTuple):
  """Outputs of one call of the program."""

  records: Records
  results: rollouts.Results


def check(demonstrators: Demonstrators) -> None:
  """Raises UserError if the preset has no tier, or its tier lacks a player."""
  if demonstrators.preset not in SIZES:
    raise UserError(f"preset {demonstrators.preset!r}: expected one of {', '.join(SIZES)}, which "
                    "have a tier of Skirmish")
  if not demonstrators.names or len(set(demonstrators.names)) < len(demonstrators.names):
    raise UserError(f"players: expected different names, found {','.join(demonstrators.names)}")
  try:
    scripts.check_names(demonstrators.names, demonstrators.sizes.tier)
  except ValueError as error:
    raise UserError(str(error)) from error


@functools.lru_cache(maxsize=1)  # a process that continues a dataset compiles once
def make_program(demonstrators: Demonstrators) -> rollouts.Rollouts:
  """Returns the compiled program that plays the games of all pairings."""
  sizes = demonstrators.sizes
  game = game_config(sizes.tier, agent_config.preset(demonstrators.preset))
  indices = scripts.indices_of(demonstrators.names, sizes.tier)
  every = scripts.scripts_of(sizes.tier)
  return demonstrations.make_demonstrations(
    skirmish.make_skirmish(**game._asdict()),
    [demonstrations.Player(int(i), every[i].skill.mmr, every[i].skill.income) for i in indices],
    demonstrations.pairings(len(indices)),
    rollouts.RolloutConfig(
      games=sizes.games, inference_batch=sizes.inference_batch, iterations=sizes.iterations,
      races=tuple(types.RACES.index(race) for race in dm_environment.playable(sizes.tier)),
      maps=len(dm_environment.map_names(sizes.tier))),
    scripted_players.make_scripted(**game._asdict()), game.max_selected,
    constants.LOOPS_PER_STEP, pack_step=wire.pack_steps)


def play(demonstrators: Demonstrators, stream: int) -> Iterator[Played]:
  """Yields the outputs of calls of the program without end.

  The next call runs on the device while the caller uses the outputs of the previous one.

  Args:
    demonstrators: who plays.
    stream: number of the random stream; equal demonstrators play other games with another one.
  """
  sizes = demonstrators.sizes
  program = make_program(demonstrators)
  pairs = len(demonstrations.pairings(len(demonstrators.names)))
  conditions = conditioning.unconditional(len(dm_environment.map_names(sizes.tier)), 0)
  key = jax.random.fold_in(jax.random.key(demonstrators.seed), stream)
  probabilities = np.full(pairs, 1 / pairs, np.float32)
  with compiling.without_collection():
    state = program.init(key, np.arange(sizes.games) % pairs, conditions)
    state, *outputs = program.run((), state, probabilities, conditions)
  while True:
    state, *following = program.run((), state, probabilities, conditions)
    yield Played(*jax.tree.map(np.asarray, outputs))
    outputs = following


def make_episodes(demonstrators: Demonstrators, found: episodes.FinishedGame, first_number: int,
                  results: rollouts.Results) -> list[games_files.Episode]:
  """Returns both sides of a finished game.

  Args:
    demonstrators: who plays.
    found: the game.
    first_number: added to the game's number.
    results: of the call in which the game was finished.
  """
  sizes, config = demonstrators.sizes, agent_config.preset(demonstrators.preset)
  at = found.iteration, found.game
  pair = demonstrations.pairings(len(demonstrators.names))[results.opponent[at]]
  executed = []
  for player in (0, 1):
    z = types.Statistics(*(x[(*at, player)] for x in results.executed))
    order, places = statistics.filter_build_order(z.build_order, z.build_order_xy)
    executed.append(z._replace(build_order=order, build_order_xy=places))
  sides = []
  for player, name in enumerate(demonstrators.names[i] for i in pair):
    steps = waits.merge_waits(found.steps[player], config)
    episodes.add_statistics(steps, executed[player], executed[1 - player], config)
    script = scripts.scripts_of(sizes.tier)[int(scripts.indices_of([name], sizes.tier)[0])]
    race = results.race[at]
    sides.append(games_files.Episode(
      game=first_number + found.number, player=player, name=name,
      map_index=int(results.map_index[at]), race=int(race[player]), away_race=int(race[1 - player]),
      side=int(results.side[at][player]), mmr=script.skill.mmr,
      result=int(np.sign(results.reward[at][player])), statistics=executed[player],
      steps=steps))
  return sides


def write(writer: games_files.GamesWriter, assembler: episodes.EpisodeAssembler,
          demonstrators: Demonstrators, played: Played, first_number: int) -> None:
  """Collects the steps of a call and writes the games that they finish.

  Args:
    writer: of the dataset.
    assembler: of the program's steps.
    demonstrators: who plays.
    played: outputs of the call.
    first_number: added to the numbers of the games.
  """
  for found in assembler.add(played.records, played.results.over):
    writer.add(make_episodes(demonstrators, found, first_number, played.results))


def record(path: str | os.PathLike, demonstrators: Demonstrators, games: int,
           report: Callable[[games_files.Description], None] = lambda written: None,
           ) -> games_files.Description:
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
  with games_files.GamesWriter(
      path, config, sizes.tier, dm_environment.map_names(sizes.tier),
      demonstrators.origin) as writer:
    missing, first_number = games - writer.complete.games, writer.last_game + 1
    if missing <= 0:
      return writer.complete
    assembler = episodes.EpisodeAssembler(config, sizes.games, missing)
    for played in play(demonstrators, writer.parts):
      write(writer, assembler, demonstrators, played, first_number)
      report(writer.written)
      if writer.written.games >= games:
        break
  return writer.complete
