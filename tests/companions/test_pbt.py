"""Population-based training: ranges, copies of weights and hyperparameters, resumed members."""

import dataclasses
import threading
import types

import jax
import numpy as np
import pytest

from starleague.common import run_files
from starleague.companions import acting, impala, pbt, training
from starleague.companions.options import RunOptions
from starleague.companions.system import inputs_spec
from starleague.data.checkpoints import CheckpointDamagedError, load_params
from starleague.learner.evolution import Range, truncation_selection
from starleague.learner.population import Exploit, Population
from tests.companions.catch import make_catch

CONFIG = impala.Config(torso="dense", size=8)
ROUND = 8 * 4
RANGES = {"learning_rate": Range(1e-4, 1e-2), "entropy_cost": Range(1e-4, 1e-1)}


def open_population(folder):
  return Population(folder / "population.sqlite", "impala", RANGES, 2 * ROUND,
                    truncation_selection)


def log_of(returns):
  """Returns a log of episodes with these returns."""
  log = acting.EpisodeLog(make_catch(1), 0)
  found = np.array(returns, np.float32)[:, None]
  log.add(acting.Episodes(np.ones(found.shape, bool), found, np.ones(found.shape, np.int32)))
  return log


def train(folder, number, rounds, population, returns=None, interval=2 * ROUND, stop_after=0):
  """Trains a member.

  Args:
    returns: of its episodes, instead of their own.
    interval: steps between two reports.
    stop_after: rounds after which it is stopped; 0: never.
  """
  options = RunOptions(task="catch", seed=number, steps=ROUND * rounds, copies=8, unroll_length=4,
                       batch_size=8)
  task = make_catch(8)
  system = impala.make(CONFIG, task, inputs_spec(task))
  worker = pbt.Worker(population, f"m{number}", 0, number, interval, copies=True)
  run_dir = folder / f"m{number}"
  worker.discard_later(run_dir)
  seen, stop = [], threading.Event()

  def after_round(run, episodes):
    seen.append(run.counts.steps)
    if len(seen) == stop_after:
      stop.set()
    worker(run, episodes if returns is None else log_of(returns))

  trained = training.train(system, task, options, dataclasses.asdict(CONFIG), run_dir, stop,
                           lambda *_: None, worker.member.hyperparameters, after_round)
  return trained, worker, seen


@pytest.fixture(scope="module")
def populated(tmp_path_factory):
  """A good member that trained first, and one with bad returns."""
  folder = tmp_path_factory.mktemp("population")
  population = open_population(folder)
  good, good_worker, _ = train(folder, 0, 4, population, returns=[1.0] * 10)
  bad, bad_worker, seen = train(folder, 1, 2, population, returns=[-1.0] * 10)
  return folder, population, good_worker, bad_worker, seen


def test_a_worse_member_copies_a_better_one_when_it_is_ready(populated):
  folder, population, good, bad, _ = populated
  # The last report of a run decides nothing: the bad member ended before it could copy.
  assert bad.member.hyperparameters == population.members()[1].hyperparameters
  trained, worker, _ = train(folder, 1, 6, population, returns=[-1.0] * 10)
  changes = [change for change in population.history() if change.source is not None]
  assert [(change.member, change.source) for change in changes[:1]] == [("m1", "m0")]
  before = good.member.hyperparameters
  for name, value in changes[0].hyperparameters.items():
    low, high, _ = RANGES[name]
    assert value in (pytest.approx(np.clip(before[name] * factor, low, high))
                     for factor in (0.8, 1.2))
  assert worker.member.hyperparameters == changes[-1].hyperparameters


def test_a_report_holds_the_episodes_since_the_last_one(tmp_path):
  population = open_population(tmp_path)
  worker = pbt.Worker(population, "m0", 0, 0, interval=10, copies=True)
  run = types.SimpleNamespace(options=types.SimpleNamespace(steps=1000), save=lambda: tmp_path)
  log, found = log_of([1.0, 2.0, 3.0]), []
  for steps, returns in ((10, []), (15, [4.0]), (20, []), (30, []), (31, [5.0] * 11)):
    run.counts = training.Counts(steps=steps)
    log.add(acting.Episodes(np.ones((len(returns), 1), bool), np.array(returns)[:, None],
                            np.ones((len(returns), 1), np.int32)))
    worker(run, log)
    member, = population.members()
    found.append((member.step, member.evaluations))
  assert found == [(10, (1.0, 2.0, 3.0)), (10, (1.0, 2.0, 3.0)), (20, (1.0, 2.0, 3.0, 4.0)),
                   (20, (1.0, 2.0, 3.0, 4.0)), (31, (5.0,) * 10)]


@pytest.mark.parametrize("error", [FileNotFoundError, CheckpointDamagedError])
def test_a_member_continues_if_the_checkpoint_to_copy_is_gone(tmp_path, monkeypatch, error):
  """A checkpoint that its owner removes during the reading has lost some of its files."""
  population = open_population(tmp_path)
  worker = pbt.Worker(population, "m0", 0, 0, interval=10, copies=True)
  exploit = Exploit("m1", tmp_path / "000000000001", {"learning_rate": 1e-3, "entropy_cost": 1e-2})
  monkeypatch.setattr(population, "decide", lambda *arguments: exploit)
  loads = []

  def load(path):
    loads.append(path)
    raise error("gone")

  run = types.SimpleNamespace(
    options=types.SimpleNamespace(steps=1000), counts=training.Counts(steps=10), load=load,
    save=lambda: tmp_path)
  before = worker.member
  worker(run, log_of([1.0]))
  assert loads == [exploit.checkpoint] and worker.member == before
  assert [change.source for change in population.history()] == [None]


def test_a_copy_may_refresh_the_target_network(tmp_path, monkeypatch):
  """It takes a number of updates: that of a refresh must not pass without one."""
  population = open_population(tmp_path)
  worker = pbt.Worker(population, "m0", 0, 0, 4 * ROUND, copies=True)
  monkeypatch.setattr(population, "decide", lambda rng, name: Exploit(
    name, population.members()[0].checkpoint, dict(worker.member.hyperparameters)))
  options = RunOptions(task="catch", steps=5 * ROUND, copies=8, unroll_length=4, batch_size=8,
                       target_period=3)
  task = make_catch(8)
  system = impala.make(CONFIG, task, inputs_spec(task))
  found = []

  def after_round(run, episodes):
    worker(run, log_of([0.0]))
    found.append((run.counts.updates, *(np.asarray(tree["policy"]["w"][0])
                                        for tree in (run._target, run.state.params))))

  training.train(system, task, options, dataclasses.asdict(CONFIG), tmp_path, threading.Event(),
                 lambda *_: None, {}, after_round)
  assert [updates for updates, *_ in found] == [0, 0, 1, 3, 3]  # the copy follows the second
  for _, target, own in found[:1] + found[3:]:
    np.testing.assert_array_equal(target, own)
  assert (found[3][1] != found[2][1]).any()


def test_copied_weights_are_those_of_the_source(populated, tmp_path):
  folder, population, good, *_ = populated
  task = make_catch(8)
  system = impala.make(CONFIG, task, inputs_spec(task))
  options = RunOptions(task="catch", seed=5, steps=ROUND, copies=8, unroll_length=4, batch_size=8)
  source = population.members()[0].checkpoint
  found = []

  def after_round(run, episodes):
    key = jax.random.key_data(training.update.unreplicate(run.state.key))
    run.load(source)
    run.tune({"learning_rate": 1e-3})
    after = training.update.unreplicate(run.state)
    found.append((key, jax.random.key_data(after.key), after))

  training.train(system, task, options, dataclasses.asdict(CONFIG), tmp_path, threading.Event(),
                 lambda *_: None, {}, after_round)
  key, key_after, state = found[0]
  np.testing.assert_array_equal(key, key_after)
  assert state.step == 0  # its own count
  jax.tree.map(np.testing.assert_array_equal, state.params, load_params(source))


def test_a_copy_has_the_optimizer_state_of_its_source(tmp_path):
  task = make_catch(8)
  system = impala.make(CONFIG, task, inputs_spec(task))
  options = RunOptions(task="catch", steps=4 * ROUND, copies=8, unroll_length=4, batch_size=8)
  saved, states = [], []

  def after_round(run, episodes):
    saved.append(run.save())
    states.append(training.update.unreplicate(run.state))
    if len(saved) == 4:
      run.load(saved[2])
      states.append(training.update.unreplicate(run.state))

  training.train(system, task, options, dataclasses.asdict(CONFIG), tmp_path, threading.Event(),
                 lambda *_: None, {}, after_round)
  first, second, copied = (jax.tree.leaves(state.opt_state) for state in states[2:])
  changed = [(before != after).any() for before, after in zip(first, second, strict=True)]
  assert sum(changed) > 2, first  # its own optimizer has made other updates
  jax.tree.map(np.testing.assert_array_equal, copied, first)


def test_checkpoints_that_the_population_does_not_know_are_discarded(tmp_path):
  population = open_population(tmp_path)
  train(tmp_path, 0, 2, population, returns=[0.0])
  checkpoints = tmp_path / "m0" / run_files.CHECKPOINTS
  known = sorted(path.name for path in checkpoints.iterdir())
  (checkpoints / "000000099999").mkdir()
  worker = pbt.Worker(population, "m0", 0, 0, ROUND, copies=True)
  worker.discard_later(tmp_path / "m0")
  assert sorted(path.name for path in checkpoints.iterdir()) == known
  assert worker.member.step == 2 * ROUND


def test_a_stopped_member_continues_from_its_last_report(tmp_path, monkeypatch):
  """Checkpoints between two reports would remove the reported one."""
  monkeypatch.setattr(training, "CHECKPOINT_INTERVAL_S", 0.0)
  population = open_population(tmp_path)
  train(tmp_path, 0, 20, population, [0.0], interval=4 * ROUND, stop_after=7)
  member, = population.members()
  assert member.step == 4 * ROUND and member.checkpoint.exists()
  _, worker, seen = train(tmp_path, 0, 8, population, [0.0], interval=4 * ROUND)
  assert seen == [rounds * ROUND for rounds in (5, 6, 7, 8)]
  assert worker._reported == 8 * ROUND
