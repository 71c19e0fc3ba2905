"""Speed of the companion systems' tasks with random actions.

  python -m benchmarks.tasks minatar-breakout bsuite-catch

Prints for each task: environment steps per CPU-second and per second, of 64 copies in one compiled
loop, and the ratio to one compiled step that Python calls again and again, in CPU time. Medians of
rounds that alternate. Run from the repository's root.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax

from starleague.companions.tasks.registry import make_task
from starleague.companions.tasks.task import Task, TaskError


def make_step(task: Task) -> Callable:
  """(state, key) -> (state, sums of what came back): nothing that is computed can be left out."""
  def step(state, key):
    action_key, key = jax.random.split(key)
    actions = jax.random.randint(action_key, (task.copies, *task.action_shape), 0,
                                 task.num_actions)
    state, result = task.step(state, jax.random.split(key, task.copies), actions)
    return state, jax.tree.map(lambda leaf: leaf.sum(dtype=float), result)
  return step


def measure(task: Task, steps: int, rounds: int) -> tuple[float, float, float]:
  """Median steps per CPU-second and per second of the loop, and per CPU-second of single steps."""
  step = make_step(task)
  single = jax.jit(step)
  loop = jax.jit(lambda state, key: jax.lax.scan(step, state, jax.random.split(key, steps)))
  state, _ = jax.jit(task.reset)(jax.random.split(jax.random.key(0), task.copies))

  def run_loop(state, key):
    return loop(state, key)[0]

  def run_single(state, key):
    for each in jax.random.split(key, steps):
      state, _ = single(state, each)
    return state

  rates: dict[Callable, list[tuple[float, float]]] = {run_loop: [], run_single: []}
  for number in range(rounds + 1):
    for run, found in rates.items():
      begin = time.process_time(), time.perf_counter()
      state = jax.block_until_ready(run(state, jax.random.key(number)))
      taken = time.process_time() - begin[0], time.perf_counter() - begin[1]
      if number:  # the first compiles
        found.append((task.copies * steps / taken[0], task.copies * steps / taken[1]))
  by_loop, by_single = ([statistics.median(column) for column in zip(*found, strict=True)]
                        for found in rates.values())
  return by_loop[0], by_loop[1], by_single[0]


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("tasks", nargs="+", help="names, as registry.make_task takes them")
  parser.add_argument("--copies", type=int, default=64)
  parser.add_argument("--steps", type=int, default=200, help="of a round")
  parser.add_argument("--rounds", type=int, default=5)
  arguments = parser.parse_args()
  try:
    tasks = [make_task(name, arguments.copies) for name in arguments.tasks]
  except TaskError as error:
    parser.error(str(error))
  for task in tasks:
    cpu, wall, single = measure(task, arguments.steps, arguments.rounds)
    print(f"{task.name}: {cpu:,.0f} steps/CPU-s, {wall:,.0f} steps/s; "
          f"{cpu / single:.1f} x single steps", flush=True)


if __name__ == "__main__":
  main()
