"""Units and effects read as columns, against the messages read one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("s2clientprotocol")

from starleague.environments.sc2.converter.units import read_effects, read_units
from starleague.environments.sc2.protocol import raw_pb

UNIT = raw_pb.Unit.DESCRIPTOR


@st.composite
def _units(draw):
  """A unit with any of its fields; each is absent half of the time."""
  unit = raw_pb.Unit()
  for field in UNIT.fields:
    if field.cpp_type == field.CPPTYPE_MESSAGE or field.name == "buff_ids" or draw(st.booleans()):
      continue
    if field.cpp_type == field.CPPTYPE_FLOAT:
      value = draw(st.floats(width=32, allow_nan=False))
    elif field.cpp_type == field.CPPTYPE_ENUM:
      value = draw(st.sampled_from([value.number for value in field.enum_type.values]))
    elif field.cpp_type == field.CPPTYPE_BOOL:
      value = draw(st.booleans())
    elif field.cpp_type == field.CPPTYPE_INT32:
      value = draw(st.integers(-2**31, 2**31 - 1))
    else:
      value = draw(st.integers(0, 2**32 - 1 if field.cpp_type == field.CPPTYPE_UINT32 else
                               2**64 - 1))
    setattr(unit, field.name, value)
  unit.buff_ids.extend(draw(st.lists(st.integers(0, 2**32 - 1), max_size=5)))
  for ability in draw(st.lists(st.integers(0, 5000), max_size=6)):
    unit.orders.add(ability_id=ability, progress=draw(st.floats(0, 1, width=32)))
  for tag in draw(st.lists(st.integers(0, 2**64 - 1), max_size=3)):
    unit.passengers.add(tag=tag, unit_type=48)
  if draw(st.booleans()):
    unit.pos.x, unit.pos.y = draw(st.tuples(*[st.floats(0, 256, width=32)] * 2))
  if draw(st.booleans()):
    unit.rally_targets.add(tag=5).point.x = 3
  return unit


def _raw(units, unknown=b""):
  """An observation of the units, each followed by bytes of a field that this program lacks."""
  data = b""
  for unit in units:
    one = unit.SerializeToString() + unknown
    size = len(one)
    data += b"\x12" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + one
  return raw_pb.ObservationRaw.FromString(data)


@settings(max_examples=60, deadline=None)
@given(st.lists(_units(), max_size=8), st.sampled_from([
  b"", b"\xf8\x3f\x05", b"\xfa\x3f\x03\x18\x01\x20", b"\xfd\x3f\x01\x02\x03\x04"]))
def test_units_are_the_messages(units, unknown):
  raw = _raw(units, unknown)
  raw.player.camera.x = 3
  raw.map_state.visibility.data = bytes(1000)
  found = read_units(raw)
  assert found.size == len(units)
  for field in UNIT.fields:
    if field.cpp_type == field.CPPTYPE_MESSAGE or field.name == "buff_ids":
      continue
    column = found.number(field.name)
    if field.cpp_type == field.CPPTYPE_UINT64:
      column = column.view(np.uint64)
    assert column.tolist() == [getattr(unit, field.name) for unit in units], field.name
  assert found.x.tolist() == [unit.pos.x for unit in units]
  assert found.y.tolist() == [unit.pos.y for unit in units]
  assert found.order_length.tolist() == [len(unit.orders) for unit in units]
  for i in range(4):
    orders = [unit.orders[i] if i < len(unit.orders) else raw_pb.UnitOrder() for unit in units]
    assert found.orders[i].tolist() == [order.ability_id for order in orders]
    assert found.progress[i].tolist() == [order.progress for order in orders]
  for i in range(2):
    assert found.buffs[i].tolist() == [
      unit.buff_ids[i] if i < len(unit.buff_ids) else 0 for unit in units]
  carried = [(i, p.tag) for i, unit in enumerate(units) for p in unit.passengers]
  tags = found.passenger("tag").view(np.uint64)
  assert list(zip(found.carriers.tolist(), tags.tolist(), strict=True)) == carried


def test_an_observation_without_units_has_empty_columns():
  found = read_units(raw_pb.ObservationRaw())
  assert (found.size, found.x.shape, found.orders.shape, found.buffs.shape) == (
    0, (0,), (4, 0), (2, 0))
  assert found.number("health").tolist() == found.passenger("tag").tolist() == []


def test_an_effect_has_a_row_for_each_of_its_places():
  raw = raw_pb.ObservationRaw()
  storm = raw.effects.add(effect_id=1, alliance=4, owner=2, radius=1.5)
  storm.pos.add(x=10, y=100)
  storm.pos.add(x=20.25, y=128)
  raw.effects.add(effect_id=7, owner=1)  # without a place
  raw.effects.add(effect_id=6, alliance=1, owner=1, radius=13).pos.add(x=3, y=4)
  found = read_effects(raw)
  assert [column.tolist() for column in found] == [
    [1, 1, 6], [4, 4, 1], [2, 2, 1], [1.5, 1.5, 13], [10, 20.25, 3], [100, 128, 4]]
  assert found.effect.dtype == found.alliance.dtype == found.owner.dtype == "int64"
  assert all(column.shape == (0,) for column in read_effects(raw_pb.ObservationRaw()))
