"""The learner of a run: batches from the replay server, updates, checkpoints, new parameters.

  python -m starleague.experiments.learner --run_dir runs/mini --address localhost:7000

It goes on from its newest checkpoint. SIGTERM and SIGINT save one and end it with status 0; it ends
by itself when it has trained for the run's time.
"""

import functools
import pathlib
import threading
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import flags, logging

from starleague.agent import types, wire
from starleague.experiments import entry, results, run_flags, settings, wiring
from starleague.learner import (
  checkpoints,
  guard,
  metrics,
  objective,
  prefetch,
  replay,
  update,
)

for _name in ("run_dir", "address", "origin"):
  flags.declare_key_flag(_name)


class Learner(NamedTuple):
  """The learner's parts, made once."""

  update: update.Update
  state: update.TrainState  # replicated
  teacher: Any  # replicated parameters, () where the objective needs none
  trained_seconds: float  # before this process


def packed_batch(packed: wire.Packed) -> types.Trajectory:
  """A wire batch in the form that an update shards: its columns stand for the steps."""
  return types.Trajectory(steps=wire.Columns(*packed[:-1]), initial_state=packed.state)


def make_loss(parts: wiring.Parts, config) -> update.LossFn:
  """The RL objective of a batch as it comes from the wire; it is unpacked on the device."""
  costs = wiring.make_weights(config)

  def loss(params, key, batch, teacher):
    del key  # nothing in the objective is random
    trajectory = wire.unpack(wire.Packed(*batch.steps, state=batch.initial_state), parts.config)
    return objective.rl_loss(parts.policy, costs, params, teacher or None, trajectory)

  return loss


def make_optimizer(config):
  """Adam, as the settings ask for it."""
  learner = config.learner
  return update.make_optimizer(
    learner.learning_rate, b1=learner.b1, b2=learner.b2, eps=learner.eps,
    max_norm=learner.max_norm or None)


def initial_snapshot(parts: wiring.Parts, config, run_dir: pathlib.Path) -> Any:
  """The weights that the run began with: what it is compared with, and its teacher."""
  path = run_dir / wiring.INITIAL
  if not path.exists():
    checkpoints.save_params(path, wiring.initial_params(parts, config), parts.config)
  return checkpoints.load_params(path, parts.config)


def make_learner(parts: wiring.Parts, config, run_dir: pathlib.Path,
                 saved: checkpoints.Checkpoints) -> Learner:
  """Builds the learner, from the run's newest checkpoint where there is one."""
  optimizer = make_optimizer(config)
  params = initial_snapshot(parts, config, run_dir)
  state = update.initial_state(params, optimizer, jax.random.key(config.seed))
  restored = saved.restore(state)
  trained = 0.0
  if restored is not None:
    state, trained = restored.state, float(restored.extra["trained_seconds"])
    logging.info("restored update=%d trained_seconds=%.0f", restored.step, trained)
  run = update.make_update(make_loss(parts, config), optimizer)
  teacher = params if wiring.make_weights(config).uses_teacher else ()
  return Learner(run, run.replicate(state), run.replicate(teacher), trained)


def compile_ahead(learner: Learner, parts: wiring.Parts, config) -> None:
  """Compiles the update while actors compile and play, on a batch that nobody learns from."""
  spec = wire.packed_spec(parts.config, config.unroll_length)
  size = config.learner.batch_size
  columns = [np.zeros((x.shape[0], size, *x.shape[1:]), x.dtype) for x in spec[:-1]]
  empty = wire.Packed(*columns, np.zeros((size, *spec.state.shape), spec.state.dtype))
  # The update is given a copy of the state to destroy.
  copy = learner.update.replicate(update.unreplicate(learner.state))
  jax.block_until_ready(
    learner.update(copy, place(learner.update, empty), learner.teacher)[1])


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


def learn(parts: wiring.Parts, config, run_dir: pathlib.Path, address: str,
          origin: float) -> None:
  """Learns until it is told to stop or has trained for the run's time; saves at the end."""
  stop = wiring.stop_event()
  settings_ = config.learner
  saved = checkpoints.Checkpoints(run_dir / wiring.CHECKPOINTS, parts.config, settings_.keep_last,
                                  settings_.keep_every or None)
  learner = make_learner(parts, config, run_dir, saved)
  state, step = learner.state, int(update.unreplicate(learner.state.step))
  publish = replay.ParameterPublisher(
    address, wiring.PLAYER, interval_s=settings_.publish_interval_s,
    deadline_s=config.replay.timeout_s)
  publish(lambda: update.unreplicate(state.params), step)
  compile_ahead(learner, parts, config)
  log = Log(run_dir, origin, step, settings_.batch_size * config.unroll_length,
            settings_.log_interval_s)
  watch = guard.Guard(run_dir / "diagnosis", settings_.max_skipped)
  begun: float | None = None  # of the training: when the first update was done
  saved_at = time.time()

  def save() -> None:
    trained = learner.trained_seconds + (time.time() - begun if begun else 0.0)
    saved.save(step, update.unreplicate(state), {"trained_seconds": trained})

  put = functools.partial(place, learner.update)
  with replay.dataset(address, wiring.PLAYER, settings_.batch_size, parts.config,
                      config.unroll_length, deadline_s=config.replay.timeout_s) as data, \
      prefetch.prefetch(data, put, timeout=config.replay.timeout_s) as batches:
    # A learner that is told to stop may be waiting for a batch that never comes.
    threading.Thread(target=lambda: stop.wait() and data.close(), daemon=True).start()
    for batch in batches:
      state, values = learner.update(state, batch, learner.teacher)
      watch.check(values, batch)
      step += 1
      begun = begun or time.time()
      log(step, values, batches.waiting())
      publish(functools.partial(update.unreplicate, state.params), step)
      if time.time() - saved_at >= settings_.checkpoint_interval_s:
        save()
        saved_at = time.time()
      if stop.is_set() or learner.trained_seconds + time.time() - begun >= config.seconds:
        break
    watch.finish()
    data.close()
  save()
  log.close()
  logging.info("stopped update=%d", step)


def place(run: update.Update, packed: wire.Packed) -> types.Trajectory:
  return run.place(packed_batch(packed))


def main() -> None:
  config = settings.load(run_flags.RUN_DIR.value)
  origin = time.time() if run_flags.ORIGIN.value is None else run_flags.ORIGIN.value
  learn(wiring.make_parts(config), config, pathlib.Path(run_flags.RUN_DIR.value),
        run_flags.ADDRESS.value, origin)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
