"""The learners of a league's players in one process: they take turns with one compiled update.

Each player has its own parameters, optimizer state, table of trajectories, checkpoints and results.
A process of a large league trains one player on all its devices; on one machine, a process trains
all of them.
"""

import contextlib
import functools
import math
import pathlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from absl import logging

from starleague import league
from starleague.common import compiling, progress, results, run_files, stopping
from starleague.common.errors import UserError
from starleague.data import checkpoints, wire
from starleague.data.reverb import sampler, transport
from starleague.league import players as league_players
from starleague.league.run_copy import RunCopy
from starleague.learner import prefetch, train_state, update
from starleague.learner.loops import chief, league_population, reinforcement_setup
from starleague.learner.loops.options import LearnerProcess, LearningAgent, ReinforcementOptions

ORDERS_INTERVAL_S = 5.0
IDLE_S = 0.005  # between two looks for a batch when no player has one


class PlayerLearner:
  """A learning player: its state, its batches and its files."""

  def __init__(self, name: str, agent: LearningAgent, options: ReinforcementOptions,
               process: LearnerProcess, other: reinforcement_setup.Learner | None,
               number: int | None = None):
    """Restores the player, or starts it from the run's initial parameters.

    Args:
      name: of the player.
      agent: that learns.
      options: of the learner.
      process: its place in the run.
      other: learner of another player, whose compiled update this one shares.
      number: of the player in the league; None: it is in no population.
    """
    self.name, self._agent, self._options, self._process = name, agent, options, process
    self._folder = folder = run_files.learner_dir(process.run_dir, name)
    self._saved = checkpoints.Checkpoints(
      folder / run_files.CHECKPOINTS, agent.config, options.keep_last,
      options.keep_every or None)
    self.learner = reinforcement_setup.make_learner(
      agent, options, process.run_dir, self._saved, other)
    self.step = int(update.unreplicate(self.learner.state.step))
    self.member = self._find_member(number)
    self._apply()
    self._duties = chief.ChiefDuties(
      options, process._replace(run_dir=folder), self._saved, name)
    self._watch = reinforcement_setup.make_guard(agent, options, folder)
    self.trained_seconds = self.learner.trained_seconds  # of the league
    self.batches: prefetch.Prefetch[wire.Packed]
    self._data: sampler.Dataset
    self._stop: threading.Event  # of the run
    self._duties.publish(self.learner.state, self.step)

  @property
  def steps(self) -> int:
    """Agent steps learnt from so far."""
    return self.step * self._options.steps_per_update

  @property
  def policy_steps(self) -> int:
    """Agent steps that the policy has learnt from, after the warm-up of the value functions.

    Snapshots follow these: one within the warm-up would be the policy of the one before.
    """
    return max(self.step - self._options.value_warm_up, 0) * self._options.steps_per_update

  def _find_member(self, number: int | None) -> league_population.Member | None:
    """Returns the player's place in its population, restored or new."""
    options, stored = self._options.population, self.learner.extra.get("population")
    if options is None or number is None:
      return None
    if stored is not None:
      return league_population.restored(options, stored)
    member = league_population.first(options, self._options.seed, number)
    self._record(member.hyperparameters)
    return member

  def _record(self, hyperparameters: Mapping[str, float],
              others: Mapping[str, float] = MappingProxyType({})) -> None:
    """Adds hyperparameters, and other values by tag, to the player's results."""
    seconds = time.time() - self._process.origin
    self._folder.mkdir(parents=True, exist_ok=True)
    results.append(self._folder / results.FILE_NAME, [
      results.Row(seconds, self.step, tag, value) for tag, value in (
        *((f"population/{name}", value) for name, value in hyperparameters.items()),
        *others.items())])

  def _apply(self) -> None:
    """Makes the updates use the player's hyperparameters."""
    options, state = self._options.population, self.learner.state
    if options is None:
      return
    if self.member is not None and league_population.LEARNING_RATE in options.ranges:
      # On the host: a checkpoint may follow before the next update.
      state = self.learner.update.replicate(train_state.with_learning_rate(
        update.unreplicate(state),
        self.member.hyperparameters[league_population.LEARNING_RATE]))
    self.learner = self.learner._replace(state=state, factors=self.learner.update.replicate(
      league_population.factors(options, self.member)))

  def _save(self, now: bool = False, waiting: bool = False) -> None:
    extra = {} if self.member is None else {"population": {
      "hyperparameters": dict(self.member.hyperparameters), "decisions": self.member.decisions}}
    self._duties.save(
      self.learner.state, self.step, self.trained_seconds, now=now, waiting=waiting, extra=extra)

  def count_decision(self) -> None:
    """Counts a decision of the population; the results show the values until then."""
    assert self.member is not None
    self.member = self.member._replace(decisions=self.member.decisions + 1)
    self._record(self.member.hyperparameters)

  def adopt(self, source: "PlayerLearner", decision: league_population.Decision,
            lead: float) -> None:
    """Copies weights and optimizer state of another player, and takes new hyperparameters.

    The number of updates goes on. A checkpoint is saved: after a kill before it the decision is
    made again.

    Args:
      source: the other player.
      decision: with the new hyperparameters.
      lead: of its score.
    """
    assert self.member is not None
    own, copied = (update.unreplicate(each.learner.state) for each in (self, source))
    self.learner = self.learner._replace(state=self.learner.update.replicate(copied._replace(
      step=own.step, key=own.key, skipped=own.skipped,
      consecutive_skipped=own.consecutive_skipped)))
    self.member = self.member._replace(hyperparameters=decision.hyperparameters)
    self._apply()
    self._save(now=True)
    self._record(decision.hyperparameters, {f"copied/{source.name}": lead})
    logging.info("player=%s copied=%s lead=%.3f update=%d %s", self.name, source.name, lead,
                 self.step, " ".join(f"{name}={value:.3g}" for name, value
                                     in decision.hyperparameters.items()))
    self._duties.publish_now(self.learner.state, self.step, self._stop)

  def open(self, stack: contextlib.ExitStack, stop: threading.Event) -> None:
    """Starts to fetch batches until the stack is closed or `stop` is set.

    One player may be without batches for ever, as a paused one. `_take_turns` has the deadline.
    """
    self._stop = stop
    self._data = stack.enter_context(sampler.Dataset(
      self._process.address, self.name, self._options.batch_size, self._agent.config,
      self._options.unroll_length, self._options.timeout_s, stop=stop, starved_s=math.inf))
    self.batches = stack.enter_context(prefetch.prefetch(
      self._data, self.learner.update.place, timeout=self._options.timeout_s))
    stack.callback(self.end_batches)  # before the prefetch is closed: its thread waits in the data

  def end_batches(self) -> None:
    """Ends the batches without a wait. A thread that waits inside Reverb cannot be ended."""
    self._data.close(0.0)

  def advance(self) -> bool:
    """Does one update with the next batch; returns whether there was one, none after a stop."""
    batch = next(self.batches, None)
    if batch is None:
      return False
    state, values = self.learner.update(
      self.learner.state, batch, self.learner.teacher, self.learner.factors)
    self.learner = self.learner._replace(state=state)
    self._watch.check(values, batch)
    self.step += 1
    self._duties.log(self.step, values, self.batches.waiting())
    self._duties.publish(state, self.step)
    self._save()
    return True

  def skip(self) -> bool:
    """Drops the next batch; returns whether there was one, none after a stop.

    A table that none reads would stop the actors of the other players.
    """
    return next(self.batches, None) is not None

  def execute_orders(self, client: league.LeagueClient) -> None:
    """Reports the steps, publishes the parameters, and carries out the coordinator's orders.

    A data server that was restarted has no parameters, and actors give no batches without them.
    A checkpoint is saved if it is due: the learner may wait for batches until its deadline.
    Each order is carried out completely before it is completed: after a kill it is done again.
    """
    client.set_steps(self.name, self.policy_steps)
    self._duties.publish(self.learner.state, self.step)
    self._save(waiting=True)
    for order in client.orders(self.name):
      run, name = RunCopy(self._process.run_dir, client), run_files.snapshot_name(order.snapshot)
      if not run.fetch(name) and not (run.run_dir / name).exists():
        checkpoints.save_params(
          run.run_dir / name, update.unreplicate(self.learner.state.params),
          self._agent.config, self.step)
      run.send(name)
      if order.reset:
        self.learner = reinforcement_setup.reset(
          self.learner, self._agent, self._options, self._process.run_dir)
        self._apply()
        self._save(now=True)
        # Scores are cleared as the order is completed: games of later assignments count, and need
        # the new policy.
        self._duties.publish_now(self.learner.state, self.step, self._stop)
      client.complete(order.id)
      logging.info("player=%s snapshot=%s update=%d reset=%s", self.name, order.snapshot, self.step,
                   order.reset)

  def close(self) -> None:
    """Saves a checkpoint and closes the files."""
    self._watch.finish()
    self._save(now=True)
    self._duties.close()


def next_ready(learners: Sequence[PlayerLearner]) -> PlayerLearner | None:
  """Returns the player with a batch that has the fewest updates; None if no player has one.

  A player without a batch is never waited for: its actors may wait for another player's table to be
  read.
  """
  ready = [learner for learner in learners if learner.batches.ready]
  return min(ready, key=lambda learner: learner.step, default=None)


def learn(agent: LearningAgent, options: ReinforcementOptions, process: LearnerProcess,
          client: league.LeagueClient, names: Sequence[str] = ()) -> bool:
  """Trains players of a league until the process is stopped or the training time is over.

  Args:
    agent: that learns.
    options: of the learner.
    process: its place in the run.
    client: of the league's coordinator; closed at the end.
    names: of the players; empty: all that learn.

  Returns:
    Whether the time or the updates are over.

  Raises:
    UserError: a player does not learn in the league.
  """
  stopping.end_at_once()  # nothing to save before the first update
  # A learner of some players leaves the sums over all to the readers of their results.
  report = None if names else functools.partial(_report, process)
  players = client.players()
  names = _trained_names(players, names)
  _share_initial(agent, RunCopy(process.run_dir, client))
  learners: list[PlayerLearner] = []
  grouped = league_population.groups(players) if options.population else {}
  numbers = {player.name: number for number, player in enumerate(players)}
  for name in names:
    other = learners[0].learner if learners else None
    learners.append(PlayerLearner(
      name, agent, options, process, other, numbers[name] if name in grouped else None))
  progress.write(process.run_dir, progress.Progress(progress.SETUP, detail="compiling the update"))
  with compiling.without_collection():
    reinforcement_setup.compile_ahead(learners[0].learner, agent, options)
  progress.write(
    process.run_dir, progress.Progress(progress.SETUP, detail="waiting for trajectories"))
  stop = stopping.stop_event()
  with contextlib.suppress(transport.StoppedError), contextlib.ExitStack() as stack:
    for learner in learners:
      learner.open(stack, stop)
    mains = {player.name for player in players if player.kind == league_players.MAIN}
    # Learners of some players end together: a table that none reads would stop the actors.
    league_time = _own_time if report is not None else client.training_time
    _take_turns(learners, client, options, process.run_dir, stop, report, mains, league_time)
    for learner in learners:  # their threads end together
      learner.end_batches()
  for learner in learners:
    learner.close()
  client.close()
  return not stop.is_set()


def _trained_names(players: Sequence[league.Player], names: Sequence[str]) -> list[str]:
  """Returns the names of the players to train: those given, or all that learn.

  Raises:
    UserError: a player does not learn in the league.
  """
  learning = [player.name for player in players if player.learns]
  unknown = [name for name in names if name not in learning]
  if unknown:
    raise UserError(f"players to train: expected some of {', '.join(learning)}, which learn in the "
                    f"league, found {', '.join(unknown)}")
  return list(names) or learning


def _share_initial(agent: LearningAgent, run: RunCopy) -> None:
  """Makes the initial snapshot, or takes the one of another learner, and gives it to the actors."""
  run.fetch(run_files.INITIAL)
  reinforcement_setup.initial_snapshot(agent, run.run_dir)
  run.send(run_files.INITIAL)


def _report(process: LearnerProcess, updates: int, learnt: int, rate: float) -> None:
  """Adds the sums over all players to the run's results."""
  seconds = time.time() - process.origin
  results.append(process.run_dir / results.FILE_NAME, [
    results.Row(seconds, updates, "total/steps_learnt", learnt),
    results.Row(seconds, updates, "speed/learner", rate)])


def _own_time(seconds: float) -> float:
  """Returns a learner's training time as the league's: it trains all players."""
  return seconds


def _take_turns(learners: Sequence[PlayerLearner], client: league.LeagueClient,
                options: ReinforcementOptions, run_dir: pathlib.Path, stop: threading.Event,
                report: Callable[[int, int, float], None] | None,
                mains: Collection[str] = (),
                league_time: Callable[[float], float] = _own_time) -> None:
  """Updates whichever player has a batch, until time or updates are over or `stop` is set.

  Main agents, `mains`, that have their updates drop their batches until the others have theirs.
  The time counts from the first update: before it actors compile.
  `league_time` takes this learner's training time, and returns the league's.
  """
  before = league_time(max(learner.trained_seconds for learner in learners))
  if before >= options.league_seconds or _have_updates(learners, options, mains):
    return  # resumed after its end
  asked = arrived = time.monotonic()
  begun: float | None = None
  steps = sum(learner.steps for learner in learners)
  while not stop.is_set():
    now = time.monotonic()
    if now - asked >= ORDERS_INTERVAL_S:
      learnt = sum(learner.steps for learner in learners)
      if report is not None:
        updates = sum(learner.step for learner in learners)
        report(updates, learnt, (learnt - steps) / (now - asked))
      asked, steps = now, learnt
      own = before + (now - begun if begun else 0.0)
      done = league_time(own)
      before += done - own
      for learner in learners:
        learner.trained_seconds = done
        learner.execute_orders(client)
      if options.population is not None:
        league_population.exploit(learners, client, options.population, options.seed)
      if begun:
        progress.write(
          run_dir, progress.Progress(progress.TRAINING, done, options.league_seconds, "s"))
      if done >= options.league_seconds:
        return
    ready = next_ready(learners)
    if ready is not None:
      begun = begun or now
      if not (ready.skip() if _has_updates(ready, options, mains) else ready.advance()):
        return
      arrived = time.monotonic()
      if _have_updates(learners, options, mains):
        return
    elif now - arrived > options.timeout_s:
      raise transport.StarvedError(
        f"no player had a batch within {options.timeout_s:.0f} s: check that actors run.")
    else:
      stop.wait(IDLE_S)


def _have_updates(learners: Sequence[PlayerLearner], options: ReinforcementOptions,
                  mains: Collection[str]) -> bool:
  """Whether all players together, or each main agent, have the updates that end the league."""
  if 0 < options.updates <= sum(learner.step for learner in learners):
    return True
  own = [learner for learner in learners if learner.name in mains]
  return bool(own) and all(_has_updates(learner, options, mains) for learner in own)


def _has_updates(learner: PlayerLearner, options: ReinforcementOptions,
                 mains: Collection[str]) -> bool:
  """Whether a player is a main agent with all of its updates."""
  return learner.name in mains and 0 < options.main_updates <= learner.step
