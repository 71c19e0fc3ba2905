"""Decisions/s of recorded demonstrations, against the program that does not write them.

  python -m benchmarks.demonstrations --preset mini --seconds 30
  python -m benchmarks.demonstrations --preset small --seconds 60

Plays games of the demonstrators twice for the same time, without and with the collection of
episodes, compression and files. Then reads the dataset in order. Also prints decisions per second
of processor time, which depend less on other programs of the machine.
"""

import argparse
import pathlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from starleague.agent import config as agent_config
from starleague.data import games
from starleague.data.games import files
from starleague.environments.skirmish.games import dm_environment
from starleague.experiments.run.datasets import demonstrations

NAMES = tuple(f"demo_{mmr}" for mmr in range(2000, 7001, 1000))


class Rate(NamedTuple):
  """Decisions per second, of the clock and of all cores' processor time."""

  clock: float
  processor: float


def measure(calls: Iterator[int], seconds: float) -> Rate:
  """Returns the rate of calls that give their numbers of decisions; the first is not counted."""
  next(calls)
  start, used, decisions = time.perf_counter(), time.process_time(), 0
  while time.perf_counter() - start < seconds:
    decisions += next(calls)
  return Rate(decisions / (time.perf_counter() - start), decisions / (time.process_time() - used))


def decisions_of(played: Sequence[demonstrations.Played]) -> int:
  """Returns the number of decisions of a call, in all shards."""
  return sum(int(((one.records.row >= 0) & ~one.records.last).sum()) for one in played)


def written(demonstrators: demonstrations.Demonstrators,
            writer: files.GamesWriter) -> Iterator[int]:
  """Yields the number of decisions of each call, after its games have been written."""
  recorder = demonstrations.Recorder(writer, demonstrators, 2**31)
  for played in demonstrations.play(demonstrators, 0):
    recorder.add(played)
    yield decisions_of(played)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", default="mini", choices=list(demonstrations.SIZES))
  parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
  options = parser.parse_args()
  demonstrators = demonstrations.Demonstrators(options.preset, NAMES, 0)
  demonstrations.use_cores()
  start = time.perf_counter()
  calls = (decisions_of(played) for played in demonstrations.play(demonstrators, 0))
  next(calls)
  print(f"compile and first call: {time.perf_counter() - start:.0f} s", flush=True)
  alone = measure(calls, options.seconds)
  print(f"program alone: {alone.clock:.0f} decisions/s, {alone.processor:.0f} per processor second",
        flush=True)
  tier = demonstrators.sizes.tier
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder)
    with files.GamesWriter(
        path, agent_config.preset(options.preset), tier, dm_environment.map_names(tier),
        demonstrators.origin) as writer:
      recorded = measure(written(demonstrators, writer), options.seconds)
    found = games.read(path)
    decisions = int(found.episodes.decisions.sum())
    size = sum(file.stat().st_size for file in path.iterdir())
    begin = time.perf_counter()
    for _ in games.in_order(found, np.arange(len(found.episodes.game)), 32, 16, 0):
      pass
    read = decisions / (time.perf_counter() - begin)
  print(f"recorded: {recorded.clock:.0f} decisions/s, {recorded.processor:.0f} per processor "
        f"second; {len(found.episodes.game) // 2} games of {decisions} decisions, "
        f"{size / max(decisions, 1) / 1e3:.2f} kB a decision")
  print(f"read in order: {read:.0f} decisions/s")
  print(f"ratio recorded / program alone: {recorded.clock / alone.clock:.2f}, "
        f"of processor time {recorded.processor / alone.processor:.2f}")


if __name__ == "__main__":
  main()
