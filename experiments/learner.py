"""The learner of a run: batches from the data server, updates, checkpoints, new parameters.

  python -m starleague.experiments.learner --run_dir runs/mini --address localhost:7000

It goes on from its newest checkpoint. SIGTERM and SIGINT save one and end it with status 0; it ends
by itself when it has trained for the run's time.

Over several hosts the same program runs on each, and all of them end together:

  ... learner --run_dir runs/big --address localhost:7000 --coordinator host0:8000 --hosts 2 --host 0
  ... learner --run_dir runs/big --address localhost:7000 --coordinator host0:8000 --hosts 2 --host 1

or, where the environment tells who is who (Cloud TPU, Slurm), `--coordinator auto` on each. Each
reads its share of a batch from a data server of its own. Host 0 alone restores, saves, publishes
and logs.
"""

import functools
import hashlib
import json
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import flags, logging
from jax.experimental import multihost_utils

from starleague.agent import types
from starleague.common import results
from starleague.data import datasets, parameters, wire
from starleague.experiments.run import entry, run_flags, settings, wiring
from starleague.learner import checkpoints, guard, metrics, objective, prefetch, update

for _name in ("run_dir", "address", "origin"):
  flags.declare_key_flag(_name)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", None, "Where the hosts of a run over several meet: host:port of host 0, or 'auto' "
  "where the environment tells (Cloud TPU, Slurm). One host if not given.")
_HOSTS = flags.DEFINE_integer("hosts", 1, "How many hosts.", lower_bound=1)
_HOST = flags.DEFINE_integer("host", 0, "Which of them this is.", lower_bound=0)


class Learner(NamedTuple):
  """The learner's parts, made once."""

  update: update.Update
  state: update.TrainState  # replicated
  teacher: Any  # replicated parameters, () where the objective needs none
  trained_seconds: float  # before this process


def packed_batch(packed: wire.Packed) -> types.Trajectory:
  """A wire batch in the form that an update shards: its columns stand for the steps."""
  return types.Trajectory(steps=wire.Columns(*packed[:-1]), initial_state=packed.state)


def unpack(batch: types.Trajectory, parts: wiring.Parts) -> types.Trajectory:
  """The trajectories of a batch in the form of `packed_batch`."""
  return wire.unpack(wire.Packed(*batch.steps, state=batch.initial_state), parts.config)


def make_loss(parts: wiring.Parts, config) -> update.LossFn:
  """The RL objective of a batch as it comes from the wire; it is unpacked on the device."""
  costs = wiring.make_weights(config)

  def loss(params, key, batch, teacher):
    del key  # nothing in the objective is random
    return objective.rl_loss(parts.policy, costs, params, teacher or None, unpack(batch, parts))

  return loss


def make_optimizer(config):
  """Adam, as the settings ask for it."""
  learner = config.learner
  return update.make_optimizer(
    learner.learning_rate, b1=learner.b1, b2=learner.b2, eps=learner.eps,
    max_norm=learner.max_norm or None)


def join_hosts(coordinator: str | None, hosts: int, host: int) -> None:
  """Makes this process one of a run's hosts; to be called before JAX is used.

  Raises:
    SettingsError: the arguments do not fit one another.
  """
  if host >= hosts:
    raise settings.SettingsError(
      f"--host must be below --hosts, which is {hosts}, found {host}: hosts count from 0.")
  if coordinator is None:
    if hosts > 1:
      raise settings.SettingsError(
        f"--hosts is {hosts} and --coordinator is not given: name host:port of host 0, or 'auto'.")
  elif coordinator == "auto":
    jax.distributed.initialize()
  else:
    jax.distributed.initialize(coordinator, hosts, host)


def check_hosts(config) -> None:
  """Refuses hosts that would not do the same.

  Raises:
    SettingsError: they have other settings, or devices that do not divide the batch.
  """
  text = json.dumps(config.to_dict(), sort_keys=True)
  digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
  if (multihost_utils.process_allgather(digest).reshape(-1, digest.size) != digest).any():
    raise settings.SettingsError(
      "the hosts have read different settings: give all the same --run_dir, or copies of its "
      f"{settings.CONFIG_FILE}.")
  size, devices = config.learner.batch_size, jax.device_count()
  if size % (devices * config.learner.accumulate):
    raise settings.SettingsError(
      f"config key 'learner.batch_size' must be a multiple of {devices} devices times "
      f"'learner.accumulate' = {config.learner.accumulate}, found {size}.")


def initial_snapshot(parts: wiring.Parts, config, run_dir: pathlib.Path) -> Any:
  """The weights that the run began with: what it is compared with, and its teacher."""
  path = run_dir / wiring.INITIAL
  if not path.exists():
    checkpoints.save_params(path, wiring.initial_params(parts, config), parts.config)
  return checkpoints.load_params(path, parts.config)


def make_learner(parts: wiring.Parts, config, run_dir: pathlib.Path,
                 saved: checkpoints.Checkpoints | None) -> Learner:
  """Builds the learner, from the run's newest checkpoint where there is one.

  Args:
    saved: the run's checkpoints; None on hosts but the first, which get its state.
  """
  optimizer = make_optimizer(config)
  trained = 0.0
  if saved is None:
    shapes = jax.eval_shape(parts.policy.init, jax.random.key(0))
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
  else:
    params = initial_snapshot(parts, config, run_dir)
  state = update.initial_state(params, optimizer, jax.random.key(config.seed))
  restored = None if saved is None else saved.restore(state)
  if restored is not None:
    state, trained = restored.state, float(restored.extra["trained_seconds"])
    logging.info("restored update=%d trained_seconds=%.0f", restored.step, trained)
  run = update.make_update(
    make_loss(parts, config), optimizer, accumulate=config.learner.accumulate)
  teacher = params if wiring.make_weights(config).uses_teacher else ()
  return Learner(run, run.replicate(state, from_first=True),
                 run.replicate(teacher, from_first=True), trained)


def empty_batch(parts: wiring.Parts, config) -> wire.Packed:
  """This host's share of a batch, all zero: nothing is learnt from it."""
  spec = wire.packed_spec(parts.config, config.unroll_length)
  size = config.learner.batch_size // jax.process_count()
  columns = [np.zeros((x.shape[0], size, *x.shape[1:]), x.dtype) for x in spec[:-1]]
  return wire.Packed(*columns, np.zeros((size, *spec.state.shape), spec.state.dtype))


def compile_ahead(learner: Learner, parts: wiring.Parts, config) -> None:
  """Compiles the update while actors compile and play."""
  # The update is given a copy of the state to destroy.
  copy = learner.update.replicate(update.unreplicate(learner.state))
  batch = place(learner.update, empty_batch(parts, config))
  jax.block_until_ready(learner.update(copy, batch, learner.teacher)[1])


class Log:
  """Writes metrics to TensorBoard and the run's figures, every few seconds."""

  def __init__(self, run_dir: pathlib.Path, origin: float, step: int, steps_an_update: int,
               interval_s: float):
    self._board = metrics.Writer(run_dir / "tensorboard", resume_step=step + 1)
    self._path, self._origin = run_dir / results.FILE_NAME, origin
    self._steps_an_update, self._interval_s = steps_an_update, interval_s
    self._step, self._time = step, time.time()
    self._waiting = prefetch.Waiting(0, 0.0, 0.0)

  def __call__(self, step: int, values, waiting: prefetch.Waiting) -> None:
    """Takes an update's metrics, still on the device; writes them if it is time."""
    now = time.time()
    if now - self._time < self._interval_s:
      return
    scalars = {name: float(value) for name, value in jax.device_get(dict(values)).items()}
    rate = (step - self._step) * self._steps_an_update / (now - self._time)
    scalars |= {"speed/learner": rate, "speed/waiting": waiting.since(self._waiting).fraction,
                "total/steps_learnt": step * self._steps_an_update}
    self._board.write(step, scalars)
    self._board.flush()
    results.append(self._path, [
      results.Row(now - self._origin, step, name if "/" in name else f"update/{name}", value)
      for name, value in scalars.items()])
    self._step, self._time, self._waiting = step, now, waiting

  def close(self) -> None:
    self._board.close()


class FirstHost:
  """What host 0 alone does: saves, publishes, logs; on the others it does nothing."""

  def __init__(self, config, run_dir: pathlib.Path, address: str, origin: float,
               saved: checkpoints.Checkpoints | None):
    self._saved, self._config = saved, config.learner
    self._saved_at: float | None = None  # or when the first update was done
    if saved is None:
      return
    self._publish = parameters.ParameterPublisher(
      address, wiring.PLAYER, interval_s=self._config.publish_interval_s,
      deadline_s=config.data.timeout_s)
    self._make_log = functools.partial(
      Log, run_dir, origin, steps_an_update=self._config.batch_size * config.unroll_length,
      interval_s=self._config.log_interval_s)
    self._log: Log | None = None

  def publish(self, state: update.TrainState, step: int) -> None:
    """Publishes parameters if it is time."""
    if self._saved is not None:
      self._publish(functools.partial(update.unreplicate, state.params), step)

  def log(self, step: int, values, waiting: prefetch.Waiting) -> None:
    """Writes an update's metrics if it is time."""
    if self._saved is not None:
      self._log = self._log or self._make_log(step=step - 1)
      self._log(step, values, waiting)

  def save(self, state: update.TrainState, step: int, trained_seconds: float,
           now: bool = False) -> None:
    """Saves a checkpoint if it is time, or in any case where `now`."""
    self._saved_at = self._saved_at or time.time()
    due = now or time.time() - self._saved_at >= self._config.checkpoint_interval_s
    if self._saved is not None and due:
      self._saved.save(step, update.unreplicate(state), {"trained_seconds": trained_seconds})
      self._saved_at = time.time()

  def close(self) -> None:
    """Closes the log. A publication under way is left to itself: the server may be gone by now."""
    if self._saved is not None and self._log is not None:
      self._log.close()


def agreed(batches: Iterator[types.Trajectory], going: Callable[[], bool],
           vote: Callable[[bool], Callable[[], bool]]) -> Iterator[types.Trajectory]:
  """Batches for as long as every host has a further one and wants to go on.

  No host may begin an update that another does not begin. The next batch is there, and voted on,
  before the update of this one is started, so that devices need not wait for the votes.
  """
  batch = next(batches, None)
  everybody = vote(batch is not None and going())
  while everybody():
    following = next(batches, None)
    everybody = vote(following is not None and going())
    assert batch is not None
    yield batch
    batch = following


def learn(parts: wiring.Parts, config, run_dir: pathlib.Path, address: str,
          origin: float) -> None:
  """Learns until a host is told to stop or has trained for the run's time; saves at the end."""
  stop = wiring.stop_event()
  settings_ = config.learner
  saved = None
  if jax.process_index() == 0:
    saved = checkpoints.Checkpoints(run_dir / wiring.CHECKPOINTS, parts.config,
                                    settings_.keep_last, settings_.keep_every or None)
  learner = make_learner(parts, config, run_dir, saved)
  state, step = learner.state, int(update.unreplicate(learner.state.step))
  first_host = FirstHost(config, run_dir, address, origin, saved)
  first_host.publish(state, step)
  compile_ahead(learner, parts, config)
  watch = guard.Guard(
    run_dir / "diagnosis", settings_.max_skipped,
    readable=jax.vmap(functools.partial(unpack, parts=parts)))  # over devices
  begun: float | None = None  # of the training: when the first update was done

  def trained() -> float:
    return learner.trained_seconds + (time.time() - begun if begun else 0.0)

  put = functools.partial(place, learner.update)
  size = settings_.batch_size // jax.process_count()
  with datasets.dataset(address, size, wiring.PLAYER, parts.config, config.unroll_length,
                      deadline_s=config.data.timeout_s) as data, \
      prefetch.prefetch(data, put, timeout=config.data.timeout_s) as batches:
    # A learner that is told to stop may be waiting for a batch that never comes.
    threading.Thread(target=lambda: stop.wait() and data.close(), daemon=True).start()
    for batch in agreed(batches, lambda: not stop.is_set() and trained() < config.seconds,
                        learner.update.make_vote()):
      state, values = learner.update(state, batch, learner.teacher)
      watch.check(values, batch)
      step += 1
      begun = begun or time.time()
      first_host.log(step, values, batches.waiting())
      first_host.publish(state, step)
      first_host.save(state, step, trained())
    watch.finish()
    data.close()
  first_host.save(state, step, trained(), now=True)
  first_host.close()
  logging.info("stopped update=%d", step)


def place(run: update.Update, packed: wire.Packed) -> types.Trajectory:
  return run.place(packed_batch(packed))


def main() -> None:
  join_hosts(_COORDINATOR.value, _HOSTS.value, _HOST.value)
  config = settings.load(run_flags.RUN_DIR.value)
  check_hosts(config)
  origin = time.time() if run_flags.ORIGIN.value is None else run_flags.ORIGIN.value
  learn(wiring.make_parts(config), config, pathlib.Path(run_flags.RUN_DIR.value),
        run_flags.ADDRESS.value, origin)
  if _COORDINATOR.value is not None:
    jax.distributed.shutdown()  # waits for all: without host 0 the others would be ended


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
