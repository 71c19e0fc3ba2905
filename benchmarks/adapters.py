"""Speed of Skirmish's pure adapters against SMAX and Craftax-Classic, with random actions.

  python -m benchmarks.adapters

Prints for each environment: steps per CPU-second and per second of `--copies` games in one
compiled loop with auto-reset, and the ratio of the former to that of the first environment. Medians
of rounds in turn. Random actions of Skirmish and SMAX are legal ones. Packages that are missing are
left out, in one line. Run from the repository's root.
"""

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from starleague.environments.skirmish.adapters import pure

ILLEGAL = -1e9


class Environment(NamedTuple):
  """Functions of one game: reset: key -> state; step: (key, state) -> (state, what came back)."""

  reset: Callable[[Any], Any]
  step: Callable[[Any, Any], tuple[Any, Any]]


def legal(key, mask):
  """A random action of a mask."""
  return jax.random.categorical(key, jnp.where(mask, 0.0, ILLEGAL))


def solo(tier: str, opponent: str) -> Environment:
  """One player against a scripted one."""
  environment = pure.Solo(opponent, tier=tier)

  def step(key, state):
    action = legal(key, environment.get_avail_actions(state))
    observation, state, *rest = environment.step(key, state, action)
    return state, (observation, rest)

  return Environment(lambda key: environment.reset(key)[1], step)


def of_agents(environment: Any) -> Environment:
  """All agents of an environment in JaxMARL's form act."""
  def step(key, state):
    masks = environment.get_avail_actions(state)
    actions = {agent: legal(jax.random.fold_in(key, i), masks[agent])
               for i, agent in enumerate(environment.agents)}
    observations, state, *rest = environment.step(key, state, actions)
    return state, (observations, rest)

  return Environment(lambda key: environment.reset(key)[1], step)


def smax() -> Environment:
  """SMAX, 20 units against 20, all of them agents."""
  with contextlib.redirect_stdout(io.StringIO()):
    from jaxmarl.environments.smax import SMAX, map_name_to_scenario
  return of_agents(SMAX(scenario=map_name_to_scenario("smacv2_20_units")))


def craftax() -> Environment:
  """Craftax-Classic with symbolic observations."""
  from craftax.craftax_env import make_craftax_env_from_name
  environment = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
  params = environment.default_params

  def step(key, state):
    action = jax.random.randint(key, (), 0, environment.action_space(params).n)
    observation, state, *rest = environment.step(key, state, action, params)
    return state, (observation, rest)

  return Environment(lambda key: environment.reset(key, params)[1], step)


MAKERS: dict[str, Callable[[], Environment]] = {
  "skirmish mini, two players": lambda: of_agents(pure.Duel("mini")),
  "skirmish mini, against rusher": lambda: solo("mini", "rusher"),
  "skirmish default, two players": lambda: of_agents(pure.Duel("default")),
  "skirmish default, against L5": lambda: solo("default", "L5"),
  "SMAX, 20 against 20": smax, "Craftax-Classic": craftax}


def make_loop(environment: Environment, copies: int, steps: int) -> Callable:
  """(states, key) -> (states, sums of what came back): nothing can be left out."""
  def step(states, key):
    states, back = jax.vmap(environment.step)(jax.random.split(key, copies), states)
    return states, jax.tree.map(lambda leaf: leaf.sum(dtype=float), back)

  return jax.jit(lambda states, key: jax.lax.scan(step, states, jax.random.split(key, steps)))


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", nargs="+", default=[""], help="parts of the names to measure")
  parser.add_argument("--copies", type=int, default=64)
  parser.add_argument("--steps", type=int, default=100, help="of a round")
  parser.add_argument("--rounds", type=int, default=5)
  arguments = parser.parse_args()
  for part in arguments.only:
    if not any(part in name for name in MAKERS):
      parser.error(f"--only: expected parts of {'; '.join(MAKERS)}; found {part}")
  loops, states, found = {}, {}, {}
  for name, maker in MAKERS.items():
    if not any(part in name for part in arguments.only):
      continue
    try:
      environment = maker()
    except ModuleNotFoundError as error:
      print(f"{name}: not measured: {error.name} is not installed (pip install {error.name})")
      continue
    begin = time.process_time()
    loops[name] = make_loop(environment, arguments.copies, arguments.steps)
    states[name] = jax.jit(jax.vmap(environment.reset))(
      jax.random.split(jax.random.key(0), arguments.copies))
    states[name], _ = jax.block_until_ready(loops[name](states[name], jax.random.key(0)))
    found[name] = []
    print(f"{name}: compiled in {time.process_time() - begin:.0f} CPU-s", flush=True)
  if not loops:
    return  # each missing package has its line
  for number in range(1, arguments.rounds + 1):
    for name, loop in loops.items():
      begin = time.process_time(), time.perf_counter()
      states[name], _ = jax.block_until_ready(loop(states[name], jax.random.key(number)))
      found[name].append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
  steps = arguments.copies * arguments.steps
  medians = {name: [statistics.median(column) for column in zip(*times, strict=True)]
             for name, times in found.items()}
  first = next(iter(medians.values()))
  for name, (cpu, wall) in medians.items():
    print(f"{name}: {steps / cpu:,.0f} steps/CPU-s, {steps / wall:,.0f} steps/s, "
          f"{first[0] / cpu:.2f} x the first", flush=True)


if __name__ == "__main__":
  main()
