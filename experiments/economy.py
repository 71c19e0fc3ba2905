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


def seconds_of(texts: list[str]) -> list[int]:
  """Returns the times of the flag.

  Raises:
    UserError: there are none, or they are not different integers.
  """
  seconds = [int(text) for text in texts if text.isdecimal()]
  if not texts or len(set(seconds)) < len(texts):
    raise UserError("--at_seconds: expected different integers, as 60,120; found "
                    f"{','.join(texts)!r}")
  return seconds


def main() -> None:
  packages.require("pyarrow")
  seconds = seconds_of(_SECONDS.value)
  dataset = games.read(run_flags.given(run_flags.DATASET))
  episodes = dataset.episodes
  known = sorted(set(episodes.name))
  if not known:
    raise UserError(f"{dataset.path}: expected recorded games, found none; record some with "
                    "starleague.experiments.demonstrate")
  names = known if _NAMES.value is None else _NAMES.value
  for name in names or [""]:
    if name not in known:
      raise UserError(f"--names: expected some of {', '.join(known)}, the players of "
                      f"{dataset.path}; found {name!r}")
  rows = np.flatnonzero(np.isin(episodes.name, names))
  found = economies.economies(
    dataset, rows, [round(types.GAME_LOOPS_PER_SECOND * second) for second in seconds])
  print("\n".join(economy_table.lines(
    found, seconds, episodes.name[rows], episodes.race[rows], episodes.result[rows],
    _BY_RESULT.value)))


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
