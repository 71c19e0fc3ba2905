"""Records demonstrations: games between scripted players, as a dataset of whole games.

  python -m starleague.experiments.demonstrate --dataset data/demonstrations --games 2000
  python -m starleague.experiments.demonstrate --preset medium --players rush,macro,defence \\
    --dataset data/strategies --games 200

Every pair of the players meets, each player also itself; races, maps and sides are drawn. Both
players' decisions are recorded. Started again, the command continues until the dataset has --games
games. With --run_dir, the display of that run shows the progress.
`starleague.data.games` reads the result: see docs/datasets.md.
"""

import pathlib
import time

from absl import flags

from starleague.common import progress
from starleague.common.text import count
from starleague.data.games import files
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.datasets import demonstrations
from starleague.experiments.run.progress import bar

for _name in ("dataset", "games", "preset", "run_dir", "seed"):
  flags.declare_key_flag(_name)
_PLAYERS = flags.DEFINE_list(
  "players", [f"demo_{mmr}" for mmr in range(2000, 7001, 1000)], "Scripted players.")


def main() -> None:
  path = pathlib.Path(run_flags.given(run_flags.DATASET))
  demonstrators = demonstrations.Demonstrators(
    run_flags.PRESET.value or "mini", tuple(_PLAYERS.value), run_flags.SEED.value)
  demonstrations.use_cores()
  games = run_flags.GAMES.value or 1000
  start = time.monotonic()
  with bar.Bar("demonstrations", games, "games") as shown:
    def report(written: files.Description) -> None:
      detail = f"{count(written.decisions)} decisions"
      shown.update(written.games, detail)
      if run_flags.RUN_DIR.value:
        progress.write(run_flags.RUN_DIR.value, progress.Progress(
          progress.DEMONSTRATIONS, written.games, games, "games", detail))

    found = demonstrations.record(path, demonstrators, games, report)
  size = sum(file.stat().st_size for file in path.glob("*.parquet"))
  print(f"recorded games={found.games} decisions={found.decisions} megabytes={size / 1e6:.1f} "
        f"kilobytes_a_decision={size / max(found.decisions, 1) / 1e3:.2f} "
        f"seconds={time.monotonic() - start:.0f} path={path}")


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
