"""Agent steps/s of an actor, against acting for one player at a time; and the time of its stages.

  python -m benchmarks.actor

One compiled call plays many games and infers the players that are due in batches. The peer, in the
same run, is the same policy called for one player at a time, as a loop over dm_env steps does.
"""

import argparse
import functools
import time
from typing import Any, NamedTuple

import jax
import ml_collections
import numpy as np

from starleague.actor import rollouts
from starleague.actor.loops import programs
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.data import wire
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.parts.actor_options import actor_options


def seconds(call, repeats: int) -> float:
  """Returns the median time of a call that has run once before."""
  times = []
  for _ in range(repeats):
    start = time.perf_counter()
    jax.block_until_ready(call())
    times.append(time.perf_counter() - start)
  return float(np.median(times))


def timed(function, *arguments, repeats: int = 15) -> float:
  """Returns the median time of a function under jit, without its compilation."""
  compiled = jax.jit(function)
  jax.block_until_ready(compiled(*arguments))
  return seconds(lambda: compiled(*arguments), repeats)


class Played(NamedTuple):
  """A measured rollout program and its state."""

  rate: float  # agent steps/s
  state: rollouts.RolloutState


def measure_program(parts: Parts, config: ml_collections.ConfigDict, params: Any,
                    calls: int) -> Played:
  """Measures whole calls of the rollout program, with its records on the host."""
  program = programs.make_single(parts, actor_options(config))
  opponents = 1 + len(parts.opponents)
  conditioning = unconditional(len(parts.maps), parts.mmr)
  probabilities = np.full(opponents, 1 / opponents, np.float32)
  start = time.perf_counter()
  state = program.init(jax.random.key(0), np.arange(config.actor.games) % opponents, conditioning)
  state, records, _ = program.run(params, state, probabilities, conditioning)
  jax.block_until_ready(records)
  print(f"compile and first call: {time.perf_counter() - start:.1f} s")
  rates, fills = [], []
  for _ in range(calls):
    start = time.perf_counter()
    state, records, _ = program.run(params, state, probabilities, conditioning)
    jax.block_until_ready(records)
    filled = int((np.asarray(records.row) >= 0).sum())
    rates.append(filled / (time.perf_counter() - start))
    fills.append(filled / records.row.size)
  rate = float(np.median(rates))
  print(f"actor: {rate:.0f} agent steps/s (median of {calls} calls, min {min(rates):.0f}, "
        f"max {max(rates):.0f}); inference slots filled {np.mean(fills):.1%}")
  return Played(rate, state)


def measure_stages(parts: Parts, config: ml_collections.ConfigDict, params: Any,
                   played: Played) -> float:
  """Measures each stage of an iteration, compiled alone; returns the rate of one player alone."""
  size, games = config.actor.inference_batch, config.actor.games
  environment, game = programs.compiled_games(parts).environment, played.state.environment
  rows = np.arange(size)
  some = jax.tree.map(lambda x: x[rows // 2], game)
  observation, _ = jax.jit(jax.vmap(environment.observe))(some, rows % 2)
  core = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:size], played.state.core)
  keys = jax.random.split(jax.random.key(1), size)
  actions = jax.tree.map(lambda x: np.zeros((games, 2, *x.shape), x.dtype),
                         types.action_spec(parts.config.max_selected))
  record = jax.tree.map(lambda x: np.zeros((size, *x.shape), x.dtype), types.step_spec(
    parts.config.max_entities, parts.config.map_size, parts.config.max_selected))
  step = jax.vmap(parts.policy.step, in_axes=(None, 0, 0, 0))
  scripted = jax.vmap(functools.partial(programs.compiled_games(parts).scripted, player=1))
  stages = {
    "inference": timed(lambda *a: step(*a)[:2], params, keys, observation, core),
    "observe": timed(jax.vmap(environment.observe), some, rows % 2),
    "pack": timed(wire.pack_steps, record),
    "act": timed(jax.vmap(environment.act), game, actions, np.ones((games, 2), bool)),
    "advance (each)": timed(jax.vmap(environment.advance), game),
    "scripted players (each)": timed(
      scripted, np.zeros((games,), np.int32), jax.random.split(jax.random.key(2), games), game)}
  iteration = size / played.rate
  print(f"an iteration of {size} agent steps takes {1000 * iteration:.1f} ms; its stages, alone:")
  for name, taken in stages.items():
    print(f"  {name:24} {1000 * taken:7.2f} ms  {taken / iteration:6.1%}")
  one = jax.jit(lambda *a: parts.policy.step(*a)[:2])
  first = jax.tree.map(lambda x: x[0], (keys, observation, core))
  jax.block_until_ready(one(params, *first))
  return 1 / seconds(lambda: one(params, *first), 200)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--calls", type=int, default=10, help="calls of the program that are timed")
  options = parser.parse_args()
  config = settings.complete({})
  parts = registry.make_parts(config)
  params = saved_agents.initial_params(parts, config)
  played = measure_program(parts, config, params, options.calls)
  single = measure_stages(parts, config, params, played)
  print(f"one player at a time, inference alone: {single:.0f} agent steps/s")
  print(f"ratio actor / one at a time: {played.rate / single:.2f}")


if __name__ == "__main__":
  main()
