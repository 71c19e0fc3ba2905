"""What the published agent costs to act and to learn on this machine.

  python benchmarks/agent.py                       # 2 sequences of 8 steps, as on a CPU
  python benchmarks/agent.py --sequences 32 --unroll_length 64 --dtype bfloat16   # on a GPU

Acting one player at a time is the peer of acting for a batch, and unrolling without its gradient
that of the whole update: the ratios say what batching gives and what learning costs.
"""

import argparse
import dataclasses
import resource
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.learner import objective, train_state, update, weights

# bfloat16, dense, as published: by the device's name.
PEAK_FLOPS = {"NVIDIA H200": 989e12, "NVIDIA H100 80GB HBM3": 989e12, "NVIDIA A100": 312e12}


def steps(settings: agent_config.AgentConfig, shape: tuple[int, ...]) -> types.Step:
  """Made-up steps full of entities: costs do not depend on what is seen."""
  random = np.random.default_rng(0)
  spec = types.step_spec(settings.max_entities, settings.map_size, settings.max_selected)
  made = jax.tree.map(lambda x: np.zeros((*shape, *x.shape), x.dtype), spec)
  o = made.observation
  o.entity_count[...] = settings.max_entities
  o.entities[...] = random.integers(0, 200, o.entities.shape)
  o.minimap[...] = random.integers(0, 2, o.minimap.shape)
  o.available_actions[...] = True
  made.action.delay[...] = 8
  made.action.function[...] = 2
  made.action.units[...] = np.arange(settings.max_selected)
  made.discount[...] = made.weight[...] = 1.0
  return made


def measure(run: Callable, rounds: int) -> tuple[float, float]:
  """Medians of wall seconds and of the process's CPU seconds of a call."""
  wall, processor = [], []
  for _ in range(rounds):
    begin = time.perf_counter(), time.process_time()
    jax.block_until_ready(run())
    wall.append(time.perf_counter() - begin[0])
    processor.append(time.process_time() - begin[1])
  return float(np.median(wall)), float(np.median(processor))


def report(name: str, compiled, count: int, seconds: tuple[float, float]) -> None:
  """A line on a compiled function of `count` agent steps."""
  wall, processor = seconds
  flops = compiled.cost_analysis().get("flops", float("nan"))
  memory = compiled.memory_analysis()
  print(f"{name}: {count / wall:.1f} agent steps/s; {1e3 * wall:.0f} ms and {processor:.2f} "
        f"CPU-seconds a call of {count}; {flops / count / 1e9:.2f} GFLOP a step, "
        f"{flops / wall / 1e9:.0f} GFLOP/s; temporary memory "
        f"{memory.temp_size_in_bytes / 2**20:.0f} MiB", flush=True)


def compiled(function: Callable, *arguments):
  return jax.jit(function).lower(*arguments).compile()


def acting(settings: agent_config.AgentConfig, params, batch: int, rounds: int) -> float:
  """Agent steps a second of acting for a batch; prints them."""
  policy = agent.make_policy(settings)
  observation = jax.device_put(steps(settings, (batch,)).observation)
  keys = jax.random.split(jax.random.key(0), batch)
  state = jax.tree.map(lambda x: jnp.zeros((batch, *x.shape)), policy.initial_state())
  run = compiled(jax.vmap(policy.step, (None, 0, 0, 0)), params, keys, observation, state)
  jax.block_until_ready(run(params, keys, observation, state))
  seconds = measure(lambda: run(params, keys, observation, state).action, rounds)
  report(f"acting, {batch} at once", run, batch, seconds)
  return batch / seconds[0]


def unrolling(settings, params, trajectories, count: int, rounds: int) -> dict[str, float]:
  """Agent steps a second of the unroll, and of it with its gradient; prints them."""
  policy = agent.make_policy(settings)

  def total(params, trajectories):
    output = policy.unroll_batch(params, trajectories)
    return sum(x.sum() for x in jax.tree.leaves((output.logits, output.baselines)))

  rates = {}
  for name, function in (("forward", total), ("forward and backward", jax.grad(total))):
    run = compiled(function, params, trajectories)
    jax.block_until_ready(run(params, trajectories))
    seconds = measure(lambda run=run: run(params, trajectories), rounds)
    report(name, run, count, seconds)
    rates[name] = count / seconds[0]
  return rates


def learning(settings, params, trajectories, count: int, accumulate: int, rounds: int) -> float:
  """Agent steps a second of the whole update on one device; prints them."""
  policy = agent.make_policy(settings)
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


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", default="full")
  parser.add_argument("--dtype", default="float32", choices=agent_config.DTYPES)
  parser.add_argument("--embedding", default="gather", choices=agent_config.ENTITY_EMBEDDINGS)
  parser.add_argument("--sequences", type=int, default=2)
  parser.add_argument("--unroll_length", type=int, default=8, help="Steps learnt of a sequence.")
  parser.add_argument("--accumulate", type=int, default=1, help="Parts of an update's batch.")
  parser.add_argument("--acting", type=int, default=16, help="Players that act at once.")
  parser.add_argument("--rounds", type=int, default=5)
  options = parser.parse_args()
  settings = dataclasses.replace(
    agent_config.preset(options.preset), dtype=options.dtype, entity_embedding=options.embedding)
  device = jax.devices()[0]
  print(f"{options.preset} in {options.dtype} on {device.device_kind}, JAX {jax.__version__}")
  params = agent.make_policy(settings).init(jax.random.key(0))

  one = acting(settings, params, 1, options.rounds)
  many = acting(settings, params, options.acting, options.rounds)
  print(f"ratio {options.acting} at once / one at a time: {many / one:.2f}")

  made = steps(settings, (options.unroll_length + 1, options.sequences))
  state = jax.tree.map(
    lambda x: np.zeros((options.sequences, *x.shape), x.dtype), types.core_state_spec(settings))
  trajectories = types.Trajectory(made, state)
  count = options.sequences * options.unroll_length
  rates = unrolling(settings, params, jax.device_put(trajectories), count, options.rounds)
  learnt = learning(settings, params, trajectories, count, options.accumulate, options.rounds)
  print(f"ratio whole update / forward alone: {learnt / rates['forward']:.3f}")
  peak = PEAK_FLOPS.get(device.device_kind)
  if peak:
    batch = jax.device_put(trajectories)
    policy = agent.make_policy(settings)
    total = compiled(policy.unroll_batch, params, batch)
    forward = total.cost_analysis()["flops"]
    # Backward is twice forward, and the teacher's unroll one more forward without baselines.
    print(f"model FLOP/s over the peak of {peak / 1e12:.0f} TFLOP/s: "
          f"{4 * forward / count * learnt / peak:.1%}")
  print(f"peak resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
  main()
