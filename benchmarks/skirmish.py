"""How fast Skirmish plays: a batch of games under one jit, against one game at a time.

  python -m benchmarks.skirmish

Prints agent steps a second (a step of a game is two: both players are shown what they see and act)
for several batch sizes, compile times, and the ratio to a jitted loop over a single game. Run from
the repository's root.
"""

import argparse
import time

import jax
import jax.numpy as jnp

from starleague.actor.environments import base
from starleague.actor.environments.skirmish import make_skirmish
from starleague.agent import types

BOTH = jnp.arange(2)


def _start(environment: base.Environment, key):
  statistics = jax.tree.map(
    lambda spec: jnp.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())
  return environment.reset(key, base.MatchUp(
    jnp.ones(2, jnp.int32), jnp.int32(0), jnp.array(False), statistics))


def _actions(observation: types.Observation, key) -> types.Action:
  """Something legal for every player: rows and places at random, as cheaply as can be."""
  keys = jax.random.split(key, 3)
  function = jax.random.categorical(
    keys[0], jnp.where(observation.available_actions, 0.0, -jnp.inf)).astype(jnp.int16)
  units = jax.random.randint(keys[1], (2, 8), 0, 12).astype(jnp.int16)
  location = jax.random.randint(keys[2], (2,), 0, 1024)
  return types.Action(
    function=function, delay=jnp.full(2, 8, jnp.int16), queued=jnp.zeros(2, jnp.uint8),
    repeat=jnp.zeros(2, jnp.uint8), units=units, target_unit=jnp.zeros(2, jnp.int16),
    location=location)


def _step(environment: base.Environment, state, key):
  observation, privileged = jax.vmap(environment.observe, (None, 0))(state, BOTH)
  actions = _actions(observation, key)
  state = environment.advance(environment.act(state, actions, environment.due(state)))
  return state, (observation, privileged)


def _seconds(function, *arguments, repeats: int = 3) -> float:
  best = float("inf")
  for _ in range(repeats):
    begin = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    best = min(best, time.perf_counter() - begin)
  return best


def measure(games: int, steps: int) -> tuple[float, float]:
  """Agent steps a second of a batch, and the seconds it took to compile."""
  environment = make_skirmish()
  keys = jax.random.split(jax.random.key(0), games)
  states = jax.jit(jax.vmap(lambda key: _start(environment, key)))(keys)
  one = jax.vmap(lambda state, key: _step(environment, state, key))
  begin = time.perf_counter()
  compiled = jax.jit(one).lower(states, keys).compile()
  compile_seconds = time.perf_counter() - begin

  def run(states):
    for _ in range(steps):
      states, seen = compiled(states, keys)
    return states, seen

  run(states)
  return 2 * games * steps / _seconds(run, states), compile_seconds


def measure_single(steps: int) -> float:
  """Agent steps a second of one game in a jitted, unbatched loop."""
  environment = make_skirmish()
  key = jax.random.key(0)
  state = jax.jit(lambda key: _start(environment, key))(key)
  compiled = jax.jit(lambda state, key: _step(environment, state, key)).lower(state, key).compile()

  def run(state):
    for _ in range(steps):
      state, seen = compiled(state, key)
    return state, seen

  run(state)
  return 2 * steps / _seconds(run, state)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--games", type=int, nargs="+", default=[64, 256, 1024])
  parser.add_argument("--steps", type=int, default=4096, help="game steps a measurement")
  options = parser.parse_args()
  single = measure_single(max(options.steps // 8, 1))
  print(f"games=1 agent_steps_per_second={single:.0f} ratio=1.0")
  for games in options.games:
    speed, compile_seconds = measure(games, max(options.steps // games, 1))
    print(f"games={games} agent_steps_per_second={speed:.0f} ratio={speed / single:.1f} "
          f"compile_seconds={compile_seconds:.1f}")


if __name__ == "__main__":
  main()
