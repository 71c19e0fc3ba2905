"""Records StarCraft II replays as a dataset of whole games: the game plays them back.

  python -m starleague.experiments.record_replays FOLDER... --dataset data/replays --preset full

Needs StarCraft II in each replay's version: see docs/starcraft2.md. Both players' observations and
actions are recorded. Started again, the command continues. `starleague.data.games` reads
the result, as that of `demonstrate`; `experiments.replays` reads replays without the game.
"""

import pathlib
import time

from absl import flags

from starleague.common.text import count, printable
from starleague.data.games import files
from starleague.environments.sc2.client import installation
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.datasets import playback
from starleague.experiments.run.progress import bar

ARGUMENTS = [("FOLDER...",)]

for _name in ("dataset", "preset"):
  flags.declare_key_flag(_name)


def main(*folders: str) -> None:
  path, preset = pathlib.Path(run_flags.given(run_flags.DATASET)), run_flags.preset("full")
  files.check_path(path)
  installation.find()
  jobs, refused = playback.jobs(folders)

  def refuse(file: pathlib.Path, reason: str) -> None:
    refused.append((file, reason))

  start = time.monotonic()
  with bar.Bar("replays", len(jobs), "games") as shown:
    found = playback.record(
      path, jobs, preset,
      lambda written: shown.update(written.games, f"{count(written.decisions)} decisions"), refuse)
  for file, reason in refused:
    print(f"refused file={printable(str(file))} reason={reason!r}")
  print(f"recorded games={found.games} decisions={found.decisions} refused={len(refused)} "
        f"seconds={time.monotonic() - start:.0f} path={printable(str(path))}")


if __name__ == "__main__":
  entry.run(main, required=["dataset"], arguments=ARGUMENTS)
