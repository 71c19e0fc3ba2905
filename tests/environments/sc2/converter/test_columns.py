"""Columns of messages: absent fields, repeated ones, lengths of several bytes."""

import pytest

pytest.importorskip("s2clientprotocol")

from starleague.environments.sc2.converter import columns
from starleague.environments.sc2.protocol import raw_pb

UNIT = raw_pb.Unit.DESCRIPTOR


def test_long_messages_are_found():
  """Lengths of one, two and three bytes."""
  units = [raw_pb.Unit(tag=i + 1) for i in range(3)]
  for unit, buffs in zip(units, (0, 100, 8000), strict=True):
    unit.buff_ids.extend([7] * buffs)
  raw = raw_pb.ObservationRaw(units=units)
  data = raw.SerializeToString()
  first, end = columns.starts(data, 2)
  assert end == len(data) > 16_384 and len(first) == 3
  found = columns.read(columns.make_buffer(data, end), first, UNIT)
  assert found.numbers["tag"].tolist() == [1, 2, 3]


def test_absent_fields_have_their_default_and_those_of_nobody_are_left_out():
  units = [raw_pb.Unit(tag=300, health=1.5),
           raw_pb.Unit(is_blip=True, display_type=raw_pb.Snapshot)]
  data = raw_pb.ObservationRaw(units=units).SerializeToString()
  first, end = columns.starts(data, 2)
  found = columns.read(columns.make_buffer(data, end), first, UNIT)
  assert {name: column.tolist() for name, column in found.numbers.items()} == {
    "tag": [300, 0], "health": [1.5, 0], "is_blip": [0, 1],
    "display_type": [raw_pb.Visible, raw_pb.Snapshot],  # an enumeration's default is its first
    "alliance": [raw_pb.Self] * 2}  # `cloak` has the default 0
  assert found.repeated == {}


def test_values_of_a_repeated_field_have_their_owner_and_rank():
  units = [raw_pb.Unit(buff_ids=[5]), raw_pb.Unit(), raw_pb.Unit(buff_ids=[300, 7, 70_000])]
  data = raw_pb.ObservationRaw(units=units).SerializeToString()
  first, end = columns.starts(data, 2)
  buffs = columns.read(columns.make_buffer(data, end), first, UNIT).repeated["buff_ids"]
  rows = sorted(zip(*(column.tolist() for column in buffs), strict=True))
  assert rows == [(0, 0, 5), (2, 0, 300), (2, 1, 7), (2, 2, 70_000)]


def test_messages_of_another_field_are_passed_over():
  raw = raw_pb.ObservationRaw(units=[raw_pb.Unit(tag=1), raw_pb.Unit(tag=2)])
  raw.player.camera.x = 3
  data = raw.SerializeToString()
  first, end = columns.starts(data, 2)
  player, _ = columns.starts(data, 1)
  assert len(first) == 2 and len(player) == 1 and player[0] < first[0]
  assert [data[place - 2] for place in first] == [2 << 3 | 2] * 2
  none, end = columns.starts(b"", 2)
  assert none.tolist() == [] and end == 0
