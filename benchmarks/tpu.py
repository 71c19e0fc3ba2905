"""Memory, operations and rooflines of the published agent on TPUs, compiled without a TPU.

  pip install --no-deps -r requirements/tpu.txt
  python -m benchmarks.tpu                                  # acting and unrolling on one device
  python -m benchmarks.tpu --programs update                # the learner's update on all of them
  python -m benchmarks.tpu --topologies v5e:4x4 --remat blocks

XLA's TPU compiler reports each program's memory, floating-point operations and bytes. With the
chip's published peaks these give the roofline, the lower bound of a call's time. The compiler also
estimates the cycles of each operation, except for custom kernels (the entity transformer). The
published clock converts them to a time. Nothing runs.

The compiler counts the body of a loop once. Figures are therefore multiplied by the number of parts
of a share (--accumulate), which counts the optimizer, outside that loop, too often. The loops over
the steps of the core and the picks of units are not corrected.
"""

import argparse
import dataclasses
import functools
import math
import os
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_STDERR_LOG_LEVEL": "3"}

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax._src import tpu_custom_call
from jax.experimental import topologies

from starleague import agent
from starleague.agent import blocks, core, types
from starleague.agent import config as agent_config
from starleague.learner import objective, train_state, update, weights


class Peak(NamedTuple):
  """Peak rates and memory of one device of a topology."""

  flops: float  # per second, bfloat16
  bandwidth: float  # bytes per second, of its memory
  memory: float  # bytes
  clock: float | None  # cycles per second; None: not published


# Cloud TPU's published figures per core: half a chip's for v3 and v4, which have two cores.
PEAKS = {
  "TPU v3": Peak(123e12 / 2, 900e9 / 2, 16 * 2**30, 940e6),
  "TPU v4": Peak(275e12 / 2, 1228e9 / 2, 16 * 2**30, 1050e6),
  "TPU v5 lite": Peak(197e12, 819e9, 16 * 2**30, None),
  "TPU v6 lite": Peak(918e12, 1640e9, 32 * 2**30, None),
}
# A TPU machine names the age of its libtpu, which decides the format of kernels. A topology does
# not, and JAX would write a format that is newer than the libtpu of requirements/tpu.txt.
LIBTPU = (2025, 8, 1)
tpu_custom_call.is_cloud_tpu_older_than = lambda *date: LIBTPU < date
TOPOLOGIES = ("v3:8x8", "v4:4x4x4", "v5e:4x4", "v6e:4x4")


class Program(NamedTuple):
  """A function of the agent to compile for the devices of a topology."""

  name: str
  steps: int  # agent steps of a call on one device
  parts: int  # iterations of the loop over the parts of a share
  lower: Callable[[list[jax.Device]], Any]  # devices -> jax.stages.Lowered


def batched(spec, size: int, axis: int = 0):
  """Adds a batch axis to shapes."""
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct((*x.shape[:axis], size, *x.shape[axis:]), x.dtype), spec)


def on_one(run: Callable, *arguments) -> Callable[[list[jax.Device]], Any]:
  """Returns a function that lowers `run` for the first device."""
  def lower(devices):
    sharding = jax.sharding.SingleDeviceSharding(devices[0])
    return jax.jit(run).lower(*jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arguments))

  return lower


def transform(config: agent_config.AgentConfig, rows: jax.Array, mask: jax.Array) -> jax.Array:
  """Applies one layer of the entity transformer to sets [N, E, C]; call within a transform."""
  with blocks.float32_parameters():
    layer = blocks.Transformer(
      1, config.entity_attention_heads, config.entity_key_size, config.entity_hidden, "layer",
      attention_method=config.entity_attention, mlp_method=config.entity_mlp)
    return hk.vmap(layer, split_rng=False)(rows, mask)


def programs(config: agent_config.AgentConfig, options: argparse.Namespace) -> dict[str, Program]:
  """Returns the programs: acting, unrolling without and with its gradient, and the update.

  "layer" is one layer of the entity transformer: forward, with its gradient.
  """
  policy = agent.make_policy(config)
  batch, sequences, unroll_length = options.batch, options.sequences, options.unroll_length
  params = jax.eval_shape(policy.init, jax.random.key(0))
  keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), batch))
  observation = types.observation_spec(config.max_entities, config.map_size)
  state = jax.eval_shape(lambda: core.initial_state(config))
  spec = types.trajectory_spec(config, unroll_length)
  trajectories = types.Trajectory(
    batched(spec.steps, sequences, 1), batched(spec.initial_state, sequences))
  unroll = policy.unroll_batch
  costs, optimizer = weights.RLWeights(), train_state.make_optimizer(3e-5)

  def total(params, trajectories):
    """Sums all outputs of the unroll, so that the compiler removes none."""
    output = unroll(params, trajectories)
    return sum(x.sum() for x in jax.tree.leaves((output.logits, output.baselines)))

  def loss(params, key, batch, teacher):
    del key
    return objective.rl_loss(policy, costs, params, teacher, batch)

  def lower_update(devices):
    zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), params)
    state = train_state.initial_state(zeros, optimizer, jax.random.key(0))
    run = update.make_update(loss, optimizer, devices, options.accumulate)
    return run.lower(state, trajectories, params)

  layer = hk.transform(functools.partial(transform, config))
  sets = sequences * (unroll_length + 1)
  rows = jax.ShapeDtypeStruct((sets, config.max_entities, config.entity_size),
                              jnp.dtype(config.dtype))
  mask = jax.ShapeDtypeStruct(rows.shape[:2], jnp.bool_)
  of_layer = jax.eval_shape(layer.init, jax.random.key(0), rows, mask)

  def transformed(params, rows, mask):
    return layer.apply(params, None, rows, mask).astype(jnp.float32).sum()

  acting = jax.vmap(policy.step, (None, 0, 0, 0))
  steps = sequences * unroll_length
  return {
    "step": Program("step", batch, 1, on_one(
      acting, params, keys, batched(observation, batch), batched(state, batch))),
    "unroll": Program("unroll", steps, 1, on_one(total, params, trajectories)),
    "layer": Program(
      "layer", sets, 1, on_one(jax.value_and_grad(transformed, (0, 1)), of_layer, rows, mask)),
    "gradient": Program("gradient", steps, 1, on_one(jax.grad(total), params, trajectories)),
    "update": Program("update", steps, options.accumulate, lower_update)}


_COLLECTIVE = re.compile(
  r" = (.+?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_SHAPE = re.compile(r"\b(pred|bf16|[a-z]+(?:8|16|32|64))\[([\d,]*)\]")


def collectives(text: str) -> dict[str, tuple[int, int]]:
  """Returns kind -> (count, bytes of results per device) of the communication in an HLO text."""
  found: dict[str, tuple[int, int]] = {}
  for shapes, kind in _COLLECTIVE.findall(text):
    count, size = found.get(kind, (0, 0))
    for dtype, dimensions in _SHAPE.findall(shapes):
      width = 1 if dtype == "pred" else int(re.sub(r"\D", "", dtype)) // 8
      size += width * math.prod(int(x) for x in dimensions.split(",") if x)
    found[kind] = (count + 1, size)
  return found


def report(topology: str, devices: list[jax.Device], program: Program) -> None:
  """Compiles a program and prints its memory, operations, bytes and bounds per device."""
  peak = PEAKS[devices[0].device_kind]
  begin = time.process_time()
  compiled = program.lower(devices).compile()
  seconds = time.process_time() - begin
  memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
  flops, accessed = program.parts * cost["flops"], program.parts * cost["bytes accessed"]
  held = (memory.argument_size_in_bytes + memory.output_size_in_bytes
          + memory.temp_size_in_bytes - memory.alias_size_in_bytes)
  computing, moving = flops / peak.flops, accessed / peak.bandwidth
  least = max(computing, moving)
  text = compiled.as_text()
  cycles = program.parts * sum(int(n) for n in _CYCLES.findall(text))
  estimate = "" if peak.clock is None else (
    f" or {1e3 * cycles / peak.clock:.0f} ms, {program.steps * peak.clock / cycles:.0f} agent "
    f"steps/s per device")
  shared = ", ".join(f"{count} {kind} of {size / 1e6:.1f} MB" for kind, (count, size)
                     in collectives(text).items()) or "no collectives"
  print(f"{topology} {program.name} ({program.steps} steps per device): "
        f"memory {held / 2**30:.2f} of {peak.memory / 2**30:.0f} GiB "
        f"(temporary {memory.temp_size_in_bytes / 2**30:.2f}), "
        f"{flops / 1e9:.0f} GFLOP, {accessed / 1e9:.1f} GB, {shared}; "
        f"computing {1e3 * computing:.1f} ms, memory {1e3 * moving:.1f} ms: at most "
        f"{program.steps / least:.0f} agent steps/s per device, "
        f"{len(devices) * program.steps / least:.0f} on all {len(devices)}; "
        f"estimated {cycles / 1e6:.0f} Mcycles{estimate}; "
        f"compiled in {seconds:.0f} CPU-seconds", flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", default="full")
  parser.add_argument("--topologies", nargs="+", default=TOPOLOGIES)
  parser.add_argument("--programs", nargs="+", default=("step", "unroll", "gradient"),
                      choices=("step", "unroll", "layer", "gradient", "update"))
  parser.add_argument("--batch", type=int, default=256, help="players that act at once")
  parser.add_argument("--sequences", type=int, default=4, help="trajectories per device")
  parser.add_argument("--unroll_length", type=int, default=64, help="T")
  parser.add_argument("--accumulate", type=int, default=1, help="parts of a device's share")
  parser.add_argument("--transformer", default="fused", choices=agent_config.ENTITY_MLPS,
                      help="attention and MLP of the entity transformer")
  parser.add_argument("--remat", default="none", choices=agent_config.REMATS)
  options = parser.parse_args()
  config = dataclasses.replace(agent_config.preset(options.preset), remat=options.remat,
                               entity_attention=options.transformer, entity_mlp=options.transformer)
  devices = {name: list(topologies.get_topology_desc(platform="tpu", topology_name=name).devices)
             for name in options.topologies}
  for topology, (first, *_) in devices.items():
    if first.device_kind not in PEAKS:
      parser.error(f"--topologies: expected devices {', '.join(PEAKS)}; found "
                   f"{first.device_kind} in {topology}")
  by_name = programs(config, options)
  for topology, found in devices.items():
    for name in options.programs:
      report(topology, found, by_name[name])


if __name__ == "__main__":
  main()
