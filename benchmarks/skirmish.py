"""Speed of Skirmish: a batch of games under one jit, against one game at a time.

  python -m benchmarks.skirmish --tiers mini default large

Prints for each tier and several batch sizes: environment and agent steps per second, compile time,
and the ratio to a jitted loop over a single game. An environment step is two agent steps: both
players observe and act. Races and maps are mixed in a batch; one program serves them all. Run from
the repository's root; `taskset -c 0` measures one core.

The same run measures two others for comparison: the numpy twin of the tests (one game, no
observations), and SMAX, 20 units against 20, if `jaxmarl` is installed. `ratio` is a tier's fastest
batch over the other's fastest. No step of either computes a reset.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.rules.tables import maps, tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS, GameConfig

BOTH = jnp.arange(2)


def _start(environment: base.Environment, key):
  """A game with random races and map; tiers with one of each use that one."""
  keys = jax.random.split(key, 3)
  return environment.reset(keys[2], base.make_match_up(
    jax.random.randint(keys[0], (2,), 1, 4), jax.random.randint(keys[1], (), 0, len(maps.NAMES))))


def _actions(game: GameConfig, observation: types.Observation, key) -> types.Action:
  """Legal actions of both players, with random rows and places, at little cost."""
  keys = jax.random.split(key, 3)
  function = jax.random.categorical(
    keys[0], jnp.where(observation.available_actions, 0.0, -jnp.inf)).astype(jnp.int16)
  units = jax.random.randint(keys[1], (2, game.max_selected), 0, 12).astype(jnp.int16)
  location = jax.random.randint(keys[2], (2,), 0, game.location_size ** 2)
  return types.Action(
    function=function, delay=jnp.full(2, 8, jnp.int16), queued=jnp.zeros(2, jnp.uint8),
    repeat=jnp.zeros(2, jnp.uint8), units=units, target_unit=jnp.zeros(2, jnp.int16),
    location=location)


def _step(environment: base.Environment, game: GameConfig, state, key):
  """Both players observe and take random actions."""
  observation, privileged = jax.vmap(environment.observe, (None, 0))(state, BOTH)
  actions = _actions(game, observation, key)
  state = environment.advance(environment.act(state, actions, environment.due(state)))
  return state, (observation, privileged)


def _seconds(function, *arguments, repeats: int = 3) -> float:
  best = float("inf")
  for _ in range(repeats):
    begin = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    best = min(best, time.perf_counter() - begin)
  return best


def _keys(games: int) -> tuple[jax.Array, jax.Array]:
  """Returns keys of the starts and of the steps, [games] each."""
  starts, steps = jax.random.split(jax.random.key(0), (2, games))
  return starts, steps


def _play(step: Callable[..., Any], state, keys, steps: int):
  """Takes steps, each with random numbers of its own; returns the last state and observations."""
  seen = None
  for number in range(steps):
    state, seen = step(state, keys, np.int32(number))
  return state, seen


def make_batch(game: GameConfig, games: int) -> tuple[Callable[[int], Any], float]:
  """Returns a function that plays a batch for a number of steps, and its compile time in seconds.

  Each step is a call of one program. Each call of the function starts from the same states.
  """
  environment = make_skirmish(**game._asdict())
  start_keys, keys = _keys(games)
  states = jax.jit(jax.vmap(lambda key: _start(environment, key)))(start_keys)
  one = jax.vmap(lambda state, key, number: _step(
    environment, game, state, jax.random.fold_in(key, number)), (0, 0, None))
  begin = time.perf_counter()
  compiled = jax.jit(one).lower(states, keys, np.int32(0)).compile()
  compile_seconds = time.perf_counter() - begin
  return lambda steps: _play(compiled, states, keys, steps), compile_seconds


def measure(game: GameConfig, games: int, steps: int) -> tuple[float, float]:
  """Environment steps per second of a batch, and compile time in seconds."""
  run, compile_seconds = make_batch(game, games)
  run(steps)
  return games * steps / _seconds(run, steps), compile_seconds


def measure_single(game: GameConfig, steps: int) -> float:
  """Environment steps per second of one game in a jitted, unbatched loop."""
  environment = make_skirmish(**game._asdict())
  (start_key,), (key,) = _keys(1)
  state = jax.jit(lambda key: _start(environment, key))(start_key)
  compiled = jax.jit(lambda state, key, number: _step(
    environment, game, state, jax.random.fold_in(key, number))).lower(
      state, key, np.int32(0)).compile()
  arguments = compiled, state, key, steps
  _play(*arguments)
  return steps / _seconds(_play, *arguments)


def measure_twin(game: GameConfig, steps: int) -> float:
  """Environment steps per second of the numpy twin: its first ones, without observations."""
  # Not at the top: nothing else here needs what the tests need.
  from tests.environments.skirmish.twin import state as skirmish_twin_state
  from tests.environments.skirmish.twin import step as skirmish_twin
  table = skirmish_twin_state.Table(tables.make_rules(**game._asdict()))
  environment, twin = make_skirmish(**game._asdict()), skirmish_twin.Twin(table)
  state = jax.jit(lambda key: _start(environment, key))(jax.random.key(0))
  found = skirmish_twin_state.Game(table, jax.tree.map(np.asarray, state))

  def run():
    for _ in range(steps):
      twin.step(found)

  return steps / _seconds(run, repeats=1)


def measure_smax(games: int, steps: int) -> float | None:
  """Environment steps per second of a batch of SMAX, 20 against 20; None if not installed.

  A step is half a second of its game, against a third of Skirmish's. All forty units observe and
  take random actions. As in Skirmish's steps here, none computes a reset.
  """
  try:
    from jaxmarl.environments.smax import SMAX, map_name_to_scenario
  except ImportError:
    return None
  environment = SMAX(scenario=map_name_to_scenario("smacv2_20_units"))
  start_keys, keys = _keys(games)

  def one(state, key, number):
    key, *own = jax.random.split(jax.random.fold_in(key, number), 1 + len(environment.agents))
    actions = {
      agent: jax.random.randint(own_key, (), 0, environment.action_space(agent).n)
      for agent, own_key in zip(environment.agents, own, strict=True)}
    observation, state, reward, done, _ = environment.step_env(key, state, actions)
    return state, (observation, reward, done)

  states = jax.jit(jax.vmap(environment.reset))(start_keys)[1]
  compiled = jax.jit(jax.vmap(one, (0, 0, None))).lower(states, keys, np.int32(0)).compile()
  arguments = compiled, states, keys, steps
  _play(*arguments)
  return games * steps / _seconds(_play, *arguments)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--tiers", nargs="+", default=["mini"], choices=list(GAME_CONFIGS))
  parser.add_argument("--games", type=int, nargs="+", default=[32, 64, 256])
  parser.add_argument("--steps", type=int, default=64, help="of each game in a measurement")
  options = parser.parse_args()
  fastest = {}
  for tier in options.tiers:
    game = GAME_CONFIGS[tier]
    single = measure_single(game, options.steps)
    print(f"tier={tier} games=1 environment_steps_per_second={single:.0f} "
          f"agent_steps_per_second={2 * single:.0f} ratio=1.0", flush=True)
    for games in options.games:
      speed, compile_seconds = measure(game, games, options.steps)
      fastest[tier] = max(fastest.get(tier, 0.0), speed)
      print(f"tier={tier} games={games} environment_steps_per_second={speed:.0f} "
            f"agent_steps_per_second={2 * speed:.0f} ratio={speed / single:.1f} "
            f"compile_seconds={compile_seconds:.1f}", flush=True)
    twin = measure_twin(game, 200)
    print(f"tier={tier} twin=numpy games=1 environment_steps_per_second={twin:.0f} "
          f"ratio={fastest[tier] / twin:.1f}", flush=True)
  smax = 0.0
  for games in options.games:
    speed = measure_smax(games, options.steps)
    if speed is None:
      print("smax: not measured: jaxmarl is not installed (pip install jaxmarl)")
      return
    smax = max(smax, speed)
    print(f"smax=smacv2_20_units games={games} environment_steps_per_second={speed:.0f}",
          flush=True)
  print(" ".join(f"{tier}_to_smax_ratio={speed / smax:.2f}" for tier, speed in fastest.items()))


if __name__ == "__main__":
  main()
