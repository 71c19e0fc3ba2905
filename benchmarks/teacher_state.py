"""The cost of unrolling the teacher from the student's core state, in nats.

The RL objective unrolls the frozen teacher from the core state that the student had before the
trajectory's first step. Here student and teacher see the same whole games; the teacher is unrolled
twice: from the student's state in each chunk, as in training, and from its own, carried through the
game.

    python -m benchmarks.teacher_state --dataset data/demonstrations \
      --student runs/mini/checkpoints --teacher runs/mini/initial
"""

import argparse
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague import agent
from starleague.agent import distributions
from starleague.agent.types import Array
from starleague.data import checkpoints, games, wire
from starleague.learner import supervised
from starleague.learner.terms import ARGUMENTS, each_step, used_arguments

# Divergences of (the first from the second).
DIVERGENCES = ("teacher from the student's state || student",
               "teacher from its own state || student",
               "teacher from its own state || teacher from the student's state")


class Sums(NamedTuple):
  """Sums over steps by place in the chunk."""

  divergence: Array  # [3, T, N] nats, see DIVERGENCES
  used: Array  # [T, N]
  steps: Array  # [T]


class Carries(NamedTuple):
  """The carried states of both."""

  student: supervised.Carry
  teacher: supervised.Carry


def compare(policy: agent.Policy, config: agent.AgentConfig, student: Any, teacher: Any,
            columns: wire.Columns, first: Array, carries: Carries) -> tuple[Sums, Carries]:
  """Compares both on a batch of chunks; returns sums and the next carries."""
  options = supervised.Options(keep_build_order=1.0, keep_cumulative=1.0)
  key = jax.random.key(0)  # nothing is drawn: all of z is shown

  def batch_of(carry: supervised.Carry):
    return supervised.begin(config, options, key, supervised.Chunks(columns, first, carry))[0]

  def carry_of(output: agent.UnrollOutput, like: supervised.Carry) -> supervised.Carry:
    return like._replace(state=wire.pack_state(output.state, 1), kept=jnp.ones_like(like.kept))

  seen = batch_of(carries.student)
  learner = policy.unroll_batch(student, seen)
  from_student = policy.unroll_batch(teacher, seen)
  own = policy.unroll_batch(teacher, batch_of(carries.teacher))
  action, weight = seen.steps.action, seen.steps.weight[:-1]
  used = used_arguments(action, weight)
  pairs = ((from_student, learner), (own, learner), (own, from_student))
  divergence = jnp.stack([
    jnp.sum(jnp.where(used, each_step(distributions.kl, x.logits, y.logits, action), 0.0), axis=1)
    for x, y in pairs])
  sums = Sums(divergence, used.sum(1), weight.sum(1))
  return sums, Carries(carry_of(learner, carries.student), carry_of(own, carries.teacher))


def measure(data: games.GamesDataset, student: Any, teacher: Any, episodes: int,
            unroll_length: int) -> Sums:
  """Returns the sums over the first episodes of a dataset."""
  rows = np.arange(episodes)
  size = min(16, len(rows))
  state = wire.packed_spec(data.config, 1).state
  empty = supervised.Carry(np.zeros((size, *state.shape), state.dtype), np.zeros((size, 2), bool))
  run = jax.jit(functools.partial(compare, agent.make_policy(data.config), data.config))
  carries, totals = Carries(empty, empty), None
  for batch in games.in_order(data, rows, size, unroll_length, seed=0):
    columns = wire.Columns(*batch.packed[:-1])
    sums, carries = run(student, teacher, columns, batch.first, carries)
    totals = sums if totals is None else jax.tree.map(jnp.add, totals, sums)
  return jax.device_get(totals)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--dataset", required=True, help="Recorded games, see docs/datasets.md.")
  parser.add_argument("--student", required=True, help="A snapshot or a folder of checkpoints.")
  parser.add_argument("--teacher", required=True, help="The same of the teacher.")
  parser.add_argument("--episodes", type=int, default=200)
  parser.add_argument("--unroll_length", type=int, default=16, help="T of the trajectories.")
  flags = parser.parse_args()
  data = games.read(flags.dataset)
  episodes = min(flags.episodes, len(data.episodes.game))
  if not episodes:
    parser.error("--dataset, --episodes: no episode to compare on")
  found = measure(data, checkpoints.load_params(flags.student, data.config),
                  checkpoints.load_params(flags.teacher, data.config), episodes,
                  flags.unroll_length)
  steps = found.steps.sum()
  print(f"{episodes} episodes, {steps:.0f} decisions, chunks of {flags.unroll_length}; nats "
        "a decision, summed over its used arguments; by argument, of the decisions that use it")
  for name, sums in zip(DIVERGENCES, found.divergence, strict=True):
    by_argument = sums.sum(0) / np.maximum(found.used.sum(0), 1)
    print(f"  KL({name}): {sums.sum() / steps:.4f}  " + " ".join(
      f"{argument} {value:.4f}" for argument, value in zip(ARGUMENTS, by_argument, strict=True)))
  by_place = (found.divergence.sum(-1) / np.maximum(found.steps, 1)).T
  print("  by place in the chunk: " + ", ".join(
    f"{place}: {row[0]:.4f} {row[1]:.4f} {row[2]:.4f}" for place, row in enumerate(by_place)))


if __name__ == "__main__":
  main()
