"""The imitator's parts: objective, phases, learning rate, and the state, new or resumed."""

import contextlib
import dataclasses
import functools
import math
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import optax

from starleague.agent.policy import Policy
from starleague.agent.policy import make_policy as make_agent_policy
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints, games, wire
from starleague.data.games import ordering
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.learner import supervised, train_state, update
from starleague.learner.loops.options import ImitationOptions, LearningAgent


class Phase(NamedTuple):
  """A part of imitation: its games, its learning rate, its limits."""

  name: str
  rows: np.ndarray  # learnt episodes
  held_out: np.ndarray  # episodes that measure
  learning_rate: float
  seconds: float  # 0: no limit
  epochs: int  # 0: no limit


class Position(NamedTuple):
  """The progress of imitation; a checkpoint holds it as JSON."""

  phase: int = 0  # index; earlier versions marked completion by the number of phases
  epoch: int = 0  # of the phase
  batch: int = 0  # batches learnt of the epoch
  seconds: float = 0.0  # learnt in the phase
  complete: bool = False  # the phase reached its limits, and its end is measured
  dataset: str = ""  # digest of the games, set when it is saved; empty in earlier versions


class Recorded(NamedTuple):
  """The games that a run imitates: folders of `data.games`."""

  dataset: pathlib.Path
  labels: pathlib.Path | None = None  # of games in which the imitator of the first phase played
  first_alone: bool = False  # only the first phase is learnt: its imitator will play these games


class Identified(Protocol):
  """A dataset that is open."""

  @property
  def path(self) -> pathlib.Path:
    """Its folder."""

  @property
  def digest(self) -> str:
    """SHA-256 of its contents in their order."""


class Saved(NamedTuple):
  """A checkpoint's state."""

  params: Any
  train: train_state.TrainState  # without its parameters
  carry: Any  # [B, ...]


class Best(NamedTuple):
  """State of a snapshot: no more than its parameters."""

  params: Any


def make_policy(agent: LearningAgent) -> Policy:
  """Returns the agent's policy with temperature 1, as published for supervised learning."""
  return make_agent_policy(dataclasses.replace(
    agent.config, temperature=1.0, delay_temperature=1.0))


def make_optimizer(options: ImitationOptions) -> optax.GradientTransformation:
  """Returns Adam with the config's values and an adjustable learning rate."""
  return train_state.make_optimizer(
    options.learning_rate, b1=options.b1, b2=options.b2,
    eps=options.eps, max_norm=options.max_norm or None, adjustable=True)


def make_update(agent: LearningAgent, options: ImitationOptions,
                optimizer: optax.GradientTransformation) -> update.Update:
  """Returns the update of the supervised objective, which carries the state of the slots.

  Raises:
    UserError: the devices do not divide a batch.
  """
  check_batch_size(options)
  loss = functools.partial(
    supervised.imitation_loss, make_policy(agent), agent.config, options.objective)
  return update.make_update(
    loss, optimizer, accumulate=options.accumulate, batch_axes=supervised.BATCH_AXES,
    carries=True)


def check_batch_size(options: ImitationOptions) -> None:
  """Raises UserError if the devices and their parts do not divide a batch."""
  parts_of_batch = jax.device_count() * options.accumulate
  if options.batch_size % parts_of_batch:
    raise UserError(
      f"config key 'imitation.batch_size' must be a multiple of {jax.device_count()} devices times "
      f"'imitation.accumulate' = {options.accumulate}, found "
      f"{options.batch_size}.")


def learning_rate(phase: Phase, done: float, warm_up: float, final: float) -> float:
  """Returns the learning rate: a linear rise from 0, then half a cosine.

  Args:
    phase: of imitation.
    done: share of the phase's limit that is reached, 0 to 1.
    warm_up: share in which the rate rises.
    final: the rate at the end, over the phase's.
  """
  if done < warm_up:
    return phase.learning_rate * done / warm_up
  fallen = 0.5 - 0.5 * math.cos(math.pi * (done - warm_up) / max(1.0 - warm_up, 1e-9))
  return phase.learning_rate * (1.0 - (1.0 - final) * fallen)


def make_phases(options: ImitationOptions, data: games.GamesDataset,
                labelled: int | None = None) -> list[Phase]:
  """Returns the phases: one of all games and, where it has a limit, one of winners of high MMR.

  Args:
    options: of the imitation.
    data: its games.
    labelled: number of the first game in which the imitator of the first phase played. A second
      phase learns all games; the phases after it learn the labels too. None: there is none.

  Raises:
    UserError: a phase has no games to learn, or none to measure.
  """
  chosen = _imitated(options, data, labelled)
  learnt, held_out = (rows[chosen[rows]] for rows in games.split(data, options.held_out))
  first = data.episodes.game < (np.inf if labelled is None else labelled)
  phases = [Phase("imitation", learnt[first[learnt]], held_out[first[held_out]],
                  options.learning_rate, options.seconds, options.epochs)]
  if labelled is not None:
    phases.append(Phase("labels", learnt, held_out, options.labels_learning_rate,
                        options.labels_seconds, options.labels_epochs))
  if options.fine_tune_seconds or options.fine_tune_epochs:
    best = winners_of(options, data)
    phases.append(Phase(
      "fine-tuning", learnt[best[learnt]], held_out[best[held_out]],
      options.fine_tune_learning_rate, options.fine_tune_seconds,
      options.fine_tune_epochs))
  for phase in phases:
    if not len(phase.rows) or not len(phase.held_out):
      raise UserError(
        f"{data.path}: {phase.name} found {len(phase.rows)} episodes to learn and "
        f"{len(phase.held_out)} held out, expected some of both: record more games, raise "
        "imitation.held_out, or lower imitation.fine_tune_mmr.")
  return phases


def make_library(options: ImitationOptions, data: games.GamesDataset,
                 labelled: int | None = None) -> StatisticsLibrary:
  """Returns the z of the imitated winners of high MMR, for training games; not those that measure.

  Games that a student played without z are left out.

  Args:
    options: of the imitation.
    data: its games.
    labelled: see `make_phases`.

  Raises:
    UserError: the dataset has no player of a name.
  """
  learnt, _ = games.split(data, options.held_out)
  chosen = _imitated(options, data, labelled) & winners_of(options, data)
  rows = learnt[chosen[learnt]]
  found = games.library(data, rows)
  have = found.z.units.any(axis=-1)
  return found if have.all() else games.library(data, rows[have])


def named(options: ImitationOptions, data: games.GamesDataset) -> np.ndarray:
  """Returns whether each episode is of a player that is imitated, [N] bool.

  Raises:
    UserError: the dataset has no player of a name.
  """
  names = np.asarray(data.episodes.name)
  if not options.names:
    return np.ones(len(names), bool)
  wanted = options.names.split(",")
  for name in wanted:
    if name not in names:
      raise UserError(f"config key 'imitation.names': expected some of "
                      f"{', '.join(sorted(set(names)))}, the players of {data.path}; "
                      f"found {name!r}")
  return np.isin(names, wanted)


def _imitated(options: ImitationOptions, data: games.GamesDataset,
              labelled: int | None) -> np.ndarray:
  """Returns whether each episode is learnt, [N] bool: of `named`, and with labels the student's."""
  chosen = named(options, data)
  return chosen if labelled is None else chosen | (data.episodes.name == games.STUDENT)


def winners_of(options: ImitationOptions, data: games.GamesDataset) -> np.ndarray:
  """Returns whether each episode was won by a player of high MMR, [N] bool."""
  return (data.episodes.result > 0) & (data.episodes.mmr >= options.fine_tune_mmr)


def read_games(path: pathlib.Path, options: ImitationOptions) -> games.GamesDataset:
  """Reads the dataset of a run.

  Raises:
    GamesError: the folder is no dataset of the run's preset and its sizes, or is damaged.
    UserError: the games are of another tier.
  """
  data = games.read(path, options.preset)
  # The server of Skirmish plays as StarCraft II: runs there may imitate games of either.
  played_back = data.tier == options.environment
  if data.tier != options.tier and not played_back:
    raise UserError(
      f"{path} holds games of tier {data.tier!r}, expected {options.tier!r}: give "
      "another dataset, or set environment.tier.")
  # One episode of each file: a preset whose sizes have changed is found before compilation.
  for row in np.unique(data.episodes.part, return_index=True)[1]:
    games.steps(data, int(row))
  return data


def read_recorded(recorded: Recorded, options: ImitationOptions,
                  run_dir: pathlib.Path) -> tuple[games.GamesDataset, int | None]:
  """Reads the games of a run that may be resumed.

  Returns:
    The games, and the number of the first one with labels; None without labels.

  Raises:
    GamesError, UserError: see `read_games` and `check_dataset`.
    CheckpointMismatchError: the newest checkpoint has another schema.
  """
  data = read_games(recorded.dataset, options)
  position = saved_position(run_dir) or Position()
  if recorded.labels is None or position.phase == 0:
    check_dataset(run_dir / run_files.IMITATION, data)
  if recorded.labels is None:
    return data, None
  both = read_games(pathlib.Path(f"{recorded.dataset},{recorded.labels}"), options)
  if position.phase > 0:
    check_dataset(run_dir / run_files.IMITATION, both)
  return both, int(data.episodes.game.max()) + 1


def batches(data: games.GamesDataset, phase: Phase, options: ImitationOptions,
            position: Position) -> Iterator[tuple[Position, ordering.OrderedBatch]]:
  """Yields batches, each with the position after it, from a position to the last epoch's end."""
  epoch, start = position.epoch, position.batch
  while not phase.epochs or epoch < phase.epochs:
    for batch in games.in_order(
        data, phase.rows, options.batch_size, options.unroll_length,
        seed=options.seed + epoch, start=start):
      start += 1
      yield position._replace(epoch=epoch, batch=start), batch
    epoch, start = epoch + 1, 0


def saved_position(run_dir: pathlib.Path) -> Position | None:
  """Returns the position of a run's newest checkpoint of imitation; None if there is none.

  Raises:
    CheckpointMismatchError: it has another schema.
  """
  extra = _saved_extra(run_dir / run_files.IMITATION)
  return None if extra is None else Position(**extra)


def _saved_extra(folder: pathlib.Path) -> Mapping[str, Any] | None:
  """Returns what the newest checkpoint of a folder has beside its state; None: there is none."""
  for path in reversed(checkpoints.find(folder).values()):
    with contextlib.suppress(checkpoints.CheckpointDamagedError):  # the learner skips it, too
      return checkpoints.read_manifest(path)["extra"]
  return None


def check_dataset(folder: pathlib.Path, data: Identified) -> None:
  """Checks that a resumed run goes on with its dataset.

  An extended dataset is another one: its episodes have another order, and another part of them is
  held out, so that the run's position would mean other games.

  Args:
    folder: of the run's checkpoints of imitation or offline learning.
    data: the dataset that it is resumed with.

  Raises:
    UserError: the run has learnt from another dataset.
    CheckpointMismatchError: the newest checkpoint has another schema.
  """
  expected = (_saved_extra(folder) or {}).get("dataset")
  if expected and expected != data.digest:
    raise UserError(
      f"run {str(folder.parent)!r} has learnt from another dataset than {data.path} is now: "
      f"expected SHA-256 {expected[:12]}, found {data.digest[:12]} (an extended dataset is another "
      "one); resume it with the earlier dataset, or choose another --run.")


def chunks_of(batch: ordering.OrderedBatch, carry: Any = None) -> supervised.Chunks:
  """Returns a batch as chunks; the carry may be added later."""
  return supervised.Chunks(wire.Columns(*batch.packed[:-1]), batch.first, carry)


def empty_chunks(agent: LearningAgent, options: ImitationOptions) -> supervised.Chunks:
  """Returns chunks of slots without games, without a carry."""
  size = options.batch_size
  packed = wire.empty_batch(agent.config, options.unroll_length, size)
  return chunks_of(ordering.OrderedBatch(*packed, first=np.ones(size, bool)))


def empty_carry(agent: LearningAgent, size: int) -> supervised.Carry:
  """Returns the carry of slots that have not begun: zeros."""
  state = wire.packed_spec(agent.config, 1).state
  return supervised.Carry(np.zeros((size, *state.shape), state.dtype), np.zeros((size, 2), bool))


class Evaluator:
  """Measures parameters on held-out games."""

  def __init__(self, agent: LearningAgent, options: ImitationOptions, data: games.GamesDataset):
    """Compiles nothing yet."""
    self._agent, self._options, self._data = agent, options, data
    policy = make_policy(agent)

    def add(params, key, chunks, totals):
      found, carry = supervised.imitation_totals(
        policy, agent.config, options.objective, params, key, chunks)
      return jax.tree.map(jax.numpy.add, totals, found), carry

    self._add = jax.jit(add)

  def __call__(self, params: Any, rows: np.ndarray) -> dict[str, float]:
    """Returns `supervised.figures` of episodes: the same chunks and draws at every call.

    Args:
      params: host parameters.
      rows: of the dataset.
    """
    params, key = jax.device_put(params), jax.random.key(self._options.seed)
    size, length = self._options.batch_size, self._options.unroll_length
    carry, totals = empty_carry(self._agent, size), supervised.no_totals()
    for number, batch in enumerate(games.in_order(self._data, rows, size, length, seed=0)):
      totals, carry = self._add(params, jax.random.fold_in(key, number),
                                chunks_of(batch, carry), totals)
    return supervised.figures(jax.device_get(totals), self._options.objective.weights)


class BestSnapshot:
  """The parameters of lowest held-out loss of the newest phase, in the run's directory."""

  def __init__(self, agent: LearningAgent, run_dir: pathlib.Path):
    """Opens the directory."""
    self._saved = checkpoints.Checkpoints(run_dir / run_files.IMITATED, agent.config, keep_last=1)

  def loss(self, phase: Phase) -> float:
    """Returns the held-out loss of the snapshot; infinity without one of the phase."""
    for path in reversed(checkpoints.find(self._saved.directory).values()):
      extra = checkpoints.read_manifest(path)["extra"]
      if extra["phase"] == phase.name:
        return float(extra["held_out_loss"])
    return math.inf

  def save(self, step: int, params: Any, phase: Phase, loss: float) -> None:
    """Replaces the snapshot, also a later one of updates that a damaged checkpoint has lost."""
    for later, path in checkpoints.find(self._saved.directory).items():
      if later > step:
        shutil.rmtree(path)
    self._saved.save(step, Best(params), {"phase": phase.name, "held_out_loss": loss})
