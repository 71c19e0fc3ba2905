"""The cost of acting and learning with the published agent on this machine.

  python -m benchmarks.agent                # 2 sequences of 8 steps, as on a CPU
  python -m benchmarks.agent --init         # CPU seconds of init in a fresh process
  python -m benchmarks.agent --peer PYTHON  # in turn with benchmarks/peers/torch_agent.py, one core
  python -m benchmarks.agent --peer PYTHON --neighbour --torch_compile   # with a busy memory
  python -m benchmarks.agent --sequences 32 --unroll_length 64 --dtype bfloat16   # on a GPU

Acting for one player is the baseline of acting for a batch, and the forward pass that of the whole
update: the ratios give the gain of batching and the cost of learning.
"""

import argparse
import dataclasses
import math
import os
import resource
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers import agent as agent_peer
from benchmarks.peers import neighbour
from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.learner import objective, train_state, update, weights

# bfloat16, dense, as published: by the device's name, as JAX tells it.
PEAK_FLOPS = {
  "NVIDIA H200": 989e12, "NVIDIA H100 80GB HBM3": 989e12,
  **dict.fromkeys(("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB",
                   "NVIDIA A100 80GB PCIe"), 312e12)}


def steps(config: agent_config.AgentConfig, shape: tuple[int, ...]) -> types.Step:
  """Returns artificial steps full of entities; costs do not depend on the values."""
  random = np.random.default_rng(0)
  spec = types.step_spec(config.max_entities, config.map_size, config.max_selected)
  made = jax.tree.map(lambda x: np.zeros((*shape, *x.shape), x.dtype), spec)
  o = made.observation
  o.entity_count[...] = config.max_entities
  o.entities[...] = random.integers(0, 200, o.entities.shape)
  o.minimap[...] = random.integers(0, 2, o.minimap.shape)
  o.available_actions[...] = True
  made.action.delay[...] = 8
  made.action.function[...] = 2
  made.action.units[...] = np.arange(config.max_selected)
  made.discount[...] = made.weight[...] = 1.0
  return made


def measure(run: Callable, rounds: int) -> tuple[float, float]:
  """Returns the median wall seconds and CPU seconds of a call."""
  wall, processor = [], []
  for _ in range(rounds):
    begin = time.perf_counter(), time.process_time()
    jax.block_until_ready(run())
    wall.append(time.perf_counter() - begin[0])
    processor.append(time.process_time() - begin[1])
  return float(np.median(wall)), float(np.median(processor))


def report(name: str, compiled, count: int, computed: int, seconds: tuple[float, float]) -> None:
  """Prints one line on a compiled function of `count` agent steps.

  The network computes `computed` steps: in an unroll, one more of each sequence.
  """
  wall, processor = seconds
  flops = compiled.cost_analysis().get("flops", float("nan"))
  memory = compiled.memory_analysis()
  print(f"{name}: {count / wall:.1f} agent steps/s; {1e3 * wall:.0f} ms and {processor:.2f} "
        f"CPU-seconds a call of {count}; {flops / computed / 1e9:.2f} GFLOP a step of the network, "
        f"{flops / wall / 1e9:.0f} GFLOP/s; temporary memory "
        f"{memory.temp_size_in_bytes / 2**20:.0f} MiB", flush=True)


def compiled(function: Callable, *arguments):
  return jax.jit(function).lower(*arguments).compile()


def acting(config: agent_config.AgentConfig, params, batch: int, rounds: int) -> float:
  """Prints and returns the agent steps per second of acting for a batch."""
  policy = agent.make_policy(config)
  observation = jax.device_put(steps(config, (batch,)).observation)
  keys = jax.random.split(jax.random.key(0), batch)
  state = jax.tree.map(lambda x: jnp.zeros((batch, *x.shape)), policy.initial_state())
  run = compiled(jax.vmap(policy.step, (None, 0, 0, 0)), params, keys, observation, state)
  jax.block_until_ready(run(params, keys, observation, state))
  seconds = measure(lambda: run(params, keys, observation, state).action, rounds)
  report(f"acting, {batch} at once", run, batch, batch, seconds)
  return batch / seconds[0]


def unrolling(config: agent_config.AgentConfig, params, trajectories, count: int,
              rounds: int) -> dict[str, float]:
  """Prints and returns the agent steps per second of the unroll, without and with gradient."""
  policy = agent.make_policy(config)

  def total(params, trajectories):
    output = policy.unroll_batch(params, trajectories)
    return sum(x.sum() for x in jax.tree.leaves((output.logits, output.baselines)))

  rates = {}
  for name, function in (("forward", total), ("forward and backward", jax.grad(total))):
    run = compiled(function, params, trajectories)
    jax.block_until_ready(run(params, trajectories))
    seconds = measure(lambda run=run: run(params, trajectories), rounds)
    report(name, run, count, math.prod(trajectories.steps.discount.shape), seconds)
    rates[name] = count / seconds[0]
  return rates


def learning(config: agent_config.AgentConfig, params, trajectories, count: int, accumulate: int,
             rounds: int) -> float:
  """Prints and returns the agent steps per second of the whole update on one device."""
  policy = agent.make_policy(config)
  costs = weights.RLWeights()

  def loss(params, key, batch, teacher):
    del key
    return objective.rl_loss(policy, costs, params, teacher, batch)

  optimizer = train_state.make_optimizer(3e-5)
  devices = jax.local_devices()[:1]
  run = update.make_update(loss, optimizer, devices, accumulate)
  host = jax.device_get(params)
  state = run.replicate(train_state.initial_state(host, optimizer, jax.random.key(0)))
  teacher, batch = run.replicate(host), run.place(trajectories)

  def once():
    nonlocal state
    state, metrics = run(state, batch, teacher)
    return metrics

  jax.block_until_ready(once())
  wall, processor = measure(once, rounds)
  print(f"whole update: {count / wall:.1f} agent steps/s; {1e3 * wall:.0f} ms and "
        f"{processor:.2f} CPU-seconds an update of {count}", flush=True)
  return count / wall


def initialising(config: agent_config.AgentConfig) -> None:
  """Prints the CPU seconds of `policy.init` in this process, which must not have run it before."""
  policy, key = agent.make_policy(config), jax.block_until_ready(jax.random.key(0))
  begin = time.process_time()
  params = jax.block_until_ready(policy.init(key))
  count = sum(x.size for x in jax.tree.leaves(params))
  print(f"init: {time.process_time() - begin:.1f} CPU-seconds for {count:,} parameters", flush=True)


def comparing(config: agent_config.AgentConfig, params, python: str, options) -> None:
  """Measures acting, forward and backward in turn with the PyTorch agent, on one core."""
  length = options.unroll_length + 1
  peer = agent_peer.Peer(python, config, length, options.sequences, options.torch_compile)
  ours = sum(x.size for x in jax.tree.leaves(params))
  print(f"parameters: {ours:,}, PyTorch {peer.parameters:,}")
  policy = agent.make_policy(config)
  observation = jax.device_put(steps(config, ()).observation)
  trajectories = jax.device_put(make_trajectories(config, length, options.sequences))

  def total(params, trajectories):
    output = policy.unroll_batch(params, trajectories)
    return sum(x.sum() for x in jax.tree.leaves((output.logits, output.baselines)))

  arguments = {"acting": (params, jax.random.key(0), observation, policy.initial_state()),
               "forward": (params, trajectories), "forward and backward": (params, trajectories)}
  functions = (policy.step, total, jax.grad(total))
  for name, function in zip(agent_peer.ROUNDS, functions, strict=True):
    run = compiled(function, *arguments[name])
    jax.block_until_ready(run(*arguments[name]))
    agent_peer.compare(peer, name, lambda run=run, name=name: run(*arguments[name]),
                       options.rounds, run.cost_analysis()["bytes accessed"])
  peer.close()


def make_trajectories(config: agent_config.AgentConfig, length: int,
                      sequences: int) -> types.Trajectory:
  """Returns artificial trajectories, time-major."""
  state = jax.tree.map(
    lambda x: np.zeros((sequences, *x.shape), x.dtype), types.core_state_spec(config))
  return types.Trajectory(steps(config, (length, sequences)), state)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", default="full")
  parser.add_argument("--set", nargs="*", default=[], metavar="FIELD=VALUE",
                      help="Other values of the preset's fields, as core_size=192.")
  parser.add_argument("--dtype", default="float32", choices=agent_config.DTYPES)
  parser.add_argument("--embedding", default="gather", choices=agent_config.ENTITY_EMBEDDINGS)
  parser.add_argument("--transformer", default="plain", choices=agent_config.ENTITY_MLPS,
                      help="Attention and MLP of the entity transformer.")
  parser.add_argument("--sequences", type=int, default=2)
  parser.add_argument("--unroll_length", type=int, default=8, help="Steps learnt of a sequence.")
  parser.add_argument("--accumulate", type=int, default=1, help="Parts of an update's batch.")
  parser.add_argument("--acting", type=int, default=16, help="Players that act at once.")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--init", action="store_true", help="Measure the initialisation only.")
  parser.add_argument("--peer", help="A Python with torch; measures the PyTorch agent in turn.")
  parser.add_argument("--torch_compile", action="store_true", help="The peer by torch.compile too.")
  parser.add_argument("--neighbour", action="store_true",
                      help="With --peer: a process that streams memory on another core.")
  options = parser.parse_args()
  if options.peer:
    first, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {first})  # for JAX's threads, and the peer's
    if options.neighbour:
      if not others:
        parser.error("--neighbour: needs a second core, found one")
      with neighbour.streaming(others[0]):
        return run(options)
  run(options)


def run(options: argparse.Namespace) -> None:
  """Measures the parts that the options name, on the first device."""
  config = agent_config.changed(dataclasses.replace(
    agent_config.preset(options.preset), dtype=options.dtype, entity_embedding=options.embedding,
    entity_attention=options.transformer, entity_mlp=options.transformer), ",".join(options.set))
  device = jax.devices()[0]
  print(f"{' '.join([options.preset, *options.set])} in {options.dtype} on {device.device_kind}, "
        f"JAX {jax.__version__}")
  if options.init:
    initialising(config)
    return
  params = agent.make_policy(config).init(jax.random.key(0))
  if options.peer:
    comparing(config, params, options.peer, options)
    return

  one = acting(config, params, 1, options.rounds)
  many = acting(config, params, options.acting, options.rounds)
  print(f"ratio {options.acting} at once / one at a time: {many / one:.2f}")

  trajectories = make_trajectories(config, options.unroll_length + 1, options.sequences)
  count = options.sequences * options.unroll_length
  rates = unrolling(config, params, jax.device_put(trajectories), count, options.rounds)
  learnt = learning(config, params, trajectories, count, options.accumulate, options.rounds)
  print(f"ratio whole update / forward alone: {learnt / rates['forward']:.3f}")
  peak = PEAK_FLOPS.get(device.device_kind)
  if peak:
    batch = jax.device_put(trajectories)
    policy = agent.make_policy(config)
    total = compiled(policy.unroll_batch, params, batch)
    forward = total.cost_analysis()["flops"]
    # Backward is twice forward, and the teacher's unroll one more forward without baselines.
    print(f"model FLOP/s over the peak of {peak / 1e12:.0f} TFLOP/s: "
          f"{4 * forward / count * learnt / peak:.1%}")
  peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  print(f"peak resident memory: {peak_kib / 2**20:.1f} GiB")


if __name__ == "__main__":
  main()
