"""Agent steps a second of an actor, against acting for one player at a time; and where time goes.

  python benchmarks/actor.py

One compiled call plays many games and infers the players that are due in batches. The peer, in the
same run, is the same policy asked for one player after the other, as a loop over dm_env steps does.
"""

import argparse
import functools
import time

import jax
import numpy as np

from starleague.actor import rollouts
from starleague.agent import types
from starleague.data import wire
from starleague.experiments.run import settings, wiring


def seconds(call, repeats: int) -> float:
  """Median time of a call, which has run once before."""
  times = []
  for _ in range(repeats):
    start = time.perf_counter()
    jax.block_until_ready(call())
    times.append(time.perf_counter() - start)
  return float(np.median(times))


def timed(function, *arguments, repeats: int = 15) -> float:
  """Median time of a function under jit, compiled before."""
  compiled = jax.jit(function)
  jax.block_until_ready(compiled(*arguments))
  return seconds(lambda: compiled(*arguments), repeats)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--calls", type=int, default=10, help="calls of the program that are timed")
  options = parser.parse_args()
  config = settings.complete({})
  parts = wiring.make_parts(config)
  program = wiring.make_rollouts(parts, config)
  size, games = config.actor.inference_batch, config.actor.games
  params = wiring.initial_params(parts, config)
  targets, opponents = rollouts.no_targets(), np.arange(games) % (1 + len(parts.opponents))
  probabilities = np.full(1 + len(parts.opponents), 1 / (1 + len(parts.opponents)), np.float32)

  start = time.perf_counter()
  state = program.init(jax.random.key(0), opponents, targets)
  state, records, _ = program.run(params, state, probabilities, targets)
  jax.block_until_ready(records)
  print(f"compile and first call: {time.perf_counter() - start:.1f} s")
  rates, fills = [], []
  for _ in range(options.calls):
    start = time.perf_counter()
    state, records, _ = program.run(params, state, probabilities, targets)
    jax.block_until_ready(records)
    filled = int((np.asarray(records.row) >= 0).sum())
    rates.append(filled / (time.perf_counter() - start))
    fills.append(filled / records.row.size)
  rate = float(np.median(rates))
  print(f"actor: {rate:.0f} agent steps/s (median of {options.calls} calls, min {min(rates):.0f}, "
        f"max {max(rates):.0f}); inference slots filled {np.mean(fills):.1%}")

  # The stages of one iteration, each compiled alone on the games as they stand.
  game = state.environment
  rows = np.arange(size)
  some = jax.tree.map(lambda x: x[rows // 2], game)
  observation, privileged = jax.jit(jax.vmap(parts.environment.observe))(some, rows % 2)
  core = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:size], state.core)
  keys = jax.random.split(jax.random.key(1), size)
  actions = jax.tree.map(lambda x: np.zeros((games, 2, *x.shape), x.dtype),
                         types.action_spec(parts.config.max_selected))
  step = jax.vmap(parts.policy.step, in_axes=(None, 0, 0, 0))
  record = jax.tree.map(lambda x: np.zeros((size, *x.shape), x.dtype), types.step_spec(
    parts.config.max_entities, parts.config.map_size, parts.config.max_selected))
  scripted = jax.vmap(functools.partial(parts.scripted, player=1))
  stages = {
    "inference": timed(lambda *a: step(*a)[:2], params, keys, observation, core),
    "observe": timed(jax.vmap(parts.environment.observe), some, rows % 2),
    "pack": timed(wire.pack_steps, record),
    "act": timed(jax.vmap(parts.environment.act), game, actions, np.ones((games, 2), bool)),
    "advance (each)": timed(jax.vmap(parts.environment.advance), game),
    "scripted players (each)": timed(
      scripted, np.zeros((games,), np.int32), jax.random.split(jax.random.key(2), games), game)}
  iteration = size / rate
  print(f"an iteration of {size} agent steps takes {1000 * iteration:.1f} ms; its stages, alone:")
  for name, taken in stages.items():
    print(f"  {name:24} {1000 * taken:7.2f} ms  {taken / iteration:6.1%}")

  one = jax.jit(lambda *a: parts.policy.step(*a)[:2])
  first = jax.tree.map(lambda x: x[0], (keys, observation, core))
  jax.block_until_ready(one(params, *first))
  single = 1 / seconds(lambda: one(params, *first), 200)
  print(f"one player at a time, inference alone: {single:.0f} agent steps/s")
  print(f"ratio actor / one at a time: {rate / single:.2f}")


if __name__ == "__main__":
  main()
