"""Imitation: batches of recorded games in order, updates, held-out figures, checkpoints."""

import math
import pathlib
import time
from typing import Any

import jax
from absl import logging

from starleague.common import compiling, progress, run_files, stopping
from starleague.data import checkpoints, games, wire
from starleague.data.games import ordering
from starleague.learner import guard, prefetch, supervised, train_state, update
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Phase, Position, Recorded, Saved
from starleague.learner.loops.metrics_log import MetricsLog
from starleague.learner.loops.options import ImitationOptions, LearningAgent


def imitate(agent: LearningAgent, options: ImitationOptions, run_dir: pathlib.Path,
            recorded: Recorded, origin: float) -> bool:
  """Imitates the players of recorded games until the limits of all phases, or until it is stopped.

  The parameters of lowest held-out loss in the last phase are the run's `run_files.IMITATED`.

  Args:
    agent: that learns.
    options: of the imitation.
    run_dir: the run's directory.
    recorded: the games.
    origin: start of the run, in Unix seconds.

  Returns:
    Whether imitation is complete.

  Raises:
    GamesError, UserError: the games do not fit the run.
  """
  stopping.end_at_once()  # nothing to save before the first update
  data, labelled = imitation_setup.read_recorded(recorded, options, run_dir)
  phases = imitation_setup.make_phases(options, data, labelled)
  imitation_setup.make_library(options, data, labelled).save(run_dir / run_files.LIBRARY)
  imitator = Imitator(agent, options, run_dir, data, origin)
  first = max(imitator.position.phase, int(labelled is not None))
  with imitator.log:
    for number in range(first, 1 if recorded.first_alone else len(phases)):
      if not imitator.run(number, phases[number]):
        return False
  return True


class Imitator:
  """The state of imitation and its files."""

  def __init__(self, agent: LearningAgent, options: ImitationOptions, run_dir: pathlib.Path,
               data: games.GamesDataset, origin: float):
    """Builds the update; resumes from the newest checkpoint where there is one."""
    self._agent, self._run_dir, self._data = agent, run_dir, data
    self._options = options
    optimizer = imitation_setup.make_optimizer(options)
    self._update = imitation_setup.make_update(agent, options, optimizer)
    self._evaluate = imitation_setup.Evaluator(agent, options, data)
    self._saved = checkpoints.Checkpoints(
      run_dir / run_files.IMITATION, agent.config, options.keep_last)
    self._best = imitation_setup.BestSnapshot(agent, run_dir)
    state = train_state.initial_state(
      agent.initial_params(), optimizer, jax.random.key(options.seed))
    carry = imitation_setup.empty_carry(agent, options.batch_size)
    self.position = Position()
    found = self._saved.restore(Saved(state.params, state._replace(params=()), carry))
    if found is not None:
      state, carry = found.state.train._replace(params=found.state.params), found.state.carry
      self.position = Position(**found.extra)
      logging.info("restored update=%d phase=%d", found.step, self.position.phase)
    self._step, self._rate, self._batches = int(state.step), math.nan, 0
    self._state = self._update.replicate(state)
    self._carry = self._update.place_carry(carry)
    self.log = MetricsLog(run_dir, origin, self._step, options.steps_per_update,
                          options.log_interval_s, "imitation/", options.wandb)

  def run(self, number: int, phase: Phase) -> bool:
    """Runs a phase from its beginning or from the position; returns whether it is complete.

    A complete phase continues if its limits have been raised.
    """
    self._batches = games.num_batches(
      self._data, phase.rows, self._options.batch_size, self._options.unroll_length,
      self._options.seed)
    if number > self.position.phase:
      self.position = Position(phase=number)
    elif self.position.complete and self._done(phase, self.position, self.position.seconds) >= 1.0:
      return True
    progress.write(self._run_dir, progress.Progress(
      progress.IMITATION, detail="compiling the imitator"))
    self.position = self.position._replace(complete=False)
    if number > 0 and self.position.epoch == self.position.batch == 0:
      # The best parameters go on; the optimizer keeps its moments.
      self._set_params(checkpoints.load_params(self._run_dir / run_files.IMITATED))
      self._measure(phase)
    source = imitation_setup.batches(self._data, phase, self._options, self.position)
    with prefetch.prefetch(source, self._place, timeout=self._options.timeout_s) as batches:
      with compiling.without_collection():
        self._compile()
      complete = self._learn(phase, batches)
    if complete:
      self._measure(phase)
    self.move_to(self.position._replace(complete=complete))
    logging.info("stopped update=%d phase=%s complete=%s", self._step, phase.name, complete)
    return complete

  def move_to(self, position: Position) -> None:
    """Saves a checkpoint with a position."""
    self.position = position
    state = update.unreplicate(self._state)
    carry = jax.tree.map(lambda x: jax.device_get(x).reshape(-1, *x.shape[2:]), self._carry)
    self._saved.save(self._step, Saved(state.params, state._replace(params=()), carry),
                     position._replace(dataset=self._data.digest)._asdict())

  def _learn(self, phase: Phase, batches: prefetch.Prefetch) -> bool:
    """Learns batches to the phase's limit; returns False if a signal stops it before."""
    stop = stopping.stop_event()
    watch = guard.Guard(self._run_dir / "diagnosis", self._options.max_skipped,
                        readable=jax.vmap(self._readable))
    before, begun = self.position.seconds, time.time()
    measured = begun
    saved = begun if self._saved.steps() else -math.inf  # a run's first update is saved at once
    for position, chunks in batches:
      self._set_rate(self._rate_at(phase, position, before + time.time() - begun))
      chunks = chunks._replace(carry=self._carry)
      self._state, values, self._carry = self._update.carried(self._state, chunks)
      watch.check(values, chunks)
      self._step += 1
      now = time.time()
      self.position = position._replace(seconds=before + now - begun)
      if self.log(self._step, {**values, "learning_rate": self._rate}, batches.waiting()):
        self._report(phase)
      if stop.is_set() or 0 < phase.seconds <= self.position.seconds:
        break
      if now - measured >= self._options.evaluate_interval_s:
        self._measure(phase)
        measured = saved = time.time()
      elif now - saved >= self._options.checkpoint_interval_s:
        self.move_to(self.position)
        saved = time.time()
    else:  # the last epoch is over; it may have fewer batches than the first, which `_done` counts
      self.position = self.position._replace(epoch=phase.epochs, batch=0)
    watch.finish()
    return not stop.is_set()

  def _measure(self, phase: Phase) -> None:
    """Records the held-out figures, and keeps the best parameters.

    The checkpoint comes first: a resumed run must not be behind the snapshot.
    """
    self.move_to(self.position)
    params = update.unreplicate(self._state.params)
    found = self._evaluate(params, phase.held_out)
    loss = found.pop("loss")
    self.log.write(self._step, {"loss/held_out": loss} | {
      f"held_out/{name}": value for name, value in found.items()})
    if loss < self._best.loss(phase):
      self._best.save(self._step, params, phase, loss)

  def _rate_at(self, phase: Phase, position: Position, seconds: float) -> float:
    return imitation_setup.learning_rate(
      phase, self._done(phase, position, seconds), self._options.warm_up, self._options.final_rate)

  def _done(self, phase: Phase, position: Position, seconds: float) -> float:
    """Returns the share of the phase that is over, by the limit that is nearer."""
    shares = [seconds / phase.seconds] if phase.seconds else []
    if phase.epochs:
      shares.append((position.epoch + position.batch / self._batches) / phase.epochs)
    return min(1.0, max(shares))

  def _set_rate(self, rate: float) -> None:
    if rate != self._rate:
      self._rate, self._state = rate, train_state.with_learning_rate(self._state, rate)

  def _set_params(self, params: Any) -> None:
    self._state = self._update.replicate(
      update.unreplicate(self._state)._replace(params=params))

  def _report(self, phase: Phase) -> None:
    done = self._done(phase, self.position, self.position.seconds)
    detail = "" if phase.name == "imitation" else phase.name
    if phase.seconds:
      progress.write(self._run_dir, progress.Progress(
        progress.IMITATION, self.position.seconds, phase.seconds, "s", detail))
    else:
      progress.write(self._run_dir, progress.Progress(
        progress.IMITATION, done * phase.epochs, phase.epochs, "epochs", detail))

  def _place(self, item: tuple[Position, ordering.OrderedBatch]
             ) -> tuple[Position, supervised.Chunks]:
    return item[0], self._update.place(imitation_setup.chunks_of(item[1]))

  def _readable(self, chunks: supervised.Chunks) -> Any:
    return wire.unpack(wire.Packed(*chunks.columns, chunks.carry.state), self._agent.config)

  def _compile(self) -> None:
    """Compiles the update: an update of a copy of the state by an empty batch."""
    copy = self._update.replicate(update.unreplicate(self._state))
    chunks = self._update.place(imitation_setup.empty_chunks(self._agent, self._options))
    jax.block_until_ready(self._update.carried(copy, chunks._replace(carry=self._carry))[1])
