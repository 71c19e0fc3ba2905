"""The published agent on one GPU: the update, its feeding, acting, and Skirmish, in ten minutes.

  python -m benchmarks.gpu                 # full, T = 64, bfloat16, 32 sequences; Skirmish large
  python -m benchmarks.gpu --preset mini --unroll_length 4 --sequences 2 --acting 8 --tier mini \\
    --games 8 --peak_flops 1e12            # seconds on a CPU, to try the commands

update     agent steps/s of the whole update of one batch on the device, with the teacher's unroll,
           all losses and Adam; model FLOP/s over the peak; peak memory
feeding    batches from a data server (Reverb, in a process of its own) to the device, alone and
           under the update; ratio of the update fed so to the update alone. Where Reverb is not
           installed, one batch in this process's memory is placed repeatedly
acting     agent steps/s of a batch of players
skirmish   environment steps/s of a batch of games, both players observed

Lines are name=value. Rates are medians of calls, each waited for; Skirmish's are the best of three.
They exclude compilation, whose seconds have lines of their own.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import itertools
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import agent as agent_benchmark
from benchmarks import skirmish
from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import run_files
from starleague.data import wire
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.learner import objective, prefetch, train_state, update, weights

PARTS = ("update", "feeding", "acting", "skirmish")


class Learner(NamedTuple):
  """The update of packed batches, the function that runs it once, and its figures."""

  run: update.Update
  once: Callable[[Any], Any]  # placed batch -> metrics
  steps: int  # agent steps of a batch
  seconds: float  # of an update


def show(**values: float | str) -> None:
  """Prints name=value lines."""
  for name, value in values.items():
    print(f"{name}={value if isinstance(value, str) else format(value, '.5g')}", flush=True)


def median_seconds(call: Callable[[], Any], rounds: int) -> tuple[float, float]:
  """Returns the median seconds of a call, and those of the first one, which compiles."""
  taken = []
  for _ in range(rounds + 1):
    begin = time.perf_counter()
    jax.block_until_ready(call())
    taken.append(time.perf_counter() - begin)
  return statistics.median(taken[1:]), taken[0]


def make_update(config: agent_config.AgentConfig, params: Any, accumulate: int,
                devices: int = 1) -> tuple[update.Update, Callable[[Any], Any]]:
  """Returns the update of packed batches on the first devices, and a function that runs it once."""
  policy, costs = agent.make_policy(config), weights.RLWeights()

  def loss(params, key, batch, teacher):
    del key
    return objective.rl_loss(policy, costs, params, teacher, wire.unpack(batch, config))

  optimizer = train_state.make_optimizer(3e-5)
  run = update.make_update(
    loss, optimizer, jax.local_devices()[:devices], accumulate, batch_axes=wire.BATCH_AXES)
  host = jax.device_get(params)
  state = run.replicate(train_state.initial_state(host, optimizer, jax.random.key(0)))
  teacher = run.replicate(host)

  def once(batch):
    nonlocal state
    state, metrics = run(state, batch, teacher)
    return metrics

  return run, once


def model_flops(config: agent_config.AgentConfig, params: Any, trajectories: Any) -> float:
  """Returns the floating-point operations of an update: XLA's count of the forward pass times 4.

  Backward is twice forward; the teacher's unroll is one more. Loops count once. What the compiler
  computes a second time does not count.
  """
  # XLA counts nothing in a program that is lowered for a GPU, and a CPU has no kernel of cuDNN.
  plain = dataclasses.replace(config, entity_attention="plain")
  shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (params, trajectories))
  with jax.default_device(jax.devices("cpu")[0]):
    lowered = jax.jit(agent.make_policy(plain).unroll_batch).lower(*shapes)
  return 4 * lowered.cost_analysis()["flops"]


def peak_memory() -> tuple[float, str]:
  """Returns the peak memory in GiB so far, and of what: the device, or on a CPU the process."""
  found = jax.devices()[0].memory_stats()
  if found:
    return found["peak_bytes_in_use"] / 2**30, "device"
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "process"


def packed(trajectories: Any) -> list[wire.Packed]:
  """Returns the trajectories of a batch [T + 1, B, ...] as an actor sends them."""
  found = []
  for i in range(len(jax.tree.leaves(trajectories.initial_state)[0])):
    steps, state = (jax.tree.map(lambda x, i=i: x[:, i], trajectories.steps),
                    jax.tree.map(lambda x, i=i: x[i], trajectories.initial_state))
    found.append(wire.pack(types.Trajectory(steps, state)))
  return found


def stacked(items: list[wire.Packed]) -> wire.Packed:
  """Returns packed trajectories as a batch."""
  return wire.Packed(**{
    name: np.stack([getattr(item, name) for item in items], axis)
    for name, axis in wire.BATCH_AXES.items()})


def measure_update(config: agent_config.AgentConfig, params: Any, trajectories: Any,
                   items: list[wire.Packed], options: argparse.Namespace) -> Learner:
  """Prints the figures of the update of one batch on the device."""
  run, once = make_update(config, params, options.accumulate)
  batch = run.place(stacked(items))
  seconds, first = median_seconds(lambda: once(batch), options.rounds)
  steps = options.sequences * options.unroll_length
  flops = model_flops(config, params, trajectories)
  memory, owner = peak_memory()
  show(update_agent_steps_per_second=steps / seconds, update_milliseconds=1e3 * seconds,
       update_model_tflops=flops / 1e12, update_model_tflops_per_second=flops / seconds / 1e12,
       update_peak_memory_gib=memory, update_peak_memory_of=owner,
       update_compile_seconds=first - seconds)
  peak = options.peak_flops or agent_benchmark.PEAK_FLOPS.get(jax.devices()[0].device_kind)
  if peak:
    show(update_mfu=flops / seconds / peak)
  else:
    print(f"update_mfu: no peak is known of {jax.devices()[0].device_kind}; give --peak_flops")
  return Learner(run, once, steps, seconds)


@contextlib.contextmanager
def batches(config: agent_config.AgentConfig, items: list[wire.Packed],
            options: argparse.Namespace) -> Iterator[tuple[str, Iterator[wire.Packed]]]:
  """Yields where batches come from, and batches without end."""
  if importlib.util.find_spec("reverb") is None:
    yield "memory", itertools.repeat(stacked(items))
    return
  # Not at the top: everything else here runs on any Python, without Reverb.
  from benchmarks import learner as learner_benchmark
  from starleague.data.reverb import datasets
  with learner_benchmark.served(items, options.preset, options.unroll_length) as address, \
      datasets.dataset(address, options.sequences, run_files.PLAYER, config,
                       options.unroll_length) as data:
    yield "reverb", data


def measure_feeding(config: agent_config.AgentConfig, items: list[wire.Packed], learner: Learner,
                    options: argparse.Namespace) -> None:
  """Prints the figures of batches on their way to the device."""
  size = sum(x.nbytes for item in items for x in item)
  with batches(config, items, options) as (source, data), \
      prefetch.prefetch(data, learner.run.place) as fed:
    for _ in range(4):
      next(fed)  # batches that were ready before the clock starts
    alone, _ = median_seconds(lambda: next(fed), options.rounds)
    learning, _ = median_seconds(lambda: learner.once(next(fed)), options.rounds)
  show(feeding_from=source, feeding_agent_steps_per_second=learner.steps / alone,
       feeding_megabytes_per_second=size / alone / 1e6,
       feeding_update_agent_steps_per_second=learner.steps / learning,
       feeding_update_ratio=learner.seconds / learning)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
  parser.add_argument("--preset", default="full")
  parser.add_argument("--dtype", default="bfloat16", choices=agent_config.DTYPES)
  parser.add_argument("--unroll_length", type=int, default=64, help="T")
  parser.add_argument("--sequences", type=int, default=32, help="trajectories of a batch")
  parser.add_argument("--accumulate", type=int, default=1, help="parts of an update's batch")
  parser.add_argument("--acting", type=int, default=256, help="players that act at once")
  parser.add_argument("--tier", default="large", choices=list(GAME_CONFIGS))
  parser.add_argument("--games", type=int, default=4096, help="games of Skirmish at once")
  parser.add_argument("--steps", type=int, default=16, help="game steps of a measurement")
  parser.add_argument("--rounds", type=int, default=20, help="calls of each measurement")
  parser.add_argument("--peak_flops", type=float, help="of the device; known of H200, H100, A100")
  options = parser.parse_args()
  if "feeding" in options.parts and "update" not in options.parts:
    parser.error("--parts: feeding is compared with update, give both")
  begin = time.perf_counter()
  show(device=jax.devices()[0].device_kind, jax=jax.__version__, preset=options.preset,
       dtype=options.dtype)
  config = dataclasses.replace(agent_config.preset(options.preset), dtype=options.dtype)
  params = agent.make_policy(config).init(jax.random.key(0))
  if "update" in options.parts:
    trajectories = agent_benchmark.make_trajectories(
      config, options.unroll_length + 1, options.sequences)
    items = packed(trajectories)
    learner = measure_update(config, params, trajectories, items, options)
    if "feeding" in options.parts:
      measure_feeding(config, items, learner, options)
    del learner  # and the memory of its state
  if "acting" in options.parts:
    show(acting_agent_steps_per_second=agent_benchmark.acting(
      config, params, options.acting, options.rounds))
  if "skirmish" in options.parts:
    rate, compiling = skirmish.measure(GAME_CONFIGS[options.tier], options.games, options.steps)
    show(skirmish_environment_steps_per_second=rate, skirmish_agent_steps_per_second=2 * rate,
         skirmish_compile_seconds=compiling)
  show(total_seconds=time.perf_counter() - begin)


if __name__ == "__main__":
  main()
