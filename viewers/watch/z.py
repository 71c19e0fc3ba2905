"""The z of both players of a recorded game, and the steps at which they fulfilled its entries."""

import collections

import numpy as np

from starleague.agent import vocabulary
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.state.state import State
from starleague.viewers.catalog import function_name, unit_name, upgrade_name

PARTS = ("build order", "units", "effects", "upgrades")
NEVER = -1
Entry = tuple[str, int]  # name; environment steps until it was fulfilled, or NEVER


def z_entries(replay: Replay, states: State) -> list[dict[str, list[Entry]]]:
  """Returns the entries of each player's z by part of z; parts without entries are left out.

  The n-th entry of a type in the build order is fulfilled when the player's own build order has n
  entries of that type; an entry of the cumulative statistics when it occurs.

  Args:
    replay: the game.
    states: [steps + 1, ...], from `replays.resimulate`.
  """
  return [_entries_of(replay, states, player) for player in range(2)]


def _entries_of(replay: Replay, states: State, player: int) -> dict[str, list[Entry]]:
  z, executed = replay.match_up.z, states.executed
  parts = {"build order": _build_order(
    np.asarray(z.build_order[player]), np.asarray(executed.build_order)[:, player])}
  names = {"units": [unit_name(name) for name in vocabulary.UNIT_TYPES.names],
           "effects": [function_name(vocabulary.FUNCTIONS.names[i])
                       for i in vocabulary.EFFECT_FUNCTIONS],
           "upgrades": [upgrade_name(name) for name in vocabulary.UPGRADES.names]}
  for part, known in names.items():
    wanted = np.flatnonzero(getattr(z, part)[player])
    done = np.asarray(getattr(executed, part))[:, player]
    parts[part] = [(known[i], _first(done[:, i])) for i in wanted]
  return {part: entries for part, entries in parts.items() if entries}


def _build_order(wanted: np.ndarray, executed: np.ndarray) -> list[Entry]:
  """Returns the entries of a build order [20], fulfilled by the executed one [T, 20]."""
  seen: collections.Counter[int] = collections.Counter()
  entries = []
  for kind in map(int, wanted[wanted > 0]):
    seen[kind] += 1
    counts = np.count_nonzero(executed == kind, axis=1)
    entries.append((unit_name(vocabulary.UNIT_TYPES.names[kind]), _first(counts >= seen[kind])))
  return entries


def _first(flags: np.ndarray) -> int:
  """Returns the index of the first flag that is set, or NEVER."""
  return int(np.argmax(flags)) if flags.any() else NEVER
