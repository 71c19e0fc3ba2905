"""Tags: numbers that identify units for their life.

A slot of the engine is reused after its unit's death. The roster counts the units of each slot; a
tag combines the slot and that count. A structure that a player remembers keeps the
tag under which it was last seen.
"""

import functools

import numpy as np

from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.environments.skirmish.rules.tables.constants import (
  LOOPS_PER_STEP,
  MOST_FORCE_FIELDS,
)

_FIRST = 1 << 32  # tags of the real game begin here as well
_COUNT_BITS, _SLOT_BITS = 16, 14
_LARVAE_SLOTS = 32  # tags that each structure slot's larvae can have


class Roster:
  """The count of units that each slot has held."""

  def __init__(self, rules: tables.Rules):
    """Makes the roster of a game that has not started."""
    tier = rules.tier
    self._n, self._s, self._resources = tier.slots, tier.structures, tier.resources
    self.kind = np.zeros((2, tier.slots), np.int32)  # of the last state
    self._count = np.zeros((2, tier.slots), np.int64)
    self._remembered = np.zeros((2, tier.structures), np.int64)

  def update(self, kind: np.ndarray) -> None:
    """Counts the units born since the last state. No step frees a slot and reuses it.

    Args:
      kind: [2, n], local types of the players' slots.
    """
    self._count += (kind > 0) & (self.kind == 0)
    self.kind = kind

  def remember(self, seen: np.ndarray) -> None:
    """Notes the tags of structures in sight; `seen` is [2, n] bool, by slots of the opponent."""
    self._remembered = np.where(
      seen[:, :self._s], self._all()[::-1, :self._s], self._remembered)

  def _all(self) -> np.ndarray:
    """Tags of all slots' units, present or gone: [2, n]."""
    slot = np.arange(2 * self._n).reshape(2, self._n)
    return _FIRST + ((slot << _COUNT_BITS) | (self._count & ((1 << _COUNT_BITS) - 1)))

  def tags(self) -> np.ndarray:
    """Returns the tags of the players' slots, [2, n] int64, 0 where empty."""
    return np.where(self.kind > 0, self._all(), 0)

  def known_tags(self, seen: np.ndarray, remembered: np.ndarray) -> np.ndarray:
    """Returns the opponent's tags as each player knows them, [2, n] int64, 0 where unknown.

    Args:
      seen: [2, n] bool, the opponent's slots in sight.
      remembered: [2, S], types of its structures as last seen, 0 for none.
    """
    known = np.where(seen, self._all()[::-1], 0)
    known[:, :self._s] = np.where(seen[:, :self._s], known[:, :self._s],
                                  np.where(remembered > 0, self._remembered, 0))
    return known


def is_passenger(rules: tables.Rules, state: State, player: int, slot: int) -> bool:
  """Whether the unit in a player's slot is in a transport, where no tag names it."""
  unit = slot - rules.tier.structures
  return unit >= 0 and bool(state.orders.verb[player, unit] == constants.ABOARD)


@functools.cache
def resource_tags(rules: tables.Rules, player: int) -> np.ndarray:
  """Returns the tags of resources, [R] int64, in a player's order: its own half's first."""
  halves = np.arange(rules.tier.resources).reshape(2, -1)
  slots = 2 * rules.tier.slots + np.concatenate([halves[player], halves[1 - player]])
  return _FIRST + (slots.astype(np.int64) << _COUNT_BITS)


def force_field_tag(rules: tables.Rules, player: int, index: int, end: int) -> int:
  """Returns the tag of a player's Force Field that ends at a game loop."""
  slot = 2 * rules.tier.slots + rules.tier.resources + player * MOST_FORCE_FIELDS + index
  return _FIRST + ((slot << _COUNT_BITS) | (end // LOOPS_PER_STEP & ((1 << _COUNT_BITS) - 1)))


def larva_tags(rules: tables.Rules, player: int, structure: int, count: int) -> list[int]:
  """Returns the tags of a hatchery's larvae."""
  base = (1 << _SLOT_BITS) + (player * rules.tier.structures + structure) * _LARVAE_SLOTS
  return [_FIRST + ((base + i) << _COUNT_BITS) for i in range(min(count, _LARVAE_SLOTS))]


def larva_structure(rules: tables.Rules, player: int, tag: int) -> int | None:
  """Returns the structure slot of a larva's tag; None for all other tags."""
  slot = ((tag - _FIRST) >> _COUNT_BITS) - (1 << _SLOT_BITS)
  structure = slot // _LARVAE_SLOTS - player * rules.tier.structures
  return structure if slot >= 0 and 0 <= structure < rules.tier.structures else None
