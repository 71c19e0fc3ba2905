"""Agent steps/s of an actor whose batch mixes several players, against a batch of one player.

  python -m benchmarks.league.players --players 4 16
  python -m benchmarks.league.players --players 16 --games 128 512

All programs play the same games of policies against each other, in turn, with their records on the
host. Three ways to infer rows of several players are compared: chunks of one player's rows, one
after the other; the same chunks in one batched product; and each row with its own copy of the
weights. The last is the simplest way to write it. One player always has the games of the preset.
"""

import argparse
import itertools
import time
from typing import Any, NamedTuple

import jax
import ml_collections
import numpy as np

from starleague.actor import players, rollouts
from starleague.actor.loops import programs
from starleague.actor.parts import Parts
from starleague.data import wire
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry


class Program(NamedTuple):
  """A measured program and its state."""

  run: Any
  players: players.Players
  state: rollouts.RolloutState
  probabilities: np.ndarray


def make_program(parts: Parts, config: ml_collections.ConfigDict, games: int, count: int,
                 chunk: int, batched: bool) -> Program:
  """Returns a compiled program of `count` players; each plays against the next one."""
  actor = config.actor
  sizes = players.Sizes(slots=count, matches=count, scripts=0, chunk=chunk)
  program = players.make_rollouts(
    programs.compiled_games(parts).environment, parts.policy,
    rollouts.RolloutConfig(
      games=games, inference_batch=actor.inference_batch, iterations=actor.iterations,
      races=parts.races, maps=len(parts.maps)), sizes, None, wire.pack_steps, batched=batched)
  pairs = np.array([(i, (i + 1) % count) for i in range(count)])
  weights = [jax.device_get(parts.policy.init(jax.random.key(i))) for i in range(count)]
  at_hand = jax.device_put(players.stack(weights, pairs))
  conditioning = unconditional(len(parts.maps), parts.mmr)
  state = program.init(jax.random.key(0), np.arange(games) % count, conditioning)
  made = Program(
    lambda *a: program.run(*a, conditioning), at_hand, state,
    np.full(sizes.opponents, 1 / sizes.opponents, np.float32))
  for _ in range(2):  # compiles; fills the slots
    made = measure(made)[0]
  return made


def measure(program: Program) -> tuple[Program, float, float]:
  """Runs one call: returns the program's next state, agent steps/s and the share of rows filled."""
  start = time.perf_counter()
  state, records, _ = program.run(program.players, program.state, program.probabilities)
  jax.block_until_ready(records)
  row = np.asarray(records.row)
  filled = int((row >= 0).sum())
  return (program._replace(state=state), filled / (time.perf_counter() - start),
          filled / row.size)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--players", type=int, nargs="+", default=[4, 16])
  parser.add_argument("--chunks", type=int, nargs="+", default=[8, 16])
  parser.add_argument("--games", type=int, nargs="+", help="at once; default: those of the preset")
  parser.add_argument("--calls", type=int, default=5, help="timed calls of each program")
  options = parser.parse_args()
  config = settings.complete({})
  parts = registry.make_parts(config)
  batch = config.actor.inference_batch
  if options.games and min(options.games) < batch // 2:
    parser.error(f"--games: expected at least {batch // 2}, found {min(options.games)}")
  usual = config.actor.games
  programs = {"1 player": make_program(parts, config, usual, 1, batch, False)}
  for count, games in itertools.product(options.players, options.games or [usual]):
    who = f"{count} players, {games} games"
    for chunk in options.chunks:
      for batched, way in ((False, "in turn"), (True, "batched")):
        programs[f"{who}, chunks of {chunk} {way}"] = make_program(
          parts, config, games, count, chunk, batched)
    programs[f"{who}, a copy of the weights for each row"] = make_program(
      parts, config, games, count, 1, True)
  rates: dict[str, list[float]] = {name: [] for name in programs}
  fills: dict[str, list[float]] = {name: [] for name in programs}
  for _ in range(options.calls):
    for name in programs:
      programs[name], rate, fill = measure(programs[name])
      rates[name].append(rate)
      fills[name].append(fill)
  alone = float(np.median(rates["1 player"]))
  for name, found in rates.items():
    print(f"{name:62} {np.median(found):6.0f} agent steps/s ({min(found):.0f} to {max(found):.0f}),"
          f" rows filled {np.mean(fills[name]):4.0%}, ratio {np.median(found) / alone:.2f}")


if __name__ == "__main__":
  main()
