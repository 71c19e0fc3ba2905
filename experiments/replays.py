"""Reads StarCraft II replays into tables, a library of z and a page, without the game.

  python -m starleague.experiments.replays FOLDER... --out data/replays

Writes Parquet tables of games, players, builds, commands and refused files, `z.npz` for training
and `replays.html` into --out. Started again, the command continues, and reads only new files. See
docs/replays.md.
"""

import os
import pathlib
import time

from absl import flags

from starleague.data.replays import library, reading, tables, workers
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.progress import bar
from starleague.viewers.replays import page

ARGUMENTS = [("FOLDER...",)]

flags.declare_key_flag("out")
_WORKERS = flags.DEFINE_integer(
  "workers", len(os.sched_getaffinity(0)), "Decoders at a time.", lower_bound=1, upper_bound=256)
_SECONDS = flags.DEFINE_float(
  "time_limit", workers.DEFAULT_LIMITS.seconds, "Seconds to decode a file.", lower_bound=0.1,
  upper_bound=3600.0)
_MEGABYTES = flags.DEFINE_integer(
  "memory_limit", workers.DEFAULT_LIMITS.megabytes, "Memory to decode a file, in MiB.",
  lower_bound=64, upper_bound=1 << 20)


def main(*folders: str) -> None:
  out = pathlib.Path(run_flags.given(run_flags.OUT))
  paths = reading.find(folders)
  start = time.monotonic()
  with tables.Store(out) as store:
    with bar.Bar("replays", len(paths), "files") as shown:
      summary = reading.read(
        paths, store, _WORKERS.value, workers.Limits(_SECONDS.value, _MEGABYTES.value),
        lambda progress: shown.update(
          progress.done, f"games={progress.read} refused={progress.refused}"))
    z = library.make(out)
    z.save(out / "z.npz")
    page.write(out)
  for reason, count in summary.reasons.items():
    print(f"refused files={count} reason={reason!r}")
  print(f"read files={summary.files} known={summary.known} games={summary.games} z={len(z)} "
        f"seconds={time.monotonic() - start:.0f} path={out}")


if __name__ == "__main__":
  entry.run(main, required=["out"], arguments=ARGUMENTS)
