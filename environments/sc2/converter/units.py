"""Units, passengers and effects of a raw observation, as columns of the game's own values."""

from typing import NamedTuple

import numpy as np

from starleague.environments.sc2.converter import columns
from starleague.environments.sc2.protocol import raw_pb

MOST_ORDERS, MOST_BUFFS = 4, 2
_UNITS = raw_pb.ObservationRaw.DESCRIPTOR.fields_by_name["units"].number
_UNIT = raw_pb.Unit.DESCRIPTOR
_PLACE = _UNIT.fields_by_name["pos"].message_type
_ORDER = _UNIT.fields_by_name["orders"].message_type
_PASSENGER = _UNIT.fields_by_name["passengers"].message_type


class Units(NamedTuple):
  """The units of an observation in the game's order, n of them."""

  size: int  # n
  numbers: dict[str, np.ndarray]  # fields of raw_pb.Unit, [n] float32 or int64; see `number`
  x: np.ndarray  # [n] float32, game coordinates
  y: np.ndarray
  orders: np.ndarray  # [4, n] int64: ability ids, 0 for none
  progress: np.ndarray  # [4, n] float32
  order_length: np.ndarray  # [n] int64
  buffs: np.ndarray  # [2, n] int64, 0 for none
  passengers: dict[str, np.ndarray]  # fields of raw_pb.PassengerUnit, [m]
  carriers: np.ndarray  # [m] int64: the unit that carries each passenger

  def number(self, name: str) -> np.ndarray:
    """Returns a field of all units, [n]; zero if no unit has it."""
    found = self.numbers.get(name)
    return np.zeros(self.size, np.int64) if found is None else found

  def passenger(self, name: str) -> np.ndarray:
    """Returns a field of all passengers, [m]; zero if none has it."""
    found = self.passengers.get(name)
    return np.zeros(len(self.carriers), np.int64) if found is None else found


class Effects(NamedTuple):
  """Effects, one row for each of m places."""

  effect: np.ndarray  # [m] int64: the game's id
  alliance: np.ndarray  # [m] int64
  owner: np.ndarray  # [m] int64
  radius: np.ndarray  # [m] float64, game units
  x: np.ndarray  # [m] float64, game coordinates
  y: np.ndarray


def read_units(raw: raw_pb.ObservationRaw) -> Units:
  """Reads the units of an observation."""
  data = raw.SerializeToString()
  first, end = columns.starts(data, _UNITS)
  n, buffer = len(first), columns.make_buffer(data, end)
  read = columns.read(buffer, first, _UNIT)
  x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
  if "pos" in read.repeated:
    owner, _, value = read.repeated["pos"]
    place = columns.read(buffer, value, _PLACE).numbers
    x[owner], y[owner] = place.get("x", 0), place.get("y", 0)
  orders, progress = np.zeros((MOST_ORDERS, n), np.int64), np.zeros((MOST_ORDERS, n), np.float32)
  order_length = np.zeros(n, np.int64)
  if "orders" in read.repeated:
    owner, rank, value = read.repeated["orders"]
    order_length = np.bincount(owner, minlength=n)
    owner, rank, value = (column[rank < MOST_ORDERS] for column in (owner, rank, value))
    found = columns.read(buffer, value, _ORDER).numbers
    orders[rank, owner] = found.get("ability_id", 0)
    progress[rank, owner] = found.get("progress", 0)
  buffs = np.zeros((MOST_BUFFS, n), np.int64)
  if "buff_ids" in read.repeated:
    owner, rank, value = read.repeated["buff_ids"]
    few = rank < MOST_BUFFS
    buffs[rank[few], owner[few]] = value[few]
  carriers, passengers = np.zeros(0, np.int64), dict[str, np.ndarray]()
  if "passengers" in read.repeated:
    owner, rank, value = read.repeated["passengers"]
    order = np.lexsort((rank, owner))
    carriers = owner[order]
    passengers = columns.read(buffer, value[order], _PASSENGER).numbers
  return Units(n, read.numbers, x, y, orders, progress, order_length, buffs, passengers, carriers)


def read_effects(raw: raw_pb.ObservationRaw) -> Effects:
  """Reads the effects of an observation, each at all its places."""
  rows = [(effect.effect_id, effect.alliance, effect.owner, effect.radius, place.x, place.y)
          for effect in raw.effects for place in effect.pos]
  table = np.array(rows, np.float64).reshape(-1, 6).T
  return Effects(*table[:3].astype(np.int64), *table[3:])
