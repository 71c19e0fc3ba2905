"""A run of a companion system learns, counts its steps exactly, saves and resumes."""

import dataclasses
import shutil
import threading

import numpy as np
import pytest

from starleague.common import results, run_files
from starleague.common.errors import UserError
from starleague.companions import acting, evaluation, experience, impala, r2d2, training
from starleague.companions.options import RunOptions
from starleague.companions.system import inputs_spec
from starleague.companions.tasks.registry import make_task
from starleague.data.checkpoints import CheckpointMismatchError, Checkpoints
from tests.companions.catch import make_catch

CONFIG = impala.Config(size=32, torso="dense", entropy_cost=0.02)
OPTIONS = RunOptions(task="catch", steps=64 * 16 * 40, copies=64, unroll_length=16, batch_size=32,
                     learning_rate=5e-3)


def run(folder, options=OPTIONS, config=CONFIG, stop=None, **more):
  task = make_catch(options.copies)
  system = impala.make(config, task, inputs_spec(task))
  seen = []
  trained = training.train(system, task, options, dataclasses.asdict(config), folder,
                           stop or threading.Event(), lambda steps, text: seen.append(steps),
                           **more)
  return system, task, trained, seen


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  return folder, *run(folder)


@pytest.mark.parametrize("system, choices, options, message", [
  (impala, {"torso": "x"}, {}, "torso: found 'x', expected one of shallow, deep, dense"),
  (r2d2, {"torso": "dense", "burn_in": 16}, {"target_period": 1},
   "r2d2.burn_in: found 16, expected less than the unroll_length, 16"),
  (r2d2, {"torso": "dense", "burn_in": 2}, {},
   "target_period: found 0, expected at least 1: r2d2 has a target network")])
def test_choices_that_do_not_fit_are_refused_without_computing(system, choices, options, message):
  options = dataclasses.replace(OPTIONS, **options)
  task = make_catch(options.copies)
  made = system.make(system.Config(**choices), task, inputs_spec(task))
  with pytest.raises(UserError) as error:
    training.check(made, task, options)
  assert str(error.value) == message


def test_a_batch_that_the_devices_cannot_share_is_refused(monkeypatch):
  task = make_catch(OPTIONS.copies)
  system = impala.make(CONFIG, task, inputs_spec(task))
  monkeypatch.setattr(training.jax, "local_devices", lambda: [None] * 5)
  with pytest.raises(UserError) as error:
    training.check(system, task, OPTIONS)
  assert str(error.value) == ("batch_size: found 32, expected a multiple of 5, the number of "
                              "devices that share a batch")


def test_choices_that_fit_pass():
  task = make_catch(OPTIONS.copies)
  training.check(impala.make(CONFIG, task, inputs_spec(task)), task, OPTIONS)


def test_it_learns_catch(finished):
  folder, system, task, trained, _ = finished
  found = evaluation.evaluate(system, task, trained.params, OPTIONS, threading.Event())[""]
  assert found.mean > 0.8 and found.low <= found.mean <= found.high
  assert found.episodes == 128  # two for each copy: at least 100


def test_steps_and_updates_are_exact(finished):
  _, _, _, trained, seen = finished
  assert seen == [64 * 16 * n for n in range(1, 41)]
  # The last round's unrolls are not learnt, and a bootstrap step comes with the next round.
  assert (trained.counts.steps, trained.counts.updates) == (64 * 16 * 40, 2 * 38)


def test_the_results_have_returns_and_steps(finished):
  folder, *_ = finished
  tags = results.by_tag(results.read(folder / results.FILE_NAME))
  assert {"return/train", "total/steps", "loss/policy", "entropy/action", "speed/actor"} <= {*tags}
  assert tags["return/train"][-1].value <= 1.0


def test_a_stopped_run_resumes(finished, tmp_path):
  source, *_ = finished
  shutil.copytree(source / run_files.CHECKPOINTS, tmp_path / run_files.CHECKPOINTS)
  longer = dataclasses.replace(OPTIONS, steps=OPTIONS.steps + 64 * 16 * 3)
  _, _, trained, seen = run(tmp_path, longer)
  assert seen[0] == OPTIONS.steps + 64 * 16 and len(seen) == 3
  assert trained.counts.updates == 2 * 38 + 2


def test_a_stop_saves(tmp_path):
  stop = threading.Event()
  stop.set()
  _, _, trained, seen = run(tmp_path, stop=stop)
  assert seen == [] and trained.counts.steps == 0


def test_workers_step_the_task_of_the_run(tmp_path, monkeypatch):
  """A member's seed is not that of its task."""
  made = []

  def start(system, task, form, options, make, *_):
    made.append((options.seed, make(2).seed))
    raise InterruptedError

  monkeypatch.setattr(training.hosted, "HostedActor", start)
  name = "bsuite-deep_sea:size=4"
  options = dataclasses.replace(OPTIONS, task=name, seed=3001, copies=4, workers=2)
  task = make_task(name, 4, seed=3)
  with pytest.raises(InterruptedError):
    training.train(impala.make(CONFIG, task, inputs_spec(task)), task, options, {}, tmp_path,
                   threading.Event(), lambda *_: None)
  assert made == [(3001, 3)]


def test_a_stop_while_unrolls_are_written_saves(tmp_path, monkeypatch):
  stop, write, calls = threading.Event(), experience.Experience.write, []

  def write_and_stop(self, records, restarted=()):
    write(self, records, restarted)
    calls.append(stop.set() if len(calls) == 2 else None)

  monkeypatch.setattr(experience.Experience, "write", write_and_stop)
  _, _, trained, _ = run(tmp_path, stop=stop)
  # The third round's unrolls are not learnt, nor is the fourth round.
  assert (trained.counts.steps, trained.counts.updates) == (4 * 64 * 16, 2)
  _, _, _, seen = run(tmp_path, dataclasses.replace(OPTIONS, steps=5 * 64 * 16))
  assert seen == [5 * 64 * 16]


def test_a_checkpoint_of_another_system_is_refused(finished, tmp_path):
  source, *_ = finished
  shutil.copytree(source / run_files.CHECKPOINTS, tmp_path / run_files.CHECKPOINTS)
  other = training.Identity("r2d2", "catch", dataclasses.asdict(CONFIG))
  state = finished[3].params
  with pytest.raises(CheckpointMismatchError, match="system: found 'impala', expected 'r2d2'"):
    Checkpoints(tmp_path / run_files.CHECKPOINTS, other).restore(
      training.Saved(state, (), ()))
  with pytest.raises(CheckpointMismatchError, match="config.size: found 32, expected 16"):
    run(tmp_path, config=dataclasses.replace(CONFIG, size=16))


def test_a_resumed_run_has_the_target_network_of_its_checkpoint(tmp_path, monkeypatch):
  targets, learn = [], training.Run.learn

  def learn_recorded(self, batch):
    targets.append(np.asarray(self._target["policy"]["w"][0]))
    return learn(self, batch)

  monkeypatch.setattr(training.Run, "learn", learn_recorded)
  options = dataclasses.replace(OPTIONS, steps=64 * 16 * 6, target_period=6)
  _, _, trained, _ = run(tmp_path, options)  # 8 updates: the target is that after the sixth
  _, _, resumed, _ = run(tmp_path, dataclasses.replace(options, steps=64 * 16 * 9))
  assert (trained.counts.updates, resumed.counts.updates, len(targets)) == (8, 10, 10)
  for target in targets[1:6]:
    np.testing.assert_array_equal(target, targets[0])
  assert (targets[6] != targets[0]).any()
  for target in targets[7:]:
    np.testing.assert_array_equal(target, targets[6])
  assert (trained.params["policy"]["w"] != targets[6]).any()


def test_an_update_that_is_only_counted_refreshes_the_target_network(tmp_path):
  found = []

  def after_round(counting, episodes):
    if counting.counts.updates == 2:
      before = np.asarray(counting._target["policy"]["w"][0])
      counting.count_update()
      found.append((before, *(np.asarray(tree["policy"]["w"][0])
                              for tree in (counting._target, counting.state.params))))

  options = dataclasses.replace(OPTIONS, steps=64 * 16 * 3, target_period=3)
  _, _, trained, _ = run(tmp_path, options, after_round=after_round)
  (before, target, own), = found
  assert trained.counts.updates == 3
  assert (before != own).any()
  np.testing.assert_array_equal(target, own)


def test_replay_and_lag_train_too(tmp_path):
  options = dataclasses.replace(OPTIONS, steps=64 * 16 * 8, replay_share=0.5, min_replay=64, lag=3)
  _, _, trained, _ = run(tmp_path, options)
  # Half of a batch is fresh: 16 unrolls of the queue make an update. 64 come in a round.
  assert trained.counts.updates > 2 * 2 * 3
  assert np.isfinite(trained.params["policy"]["w"]).all()


@pytest.fixture
def recorded(monkeypatch):
  """Weights of the policy: with the updates before it of each round, and after each update."""
  acted, learnt = [], []
  make, learn = acting.make_acting, training.Run.learn

  def make_recorded(*arguments):
    made = make(*arguments)

    def act(params, state):
      acted.append((len(learnt), np.asarray(params["policy"]["w"])))
      return made.run(params, state)

    return made._replace(run=act)

  def learn_recorded(self, batch):
    found = learn(self, batch)
    learnt.append(np.asarray(self.state.params["policy"]["w"][0]))
    return found

  monkeypatch.setattr(acting, "make_acting", make_recorded)
  monkeypatch.setattr(training.Run, "learn", learn_recorded)
  return acted, learnt


def test_the_lag_counts_updates(tmp_path, recorded):
  acted, learnt = recorded
  run(tmp_path, dataclasses.replace(OPTIONS, steps=64 * 16 * 8, lag=3))
  assert [count for count, _ in acted] == [0, 0, 0, 2, 4, 6, 8, 10]
  for count, weights in acted:
    expected = learnt[count - 4] if count > 3 else acted[0][1]
    np.testing.assert_array_equal(weights, expected)
  assert not np.array_equal(learnt[0], learnt[1])


def test_a_run_that_loads_weights_acts_with_them_and_drops_the_round_in_flight(
    finished, tmp_path, recorded, monkeypatch):
  source = max(path for path in (finished[0] / run_files.CHECKPOINTS).iterdir()
               if path.name.isdigit())
  written, write, counts = [], experience.Experience.write, []

  def write_recorded(self, records, restarted=()):
    written.append(list(restarted))
    write(self, records, restarted)

  monkeypatch.setattr(experience.Experience, "write", write_recorded)

  def after_round(loading, episodes):
    counts.append(loading.counts.updates)
    if len(counts) == 3:
      loading.load(source)

  run(tmp_path, dataclasses.replace(OPTIONS, steps=64 * 16 * 6, lag=1), after_round=after_round)
  acted, learnt = recorded
  loaded = finished[3].params["policy"]["w"]
  # Round 3 was in flight. The updates after it need the bootstrap step of round 5.
  assert written == [[], [], list(range(64)), []] and counts == [0, 0, 2, 2, 2, 4]
  assert (acted[2][1] != loaded).any()
  for _, weights in acted[3:]:
    np.testing.assert_array_equal(weights, loaded)
  assert (learnt[2] != loaded).any()


def test_a_tuned_learning_rate_falls_as_the_options_does(tmp_path, monkeypatch):
  rates, with_learning_rate = [], training.train_state.with_learning_rate

  def recorded(state, rate):
    rates.append(rate)
    return with_learning_rate(state, rate)

  monkeypatch.setattr(training.train_state, "with_learning_rate", recorded)
  run(tmp_path, dataclasses.replace(OPTIONS, steps=64 * 16 * 4, final_rate=0.2),
      hyperparameters={"learning_rate": 0.01})
  np.testing.assert_allclose(rates, [0.006, 0.006, 0.004, 0.004], rtol=1e-6)
