"""The learners of a league's players in one process: they take turns with one compiled update.

Each player has its own parameters, optimizer state, table of trajectories, checkpoints and results.
A process of a large league trains one player on all its devices; on one machine, a process trains
all of them.
"""

import contextlib
import functools
import pathlib
import threading
import time
from collections.abc import Callable, Sequence

import ml_collections
from absl import logging

from starleague import league
from starleague.actor.parts import Parts
from starleague.common import compiling, progress, results, run_files, stopping
from starleague.data import checkpoints, wire
from starleague.data.reverb import datasets, transport
from starleague.experiments.run.learners import chief, reinforcement_setup
from starleague.learner import prefetch, update

ORDERS_INTERVAL_S = 5.0
IDLE_S = 0.005  # between two looks for a batch when no player has one


class Trainee:
  """A learning player: its state, its batches and its files."""

  def __init__(self, name: str, parts: Parts, config: ml_collections.ConfigDict,
               run_dir: pathlib.Path, address: str, origin: float,
               other: reinforcement_setup.Learner | None):
    """Restores the player, or starts it from the run's initial parameters.

    Args:
      name: of the player.
      parts: the agent and its environment.
      config: the run's config.
      run_dir: the run's directory.
      address: host:port of the data server.
      origin: start of the run, in Unix seconds.
      other: learner of another player, whose compiled update this one shares.
    """
    self.name, self._parts, self._config, self._run_dir = name, parts, config, run_dir
    folder = run_files.learner_dir(run_dir, name)
    self._saved = checkpoints.Checkpoints(
      folder / run_files.CHECKPOINTS, parts.config, config.learner.keep_last,
      config.learner.keep_every or None)
    self.learner = reinforcement_setup.make_learner(parts, config, run_dir, self._saved, other)
    self.step = int(update.unreplicate(self.learner.state.step))
    self._first = chief.FirstHost(config, folder, address, origin, self._saved, name)
    self._watch = reinforcement_setup.make_guard(parts, config, folder)
    self._address = address
    self.trained = self.learner.trained_seconds  # of the league
    self.batches: prefetch.Prefetch[wire.Packed]
    self._first.publish(self.learner.state, self.step)

  @property
  def steps(self) -> int:
    """Agent steps learnt from so far."""
    return self.step * self._config.learner.batch_size * self._config.unroll_length

  def open(self, stack: contextlib.ExitStack, stop: threading.Event) -> None:
    """Starts to fetch batches until the stack is closed or `stop` is set."""
    data = stack.enter_context(datasets.dataset(
      self._address, self._config.learner.batch_size, self.name, self._parts.config,
      self._config.unroll_length, deadline_s=self._config.data.timeout_s, stop=stop))
    self.batches = stack.enter_context(prefetch.prefetch(
      data, self.learner.update.place, timeout=self._config.data.timeout_s))
    stack.callback(data.close)  # before the prefetch is closed: its thread waits in the data

  def advance(self) -> bool:
    """Does one update with the next batch; returns whether there was one, none after a stop."""
    batch = next(self.batches, None)
    if batch is None:
      return False
    state, values = self.learner.update(self.learner.state, batch, self.learner.teacher)
    self.learner = self.learner._replace(state=state)
    self._watch.check(values, batch)
    self.step += 1
    self._first.log(self.step, values, self.batches.waiting())
    self._first.publish(state, self.step)
    self._first.save(state, self.step, self.trained)
    return True

  def obey(self, client: league.LeagueClient) -> None:
    """Reports the steps, publishes the parameters, and carries out the coordinator's orders.

    A data server that was restarted has no parameters, and actors give no batches without them.
    Each order is carried out completely before it is completed: after a kill it is done again.
    """
    client.set_steps(self.name, self.steps)
    self._first.publish(self.learner.state, self.step)
    for order in client.orders(self.name):
      path = run_files.snapshot_path(self._run_dir, order.snapshot)
      if not path.exists():
        checkpoints.save_params(path, update.unreplicate(self.learner.state.params),
                                self._parts.config, self.step)
      if order.reset:
        self.learner = reinforcement_setup.reset(
          self.learner, self._parts, self._config, self._run_dir)
        self._first.save(self.learner.state, self.step, self.trained, now=True)
        self._first.publish(self.learner.state, self.step)
      client.complete(order.id)
      logging.info("player=%s snapshot=%s update=%d reset=%s", self.name, order.snapshot, self.step,
                   order.reset)

  def close(self) -> None:
    """Saves a checkpoint and closes the files."""
    self._watch.finish()
    self._first.save(self.learner.state, self.step, self.trained, now=True)
    self._first.close()


def next_ready(trainees: Sequence[Trainee]) -> Trainee | None:
  """Returns the player with a batch that has the fewest updates; None if no player has one.

  A player without a batch is never waited for: its actors may wait for another player's table to be
  read.
  """
  ready = [trainee for trainee in trainees if trainee.batches.ready]
  return min(ready, key=lambda trainee: trainee.step, default=None)


def learn(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
          address: str, coordinator: str, origin: float, names: Sequence[str] = ()) -> bool:
  """Trains players of a league until the process is stopped or the training time is over.

  Args:
    parts: the agent and its environment.
    config: the run's config.
    run_dir: the run's directory.
    address: host:port of the data server.
    coordinator: host:port of the league's coordinator.
    origin: start of the run, in Unix seconds.
    names: of the players; empty: all that learn.

  Returns:
    Whether the time or the updates are over.
  """
  stopping.end_at_once()  # nothing to save before the first update
  client = league.LeagueClient(league.GrpcTransport(coordinator), "learner")
  # A learner of some players leaves the sums over all to the readers of their results.
  report = None if names else functools.partial(_report, run_dir, origin)
  names = list(names) or [player.name for player in client.players() if player.learns]
  trainees: list[Trainee] = []
  for name in names:
    other = trainees[0].learner if trainees else None
    trainees.append(Trainee(name, parts, config, run_dir, address, origin, other))
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="compiling the update"))
  with compiling.without_collection():
    reinforcement_setup.compile_ahead(trainees[0].learner, parts, config)
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="waiting for trajectories"))
  stop = stopping.stop_event()
  with contextlib.suppress(transport.StoppedError), contextlib.ExitStack() as stack:
    for trainee in trainees:
      trainee.open(stack, stop)
    _take_turns(trainees, client, config, run_dir, stop, report)
  for trainee in trainees:
    trainee.close()
  client.close()
  return not stop.is_set()


def _report(run_dir: pathlib.Path, origin: float, updates: int, learnt: int, rate: float) -> None:
  """Adds the sums over all players to the run's results."""
  seconds = time.time() - origin
  results.append(run_dir / results.FILE_NAME, [
    results.Row(seconds, updates, "total/steps_learnt", learnt),
    results.Row(seconds, updates, "speed/learner", rate)])


def _take_turns(trainees: Sequence[Trainee], client: league.LeagueClient,
                config: ml_collections.ConfigDict, run_dir: pathlib.Path, stop: threading.Event,
                report: Callable[[int, int, float], None] | None) -> None:
  """Updates whichever player has a batch, until time or updates are over or `stop` is set.

  The time counts from the first update: before it actors compile.
  """
  before = max(trainee.trained for trainee in trainees)
  asked = arrived = time.monotonic()
  begun: float | None = None
  steps = sum(trainee.steps for trainee in trainees)
  while not stop.is_set():
    now = time.monotonic()
    if now - asked >= ORDERS_INTERVAL_S:
      learnt = sum(trainee.steps for trainee in trainees)
      if report is not None:
        report(sum(trainee.step for trainee in trainees), learnt, (learnt - steps) / (now - asked))
      asked, steps = now, learnt
      done = before + (now - begun if begun else 0.0)
      for trainee in trainees:
        trainee.trained = done
        trainee.obey(client)
      if begun:
        progress.write(
          run_dir, progress.Progress(progress.TRAINING, done, config.league.seconds, "s"))
      if done >= config.league.seconds:
        return
    ready = next_ready(trainees)
    if ready is not None:
      begun = begun or now
      if not ready.advance():
        return
      arrived = time.monotonic()
      if 0 < config.learner.updates <= sum(trainee.step for trainee in trainees):
        return
    elif now - arrived > config.data.timeout_s:
      raise transport.StarvedError(
        f"no player had a batch within {config.data.timeout_s:.0f} s: check that actors run.")
    else:
      stop.wait(IDLE_S)
