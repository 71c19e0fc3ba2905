"""Acting in workers: every transition arrives once and in order, also when workers are lost."""

import contextlib
import dataclasses
import functools
import os
import signal
import threading

import jax
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import evaluation, impala, networks, training
from starleague.companions.options import RunOptions
from starleague.companions.system import inputs_spec, step_format
from starleague.companions.tasks import registry
from starleague.companions.workers import actor
from starleague.companions.workers.processes import WorkersError
from starleague.data import wire
from starleague.data.assembler import Assembler
from tests import compiling
from tests.companions.workers import counted

COPIES, ITERATIONS = 5, 6
OPTIONS = RunOptions("counted", copies=COPIES, workers=2, unroll_length=ITERATIONS)
SHARES = [[0, 1, 2], [3, 4]]  # copies of the workers


@contextlib.contextmanager
def acting(make=counted.make, system=None, task=None, stop=None):
  """Opens an actor of the counted task."""
  task = task or counted.make(COPIES)
  system = system or counted.make_system()
  made = actor.HostedActor(system, task, step_format(system, task), OPTIONS, make,
                           jax.random.key(2), stop or threading.Event())
  with contextlib.closing(made):
    yield made


def play(hosted, rounds, step=1.0, before=lambda number: None):
  """Acts in rounds, with parameters `step`, `step` + 1, ...; calls `before` each of them."""
  found = []
  for number in range(rounds):
    before(number)
    acted = hosted.start({"step": np.float32(step + number)})()
    found.append(acted)
  return found


def check(rounds, restarts=()):
  """Checks every step against the count by hand.

  Args:
    rounds: of the actor, with the parameters of `play`.
    restarts: (round, copy) that begin again, beside the first round.
  """
  form = step_format(counted.make_system(), counted.make(COPIES))
  expected = {(0, copy) for copy in range(COPIES)} | set(restarts)
  assert {(number, copy) for number, acted in enumerate(rounds)
          for copy in acted.restarted} == expected
  seeds = set()
  for copy in range(COPIES):
    for number, acted in enumerate(rounds):
      steps = jax.tree.map(np.asarray, wire.unpack_steps(acted.records.step, form))
      for moment in range(ITERATIONS):
        step = jax.tree.map(lambda x, at=(moment, copy): x[at], steps)
        begins = moment == 0 and (number, copy) in expected
        if begins:
          seed = int(step.inputs.observation[0])
          assert seed not in seeds
          seeds.add(seed)
          seen, state, action, reward, ended = counted.Seen(seed, 0, 0, 0), 0, 0, 0.0, False
        first = begins or ended
        assert step.inputs.observation.tolist() == list(seen)
        assert (step.inputs.first, acted.records.first[moment, copy]) == (first, first)
        assert step.inputs.last_action == (0 if first else action)
        assert step.inputs.last_reward == step.behaviour == (0.0 if first else reward)
        assert (step.reward, step.discount) == (reward, 0.0 if ended else 1.0)
        assert acted.records.core_state[0][moment, copy, 0] == state
        assert acted.episodes.ended[moment, copy] == ended
        action = (copy + state) % counted.ACTIONS
        assert step.action == action
        reward, state = counted.reward(seen, action), state + 1 + number
        ended = seen.step + 1 == counted.length(seen.seed, seen.episode)
        seen = counted.Seen(seen.seed, seen.moment + 1, seen.episode + ended,
                            0 if ended else seen.step + 1)


def unrolls(rounds):
  """Returns the unrolls of rounds, as the writer cuts them, by copy."""
  form = step_format(counted.make_system(), counted.make(COPIES))
  assembler, found = Assembler(form, ITERATIONS, COPIES, continuous=True), []
  for acted in rounds:
    assembler.restart(acted.restarted)
    found += assembler.add(acted.records)
  return [(cut.row, wire.unpack(cut.packed, form)) for cut in found]


def test_every_transition_arrives_once_with_the_parameters_of_its_round():
  with acting() as hosted:
    found = play(hosted, 1)
    with compiling.events() as events:
      found += play(hosted, 3, step=2.0)
    assert hosted.cpu_seconds() > 0.0
  assert events == []  # nothing compiles after the start
  check(found)
  cut = unrolls(found)
  assert sorted(row for row, _ in cut) == sorted(3 * list(range(COPIES)))
  for _, unroll in cut:
    observation = np.asarray(unroll.steps.inputs.observation)
    np.testing.assert_array_equal(np.diff(observation[:, 1]), np.ones(ITERATIONS))
    # The state before the first step: rounds add 1, 2, ... a step.
    begun, moment = divmod(int(observation[0, 1]), ITERATIONS)
    assert moment == 0
    assert unroll.initial_state[0][0] == ITERATIONS * begun * (begun + 1) // 2


@pytest.mark.slow
def test_lost_workers_are_replaced_and_their_unfinished_unrolls_dropped(tmp_path):
  """One worker dies in the middle of the second round, the other between two rounds."""
  make = functools.partial(counted.make_once, at=ITERATIONS + 3, mark=str(tmp_path / "mark"),
                           what="die")
  survivor = []

  with acting(make) as hosted:
    pids = hosted.pids()

    def kill(number):
      if number == 3:  # that which has not died yet
        survivor.append([pid == now for pid, now in zip(pids, hosted.pids(), strict=True)])
        os.kill(pids[survivor[0].index(True)], signal.SIGKILL)

    found = play(hosted, 5, before=kill)
  assert sorted(survivor[0]) == [False, True]
  died, killed = SHARES[survivor[0].index(False)], SHARES[survivor[0].index(True)]
  check(found, [(1, copy) for copy in died] + [(3, copy) for copy in killed])
  cut = unrolls(found)
  # Five rounds have four unrolls; the one that a loss interrupts is missing.
  assert sorted(row for row, _ in cut) == sorted(3 * list(range(COPIES)))
  for _, unroll in cut:
    observation = np.asarray(unroll.steps.inputs.observation)
    assert len(set(observation[:, 0].tolist())) == 1  # of one life
    np.testing.assert_array_equal(np.diff(observation[:, 1]), np.ones(ITERATIONS))


@pytest.mark.slow
def test_a_stalled_worker_is_replaced(tmp_path, monkeypatch):
  mark = tmp_path / "mark"
  make = functools.partial(counted.make_once, at=ITERATIONS + 3, mark=str(mark), what="wait")
  with acting(make) as hosted:
    pids, silent = hosted.pids(), hosted._collector.silent

    def silent_at_once(seconds):
      """All copies that have steps to take are late, once, as soon as a worker has stalled."""
      return silent(-1.0) if mark.exists() and pids == hosted.pids() else []

    monkeypatch.setattr(hosted._collector, "silent", silent_at_once)
    found = play(hosted, 3)
    replaced = [pid != now for pid, now in zip(pids, hosted.pids(), strict=True)]
  assert any(replaced)
  check(found, [(1, copy) for copies, was in zip(SHARES, replaced, strict=True) if was
                for copy in copies])


@pytest.mark.slow
def test_an_environment_that_fails_ends_the_run_with_its_error():
  with acting(counted.make_broken) as hosted:
    with pytest.raises(WorkersError, match=r"^worker \d was lost 5 times in a row, .*, the last "
                                           "time because ZeroDivisionError: the floor is missing;"):
      play(hosted, 1)


def test_a_stop_ends_the_wait_for_a_round(tmp_path):
  (tmp_path / "unused").touch()
  stop = threading.Event()
  make = functools.partial(counted.make_once, at=0, mark=str(tmp_path / "mark"), what="wait")
  with acting(make, stop=stop) as hosted:
    wait = hosted.start({"step": np.float32(1)})
    threading.Timer(0.1, stop.set).start()
    assert wait() is None
    pids = hosted.pids()
  assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.slow
def test_states_are_those_of_an_unroll_from_the_initial_state():
  task = counted.make(COPIES)
  system = impala.make(impala.Config(torso="dense", size=8, lstm=6), task, inputs_spec(task))
  params = jax.tree.map(np.asarray, system.init(jax.random.key(4)))
  with acting(system=system, task=task) as hosted:
    found = [hosted.start(params)() for _ in range(3)]
  form = step_format(system, task)
  inputs, states = (jax.tree.map(lambda *x: np.concatenate(x), *parts) for parts in zip(*(
    (wire.unpack_steps(acted.records.step, form).inputs, acted.records.core_state)
    for acted in found), strict=True))
  network = impala.make_network(
    impala.Config(torso="dense", size=8, lstm=6), task, inputs_spec(task))
  initial = jax.tree.map(lambda x: np.zeros((COPIES, *x.shape), x.dtype), system.initial_state())
  outputs, after = networks.unroll_batch(network, params, inputs, initial)
  for state, expected in zip(states, after, strict=True):
    assert np.abs(state[1:]).max() > 0.1 and (state[0] == 0).all()
    np.testing.assert_allclose(state[1:], expected[:-1], atol=1e-5)
  steps = [wire.unpack_steps(acted.records.step, form) for acted in found]
  log_prob = np.concatenate([step.behaviour.log_prob for step in steps])
  action = np.concatenate([step.action for step in steps])
  expected = np.take_along_axis(
    np.asarray(jax.nn.log_softmax(outputs.logits)), action[..., None], -1)[..., 0]
  np.testing.assert_allclose(log_prob, expected, atol=1e-5)


@pytest.mark.slow
def test_a_run_with_workers_learns_catch(tmp_path):
  config = impala.Config(size=32, torso="dense", entropy_cost=0.02)
  options = RunOptions("bsuite-catch:rows=5,columns=3", steps=32 * 16 * 60, copies=32, workers=2,
                       unroll_length=16, batch_size=32, learning_rate=5e-3, seed=1)
  task = registry.make_task(options.task, options.copies)
  system, seen = impala.make(config, task, inputs_spec(task)), []
  trained = training.train(system, task, options, dataclasses.asdict(config), tmp_path,
                           threading.Event(), lambda steps, text: seen.append(steps))
  assert seen == [32 * 16 * n for n in range(1, 61)]
  # The last round's unrolls are not learnt, and a bootstrap step comes with the next round.
  assert (trained.counts.steps, trained.counts.updates) == (32 * 16 * 60, 58)
  found = evaluation.evaluate(system, task, trained.params, options, threading.Event())[""]
  assert found.mean > 0.8


@pytest.mark.parametrize("name, message", [
  ("minatar-breakout", "'minatar-breakout' is on JAX and runs inside the compiled program"),
  ("bsuite-catch+bsuite-catch:scale=2", "'bsuite-catch+bsuite-catch:scale=2' is joined"),
])
def test_tasks_that_workers_cannot_step_are_refused(name, message):
  options = RunOptions(name, copies=4, workers=2)
  with pytest.raises(UserError) as error:
    actor.check(options, registry.make_task(name, 4))
  assert str(error.value) == (
    f"workers: found 2, but task {message}; expected 0, or one task of ale-, bsuite-, gymnasium- "
    "or popgym-")
  actor.check(dataclasses.replace(options, workers=0), registry.make_task(name, 4))


def test_a_worker_has_no_more_copies_than_a_client_has_slots():
  task = registry.make_task("bsuite-catch", 1)
  actor.check(RunOptions(task.name, copies=8192, workers=2), task)
  with pytest.raises(UserError, match="copies: found 8193, expected at most 8192, 4096 a worker; "
                                      "raise workers"):
    actor.check(RunOptions(task.name, copies=8193, workers=2), task)


@pytest.mark.parametrize("copies, workers, sizes", [
  (16, 1, [16]), (16, 2, [8]), (16, 3, [6, 12]), (64, 4, [16, 32]), (16, 16, [1, 2, 4, 8]),
  (10, 10, [1, 2, 4, 5]), (1, 1, [1])])
def test_batches_have_few_sizes(copies, workers, sizes):
  assert actor.batch_sizes(copies, workers) == sizes
