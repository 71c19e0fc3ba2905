"""Prints the economies of players in recorded games, by player and race.

  python -m starleague.experiments.demonstrate --student pretrained --labels=student \\
    --preset small --players demo_7000 --opponents defence,macro --dataset data/own --games 128
  python -m starleague.experiments.economy --dataset data/own --names student

A row has the games of a player and race with one result, or with --noby_result all. Means are over
the games that last as long.
"""

import numpy as np
from absl import flags

from starleague.agent import types
from starleague.common.errors import UserError
from starleague.data import games, packages
from starleague.data.games import economies
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import economy_table

flags.declare_key_flag("dataset")
_NAMES = flags.DEFINE_list("names", None, "Players of the games. Default: all.")
_SECONDS = flags.DEFINE_list(
  "at_seconds", ["60", "120", "180", "300"], "Times in seconds, at 22.4 game loops a second.")
_BY_RESULT = flags.DEFINE_boolean("by_result", True, "Rows for games won, drawn and lost.")


def main() -> None:
  packages.require("pyarrow")
  seconds = _SECONDS.value
  if not seconds or not all(text.isdecimal() for text in seconds):
    raise UserError(f"--at_seconds: expected integers, as 60,120; found {','.join(seconds)!r}")
  dataset = games.read(run_flags.given(run_flags.DATASET))
  episodes = dataset.episodes
  names = _NAMES.value or sorted(set(episodes.name))
  for name in names:
    if name not in episodes.name:
      raise UserError(f"--names: expected some of {', '.join(sorted(set(episodes.name)))}, the "
                      f"players of {dataset.path}; found {name!r}")
  rows = np.flatnonzero(np.isin(episodes.name, names))
  found = economies.economies(
    dataset, rows, [round(types.GAME_LOOPS_PER_SECOND * int(text)) for text in seconds])
  print("\n".join(economy_table.lines(
    found, [int(text) for text in seconds], episodes.name[rows], episodes.race[rows],
    episodes.result[rows], _BY_RESULT.value)))


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
