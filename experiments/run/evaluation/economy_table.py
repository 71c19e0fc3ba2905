"""The table of the economies of players in recorded games."""

from collections.abc import Sequence

import numpy as np

from starleague.agent import types

_RESULTS = {1: "won", 0: "drawn", -1: "lost"}


def _cell(values: np.ndarray) -> str:
  """Returns the means of games [N, 6] that last as long; see `economies.COLUMNS`."""
  lasting = values[~np.isnan(values[:, 0])]
  if not len(lasting):
    return ""
  minerals, vespene, used, cap, army, workers = (round(float(x)) for x in lasting.mean(axis=0))
  return f"{minerals} {vespene}, {used}/{cap}, {workers} {army} ({len(lasting)})"


def lines(found: np.ndarray, seconds: Sequence[int], names: np.ndarray, races: np.ndarray,
          results: np.ndarray, by_result: bool) -> list[str]:
  """Returns the lines of a Markdown table, with a row for each player, race and result.

  Args:
    found: [N, T, 6] of `economies.economies`.
    seconds: [T] times.
    names: [N] str, of the players.
    races: [N] indices of types.RACES.
    results: [N]: 1 won, 0 drawn, -1 lost.
    by_result: whether results have rows of their own.
  """
  out = ["minerals vespene, supply used/cap, workers army (games)", "",
         "| player | race | games | " + " | ".join(f"{second} s" for second in seconds) + " |",
         "|---|---|---|" + "---|" * len(seconds)]
  for name in dict.fromkeys(names):
    for race in sorted(set(races)):
      of_player = (names == name) & (races == race)
      parts = [(f" {word}", of_player & (results == result)) for result, word in _RESULTS.items()]
      for word, chosen in parts if by_result else [("", of_player)]:
        if chosen.any():
          cells = " | ".join(_cell(found[chosen, i]) for i in range(len(seconds)))
          out.append(
            f"| {name} | {types.RACES[race].capitalize()} | {chosen.sum()}{word} | {cells} |")
  return out
