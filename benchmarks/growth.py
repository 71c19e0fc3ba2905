"""Speed against size: games, entities, unroll length, players of a league, devices.

  python -m benchmarks.growth                              # all parts
  python -m benchmarks.growth games players --out runs/growth
  python -m benchmarks.growth games --sizes 1,4,16 --rounds 1 --seconds 0.1

games      environment steps/s of a batch of Skirmish, tier mini, against its number of games
entities   agent steps/s of the forward pass against the rows for entities, all of them used
unroll     agent steps/s of the whole update against T; T x batch is equal
players    matches/s of a coordinator against the players: a main agent and its snapshots. 16
           results are counted before each 16 matches, untimed; a single player has none
devices    agent steps/s of the whole update of one batch against the virtual devices of the CPU
           that divide it. They share the cores: this is the overhead of dividing

Sizes take turns within each round, in alternate order. A table shows medians of the rounds and
their range; the ratio to the smallest size is the median of each round's ratio. Compilation is not
measured. `--out` gets a table (CSV) and a picture (SVG, logarithmic axes) of each part.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import agent as agent_benchmark
from benchmarks import gpu, skirmish
from benchmarks.league import coordinator
from starleague import agent, league
from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.league import players as league_players
from starleague.viewers import lines, svg

PRESET = "mini"
CHUNK = 256  # environment steps of a call of a small batch
UNROLL_LENGTH, BATCH = 16, 32  # of the update, as in a run of the preset
FORWARD_BATCH = 4  # sequences of the forward pass: attention's memory grows with entities squared
MATCHES = 16  # of a call, and results before it; a single player has no results


class Runner(NamedTuple):
  """What is measured at one size."""

  once: Callable[[], Any]  # a call; its outputs are waited for
  units: int  # of the rate, in a call
  before: Callable[[], Any] = lambda: None  # before each call, untimed


class Part(NamedTuple):
  """A measured part: what grows, and the rate."""

  title: str
  size: str  # what is counted, as "games"
  unit: str  # of the rate
  sizes: tuple[int, ...]
  make: Callable[[int, contextlib.ExitStack], Runner]  # the stack closes what it opens
  per: str = ""  # one of what is counted, where a rate of each is sensible
  divides: int = 0  # what sizes must divide; 0: nothing


class Row(NamedTuple):
  """A size's figures over the rounds: medians, and the range of the rates."""

  size: int
  rate: float
  lowest: float
  highest: float
  relative: float  # to the smallest size


def make_games(size: int, stack: contextlib.ExitStack) -> Runner:
  """Makes a batch of games."""
  del stack
  run, _ = skirmish.make_batch(GAME_CONFIGS[PRESET], size)
  steps = max(CHUNK // size, 1)
  return Runner(lambda: run(steps), steps * size)


@functools.cache
def initial_params() -> Any:
  """Returns parameters of the preset, which do not depend on the number of entities."""
  return agent.make_policy(agent.preset(PRESET)).init(jax.random.key(0))


def make_entities(size: int, stack: contextlib.ExitStack) -> Runner:
  """Makes the forward pass over sequences with so many entities."""
  del stack
  config = dataclasses.replace(agent.preset(PRESET), max_entities=size)
  arguments = (initial_params(), jax.device_put(
    agent_benchmark.make_trajectories(config, UNROLL_LENGTH, FORWARD_BATCH)))
  run = agent_benchmark.compiled(agent.make_policy(config).unroll_batch, *arguments)
  return Runner(lambda: run(*arguments), UNROLL_LENGTH * FORWARD_BATCH)


def make_update(length: int, devices: int) -> Runner:
  """Makes the whole update of UNROLL_LENGTH x BATCH agent steps: teacher, losses, Adam."""
  config, steps = agent.preset(PRESET), UNROLL_LENGTH * BATCH
  run, once = gpu.make_update(config, initial_params(), 1, devices)
  batch = run.place(gpu.stacked(gpu.packed(
    agent_benchmark.make_trajectories(config, length + 1, steps // length))))
  return Runner(lambda: once(batch), steps)


def make_unroll(size: int, stack: contextlib.ExitStack) -> Runner:
  """Makes the update of sequences of a length."""
  del stack
  return make_update(size, 1)


def make_devices(size: int, stack: contextlib.ExitStack) -> Runner:
  """Makes the update on so many devices of this process."""
  del stack
  if jax.local_device_count() < size:
    raise UserError(f"devices: expected {size}, found {jax.local_device_count()}; leave out --here")
  return make_update(UNROLL_LENGTH, size)


def make_players(size: int, stack: contextlib.ExitStack) -> Runner:
  """Makes a coordinator of a main agent and its snapshots."""
  main = league.Player("main", league_players.MAIN)
  members = [main, *(league_players.snapshot(main, i, i) for i in range(size - 1))]
  folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
  served = stack.enter_context(contextlib.closing(
    league.Coordinator(folder / "league.sqlite", members)))
  numbers = itertools.count()

  def count_results(count):
    number = next(numbers)
    served.report_many([
      league.GameResult(f"{number}-{i}", *each, 0.0)
      for i, each in enumerate(coordinator.random_results(members, count, number))])

  def once():
    for _ in range(MATCHES):
      served.get_match(main.name)

  count_results(20 * size)
  return Runner(once, MATCHES, lambda: count_results(MATCHES))


PARTS = {
  "games": Part("Skirmish, mini", "games", "environment steps/s",
                (1, 4, 16, 64, 256, 1024, 4096), make_games, "game"),
  "entities": Part("Forward pass, mini", "entities", "agent steps/s", (64, 128, 256, 512),
                   make_entities),
  "unroll": Part(f"Update of {UNROLL_LENGTH * BATCH} agent steps, mini", "T", "agent steps/s",
                 (16, 32, 64, 128), make_unroll, divides=UNROLL_LENGTH * BATCH),
  "players": Part("Coordinator", "players", "matches/s", (1, 4, 16, 64), make_players),
  "devices": Part(f"Update of {UNROLL_LENGTH * BATCH} agent steps, mini", "virtual devices",
                  "agent steps/s", (1, 2, 4, 8), make_devices, "device", divides=BATCH)}


def rate(runner: Runner, seconds: float) -> float:
  """Returns the rate of calls made within a time, at least one."""
  began, taken, calls = time.perf_counter(), 0.0, 0
  while not calls or time.perf_counter() - began < seconds:
    runner.before()
    start = time.perf_counter()
    jax.block_until_ready(runner.once())
    taken += time.perf_counter() - start
    calls += 1
  return calls * runner.units / taken


def measure(part: Part, sizes: Sequence[int], rounds: int, seconds: float) -> list[Row]:
  """Measures a part at ascending sizes."""
  with contextlib.ExitStack() as stack:
    runners = [part.make(size, stack) for size in sizes]
    for runner in runners:
      rate(runner, 0.0)  # compiles
    rates = np.zeros((rounds, len(sizes)))
    for number in range(rounds):
      for i in range(len(sizes))[::-1 if number % 2 else 1]:
        rates[number, i] = rate(runners[i], seconds)
  figures = (np.median(rates, axis=0), rates.min(axis=0), rates.max(axis=0),
             np.median(rates / rates[:, :1], axis=0))
  return [Row(size, *map(float, found)) for size, *found in zip(sizes, *figures, strict=True)]


def table(part: Part, rows: Sequence[Row]) -> list[str]:
  """Returns a part's figures as a table in Markdown."""
  titles = [part.size, part.unit, "range", f"ratio to {rows[0].size}"]
  found = [[f"{row.size:,}", f"{row.rate:,.0f}", f"{row.lowest:,.0f} to {row.highest:,.0f}",
            f"{row.relative:.2f}"] for row in rows]
  if part.per:
    titles.append(f"{part.unit} per {part.per}")
    for cells, row in zip(found, rows, strict=True):
      cells.append(f"{row.rate / row.size:,.1f}")
  return [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *found)]


def write(name: str, part: Part, rows: Sequence[Row], folder: pathlib.Path) -> None:
  """Writes a part's figures: `growth_NAME.csv` and `growth_NAME.svg`."""
  with files.replacing(folder / f"growth_{name}.csv") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([part.size, part.unit, "lowest", "highest", "relative"])
    writer.writerows(rows)
  size, middle, low, high, _ = zip(*rows, strict=True)
  curve = lines.Curve(f"{part.unit}, median and range", size, middle, low, high)
  panel = lines.Panel(part.title, part.size, (curve,), logarithmic=True)
  with files.replacing(folder / f"growth_{name}.svg") as file:
    file.write(svg.picture([lines.drawing(panel)]))


def measure_devices(sizes: Sequence[int], options: argparse.Namespace) -> None:
  """Measures `devices` in a process with virtual devices."""
  out = ["--out", str(options.out)] if options.out else []
  flags = f"--xla_force_host_platform_device_count={max(sizes)}"  # the last of equal flags counts
  done = subprocess.run(
    [sys.executable, "-m", "benchmarks.growth", "devices", "--here", *out,
     "--sizes", ",".join(map(str, sizes)), "--rounds", str(options.rounds),
     "--seconds", str(options.seconds)], check=False,
    cwd=pathlib.Path(__file__).parent.parent, env={
      **os.environ, "JAX_PLATFORMS": "cpu",
      "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()})
  if done.returncode:
    sys.exit(done.returncode)  # the process has printed its error


class Parser(argparse.ArgumentParser):
  """A parser whose errors are one line."""

  def error(self, message):
    raise UserError(f"{message}; --help lists the options")


def sizes_of(options: argparse.Namespace) -> dict[str, tuple[int, ...]]:
  """Returns the ascending sizes of each part to measure; raises UserError."""
  names = list(dict.fromkeys(options.parts)) or list(PARTS)
  for name in names:
    if name not in PARTS:
      raise UserError(f"part {name}: expected one of {', '.join(PARTS)}")
  if options.rounds < 1:
    raise UserError(f"--rounds: expected at least 1, found {options.rounds}")
  if not options.sizes:
    return {name: PARTS[name].sizes for name in names}
  if len(names) > 1:
    raise UserError(f"--sizes: expected one part beside it, found {', '.join(names)}")
  part, words = PARTS[names[0]], options.sizes.split(",")
  for word in words:
    if not word.isdecimal() or not int(word):
      raise UserError(f"--sizes: expected whole numbers from 1, as 1,4,16; found {options.sizes}")
    if part.divides and part.divides % int(word):
      raise UserError(f"--sizes: {names[0]} needs divisors of {part.divides}, found {word}")
  return {names[0]: tuple(sorted({int(word) for word in words}))}


def run(arguments: Sequence[str] | None) -> None:
  """Measures the parts of a command line."""
  parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
  parser.add_argument("--out", type=pathlib.Path, help="folder of the files; default: none")
  parser.add_argument("--sizes", default="", help="of the one part given, as 1,4,16")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement, at least")
  parser.add_argument("--here", action="store_true",
                      help="measure devices with those of this process")
  options = parser.parse_args(arguments)
  sizes = sizes_of(options)
  if options.out:
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)  # an error comes before the work
  for name, chosen in sizes.items():
    if name == "devices" and not options.here:
      measure_devices(chosen, options)
      continue
    part, began = PARTS[name], time.perf_counter()
    rows = measure(part, chosen, options.rounds, options.seconds)
    print(f"{name}: {part.title}; {options.rounds} rounds, "
          f"{time.perf_counter() - began:.0f} s with compilation; {jax.devices()[0].device_kind}, "
          f"{len(os.sched_getaffinity(0))} cores, JAX {jax.__version__}\n",
          *(f"{line}\n" for line in table(part, rows)), sep="", flush=True)
    if options.out:
      write(name, part, rows, options.out)


def main(arguments: Sequence[str] | None = None) -> None:
  try:
    run(arguments)
  except (UserError, OSError) as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  main()
