"""Records a student's games, whose states scripted teachers label, as a dataset of whole games.

Each batch of games is played twice, with equal seeds. First the teachers play it: z of a teacher's
game is its plan's. Then the student plays it and observes this z. Without z, it plays at once.
"""

import functools
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import ml_collections
import numpy as np

from starleague import agent
from starleague.actor import rollouts, shards, students
from starleague.agent import config as agent_config
from starleague.agent import pretrained, types
from starleague.agent.config import AgentConfig
from starleague.common import compiling
from starleague.common.errors import UserError
from starleague.data import wire
from starleague.data.games import episodes, files, reading
from starleague.data.z import statistics_library
from starleague.environments.skirmish.bots import players as scripted_players
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.tables import game_config
from starleague.experiments.run.config import settings
from starleague.experiments.run.config.flags import IMITATOR, TRAINED
from starleague.experiments.run.datasets import demonstrations
from starleague.experiments.run.datasets.demonstrations import SHARDS, Demonstrators, Played
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents

# Folded into the key of the seed, a number that no stream of demonstrations reaches: those of the
# same seed are other games. Of two games with an equal setting, one could be learnt and the other
# held out.
_STUDENTS_GAMES = 2**31 - 1


class Student(NamedTuple):
  """Who plays while teachers label its states, or whose own actions are the labels."""

  params: Any
  config: AgentConfig
  share: float  # of its decisions that its teacher takes, 0 to 1
  z: bool = True  # whether it observes z of the teacher's plan
  taught: bool = True  # whether its teacher labels its states; else the actions taken do
  takes_over: int = students.NEVER  # environment step from which its teacher plays


class Options(NamedTuple):
  """What a command line says of a student."""

  source: str | None  # the run's directory, or PRETRAINED; None: there is no student
  agent: str | None  # of the run, one of flags.AGENTS; None: see `choose`
  share: float | None  # of its decisions that its teacher takes; None: not given
  z: bool
  taught: bool
  teacher_from: float | None  # seconds of the game from which its teacher plays; None: never

  @property
  def takes_over(self) -> int:
    """The environment step from which its teacher plays."""
    if self.teacher_from is None:
      return students.NEVER
    loops = self.teacher_from * types.GAME_LOOPS_PER_SECOND
    return math.ceil(loops / constants.LOOPS_PER_STEP)


def check_options(options: Options) -> None:
  """Raises UserError if the options contradict each other."""
  if options.source is None:
    if options.agent is not None:
      raise UserError("--student_agent: expected --student, a run whose agent plays")
    if options.share is not None:
      raise UserError("--teacher_share: expected --student, whose decisions are shared")
    if not options.z:
      raise UserError("--nostudent_z: expected --student, who observes z")
    if not options.taught:
      raise UserError("--labels=student: expected --student, whose actions are recorded")
    if options.teacher_from is not None:
      raise UserError("--teacher_from: expected --student, whose game the teacher takes over")
  elif options.source == settings.PRETRAINED and options.agent is not None:
    raise UserError(f"--student_agent={options.agent}: expected --student with a run's directory, "
                    f"found {settings.PRETRAINED!r}")
  elif not options.taught and options.share is not None:
    raise UserError(f"--labels=student: expected no --teacher_share, found {options.share}: there "
                    "is no teacher")
  elif options.taught and options.teacher_from is not None:
    raise UserError("--teacher_from: expected --labels=student, found teacher: a teacher that "
                    "labels takes over no game")


def preset_of(options: Options) -> str:
  """Returns the preset of a student that is a run's, else that of the smallest game."""
  if options.source in (None, settings.PRETRAINED):
    return "mini"
  return settings.load(pathlib.Path(options.source)).preset


def choose(options: Options, demonstrators: Demonstrators) -> Student:
  """Returns the student of a command line: if it is taught, the imitator, else the trained agent.

  `options.agent` names another; see `check`, `load` and `load_untaught`.
  """
  check(demonstrators)
  assert options.source is not None
  if options.taught:
    student = load(options.source, demonstrators, options.share or 0.0, options.z,
                   options.agent or IMITATOR)
  else:
    student = load_untaught(options.source, demonstrators, options.agent or TRAINED)
  return student._replace(takes_over=options.takes_over)


def load(source: str, demonstrators: Demonstrators, share: float, z: bool = True,
         agent_name: str = IMITATOR) -> Student:
  """Returns an agent of a run as the student of teachers, or the included weights.

  Args:
    source: the run's directory, or PRETRAINED.
    demonstrators: the teachers.
    share: of the decisions that its teacher takes, 0 to 1.
    z: whether it observes z of the teacher's plan.
    agent_name: of the run's agent, one of flags.AGENTS.

  Raises:
    UserError: the run has another preset, tier or game than the teachers, or no such agent.
  """
  if source == settings.PRETRAINED:
    return Student(pretrained.load_pretrained(demonstrators.preset).params,
                   agent_config.preset(demonstrators.preset), share, z)
  parts = registry.make_parts(_config_of(source, demonstrators))
  params, _ = saved_agents.load(parts, pathlib.Path(source), agent_name)
  return Student(params, parts.config, share, z)


def load_untaught(source: str, demonstrators: Demonstrators,
                  agent_name: str = TRAINED) -> Student:
  """Returns an agent of a run, or the included weights, whose own actions are the labels.

  It plays as in evaluation: without z, at the temperatures of evaluation.

  Args:
    source: the run's directory, or PRETRAINED.
    demonstrators: their MMR is the student's, their opponents are its opponents.
    agent_name: of the run's agent, one of flags.AGENTS.

  Raises:
    UserError: the run has another preset, tier or game than the players, or no such agent.
  """
  if source == settings.PRETRAINED:
    weights = pretrained.load_pretrained(demonstrators.preset)
    return Student(weights.params, weights.config, 0.0, z=False, taught=False)
  parts = registry.make_playing_parts(_config_of(source, demonstrators))
  params, _ = saved_agents.load(parts, pathlib.Path(source), agent_name)
  return Student(params, parts.config, 0.0, z=False, taught=False)


def _config_of(source: str, demonstrators: Demonstrators) -> ml_collections.ConfigDict:
  """Returns the config of a run whose agent plays the demonstrators' game."""
  run_dir = pathlib.Path(source)
  config = settings.load(run_dir)
  wanted = {"preset": demonstrators.preset, "environment.name": registry.DEFAULT,
            "environment.tier": demonstrators.sizes.tier}
  values = settings.flat(config.to_dict())
  for key, expected in wanted.items():
    if values[key] != expected:
      raise UserError(f"student {run_dir}: config key {key!r}: expected {expected!r}, that of the "
                      f"teachers, found {values[key]!r}")
  return config


def check(demonstrators: Demonstrators) -> None:
  """Raises UserError if the teachers' tier lacks one of them, or one has no plan to teach."""
  demonstrations.check(demonstrators)
  for script in scripts.scripts_of(demonstrators.sizes.tier):
    if script.name in demonstrators.names and script.random:
      raise UserError(f"teacher {script.name!r}: it gives random actions; expected a scripted "
                      "player with a plan")


def pairings(demonstrators: Demonstrators) -> np.ndarray:
  """Returns all pairs of a teacher and an opponent: [P, 2] int32, indices of `everyone`."""
  return demonstrations.pairs_of(demonstrators, students.pairings(len(demonstrators.names)))


@functools.lru_cache(maxsize=1)  # a process that continues a dataset compiles once
def make_program(demonstrators: Demonstrators, config: AgentConfig,
                 taught: bool) -> rollouts.Rollouts:
  """Returns the compiled program that plays and labels a batch of games of each shard.

  Args:
    demonstrators: the teachers.
    config: of the student.
    taught: see `Student`.
  """
  game = game_config(demonstrators.sizes.tier, config)
  return shards.make_shards(students.make_students(
    skirmish.make_skirmish(**game._asdict()), agent.make_policy(config),
    demonstrations.players_of(demonstrators), pairings(demonstrators),
    demonstrations.rollout_config(demonstrators, restart=False),
    scripted_players.make_scripted(**game._asdict()), game.max_selected,
    constants.LOOPS_PER_STEP, pack_step=wire.pack_steps, taught=taught), SHARDS)


class Batch(NamedTuple):
  """A batch of games of each shard, that begin."""

  state: rollouts.RolloutState  # [shards, ...]
  run: Callable[[Any, rollouts.RolloutState], tuple]  # (params, state) -> (state, *outputs)


def _begin(demonstrators: Demonstrators, student: Student, stream: int) -> Batch:
  """Returns the games of a stream of random numbers, equal ones for equal arguments."""
  sizes, pairs = demonstrators.sizes, len(pairings(demonstrators))
  program = make_program(demonstrators, student.config, student.taught)
  conditions = demonstrations.conditions(demonstrators, pairings(demonstrators))
  own = jax.random.fold_in(jax.random.key(demonstrators.seed), _STUDENTS_GAMES)
  key = jax.random.fold_in(own, stream)
  opponents = (stream + np.arange(SHARDS * sizes.games, dtype=np.int32)) % pairs
  probabilities = np.full(pairs, 1 / pairs, np.float32)
  return Batch(program.init(key, opponents.reshape(SHARDS, -1), conditions),
               lambda params, state: program.run(params, state, probabilities, conditions))


def _play(batch: Batch, params: Any) -> Iterator[list[Played]]:
  """Yields the outputs of calls of the program, of each shard, until all games are over."""
  state, left = batch.state, batch.state.opponent.size
  while left:
    state, *outputs = batch.run(params, state)
    played = shards.to_host(Played(*outputs))
    left -= sum(int(one.results.over.sum()) for one in played)
    yield played


def without_z(batch: Batch) -> types.Statistics:
  """Returns no z for each game of a batch: zeros, [shards, games, ...]."""
  return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), batch.state.plan.target)


def teachers_z(batch: Batch, params: Any) -> types.Statistics:
  """Returns z of the games of a batch, played by the teachers alone: [shards, games, ...]."""
  z = without_z(batch)
  for played in _play(batch._replace(state=students.prepare(batch.state, 1.0)), params):
    for shard, one in enumerate(played):
      for iteration, game in zip(*np.nonzero(one.results.over), strict=True):
        executed = types.Statistics(
          *(x[iteration, game, students.STUDENT] for x in one.results.executed))
        order, places = statistics_library.filter_build_order(
          executed.build_order, executed.build_order_xy)
        made = executed._replace(build_order=order, build_order_xy=places)
        for out, value in zip(z, made, strict=True):
          out[shard, game] = value
  return z


def play(demonstrators: Demonstrators, student: Student,
         stream: int) -> tuple[types.Statistics, Iterator[list[Played]]]:
  """Plays a batch of games: by the teachers alone, if their z is observed, then by the student.

  Args:
    demonstrators: the teachers, who are the opponents too.
    student: plays player 0.
    stream: number of the random stream; another one gives other games.

  Returns:
    z that the student observes [shards, games, ...], and the outputs of its games.
  """
  batch = _begin(demonstrators, student, stream)
  z = without_z(batch)
  if student.z:
    z = teachers_z(batch, student.params)
    batch = _begin(demonstrators, student, stream)
  state = students.prepare(batch.state, student.share, z, student.takes_over)
  return z, _play(batch._replace(state=state), student.params)


def make_episodes(demonstrators: Demonstrators, found: episodes.FinishedGame, number: int,
                  results: rollouts.Results, z: types.Statistics | None) -> list[files.Episode]:
  """Returns both sides of a finished game.

  Args:
    demonstrators: the teachers.
    found: the game.
    number: of the game in the dataset.
    results: of the call in which the game was finished.
    z: that the student observes, unbatched; None: its own actions are the labels, and its
      executed z is stored.
  """
  at = found.iteration, found.game
  pair = pairings(demonstrators)[results.opponent[at]]
  one, other = (demonstrations.make_side(demonstrators, demonstrators.everyone[i], found, player,
                                         results) for player, i in enumerate(pair))
  one = one._replace(name=files.STUDENT)
  if z is not None:
    # A label that is to wait is kept: it is made for a state of the student's.
    one = one._replace(z=z, steps=found.steps[students.STUDENT])
  return episodes.make_episodes(
    number, int(results.map_index[at]), (one, other), agent_config.preset(demonstrators.preset))


def _record_batch(writer: files.GamesWriter, demonstrators: Demonstrators, student: Student,
                  begun: int, most: int) -> None:
  """Writes the games of one batch, at most `most`, with numbers from `begun` on."""
  config, sizes = agent_config.preset(demonstrators.preset), demonstrators.sizes
  assemblers = [episodes.EpisodeAssembler(
    config, sizes.games, -(-(most - shard) // SHARDS), labelled=(student.taught, False))
    for shard in range(SHARDS)]
  z, outputs = play(demonstrators, student, begun)
  for played in outputs:
    for shard, (assembler, one) in enumerate(zip(assemblers, played, strict=True)):
      for found in assembler.add(one.records, one.results.over):
        number = begun + found.number * SHARDS + shard
        own = types.Statistics(*(x[shard, found.game] for x in z)) if student.taught else None
        writer.add(make_episodes(demonstrators, found, number, one.results, own))


def origin_of(demonstrators: Demonstrators, student: Student) -> str:
  """Returns the description in the dataset's manifest: what must stay when it is continued."""
  names = ", ".join(demonstrators.names)
  if student.taught:
    kind = f"labels of {names} for a student{'' if student.z else ' without z'}"
  elif student.takes_over == students.NEVER:
    kind = f"own actions of a student, MMR of {names}"
  else:
    kind = f"games of a student continued from environment step {student.takes_over} by {names}"
  return f"{kind}{demonstrators.chosen}, seed {demonstrators.seed}"


def _continued_origin(path: pathlib.Path, demonstrators: Demonstrators, student: Student) -> str:
  """Returns the origin of a new dataset, or of one that is continued.

  In earlier versions labels with and without z had the same one. The stored z tells them apart.

  Raises:
    GamesError: the dataset is damaged, or its student observes z and this one does not, or the
      other way round.
  """
  with_z = origin_of(demonstrators, student._replace(z=True))
  if not (path / files.MANIFEST).exists() or files.describe(path)[0].origin != with_z:
    return origin_of(demonstrators, student)
  data = reading.read_folder(path)
  rows = np.flatnonzero(data.episodes.name == files.STUDENT)
  if student.taught and len(rows):
    observed = bool(reading.library(data, rows).z.units.any())
    if observed != student.z:
      raise files.GamesError(
        f"{path} has labels for a student {'with' if observed else 'without'} z, found "
        f"--student_z={student.z}; continue it with --{'' if observed else 'no'}student_z, or "
        "choose another folder.")
  return with_z


def record(path: str | os.PathLike, demonstrators: Demonstrators, student: Student, games: int,
           report: Callable[[files.Description], None] = lambda written: None,
           ) -> files.Description:
  """Records a student's games until a dataset has as many as asked for.

  Args:
    path: the dataset's folder. One with fewer games is continued, also with another student of
      the same kind: see `origin_of`.
    demonstrators: the teachers, who are the opponents too.
    student: plays.
    games: number of games.
    report: called after each batch of games with what is written.

  Returns:
    The description of the dataset.

  Raises:
    UserError: see `check`.
    GamesError: the folder holds something else, or a dataset of other teachers or of another kind
      of student.
  """
  check(demonstrators)
  sizes, config = demonstrators.sizes, agent_config.preset(demonstrators.preset)
  origin = _continued_origin(pathlib.Path(path), demonstrators, student)
  with files.GamesWriter(
      path, config, sizes.tier, dm_environment.map_names(sizes.tier), origin) as writer:
    begun = writer.last_game + 1
    while (missing := games - writer.written.games) > 0:
      with compiling.without_collection():
        _record_batch(writer, demonstrators, student, begun, min(missing, SHARDS * sizes.games))
      begun += SHARDS * sizes.games
      report(writer.written)
  return writer.complete
