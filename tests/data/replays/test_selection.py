"""Selections: masks by hand, control groups, and the invariants of real games."""

import pytest

from starleague.common.mpq import Archive
from starleague.data.replays import protocol, selection
from starleague.data.replays.protocol import Event
from starleague.data.replays.readers import BitReader
from tests.data.replays import encoding
from tests.data.replays.games import REAL, needs_real

KEEP_NONE = {"ZeroIndices": []}


def delta(mask, tags, group=10):
  return Event(0, 0, "SelectionDelta", {"m_controlGroupId": group, "m_delta": {
    "m_removeMask": mask, "m_addUnitTags": tags}})


def update(group, kind, mask=None):
  return Event(0, 0, "ControlGroupUpdate", {
    "m_controlGroupIndex": group, "m_controlGroupUpdate": kind, "m_mask": mask or {"None": None}})


@pytest.mark.parametrize("mask, kept", [
  ({"None": None}, [1, 2, 3, 4]), ({"Mask": (3, 0b101)}, [2, 4]), ({"OneIndices": [0, 3]}, [2, 3]),
  ({"ZeroIndices": [1]}, [2]), ({"ZeroIndices": []}, []), ({"Mask": (0, 0)}, [1, 2, 3, 4])])
def test_masks(mask, kept):
  assert selection.without([1, 2, 3, 4], mask) == kept


def test_control_groups_are_kept():
  found = selection.Selection()
  for event in (delta(KEEP_NONE, [5, 3]), update(1, 0), delta(KEEP_NONE, [9]), update(1, 1)):
    found.apply(event)
  assert found.tags() == [9] and found.tags(1) == [3, 5, 9]
  found.apply(update(1, 2, {"Mask": (2, 0b10)}))  # recalled without a dead unit
  assert found.tags() == [3, 9] and found.tags(1) == [3, 5, 9]
  found.apply(delta({"Mask": (2, 0b10)}, [], group=1))
  assert found.tags(1) == [3, 9]
  found.apply(update(2, 4))
  assert found.tags(2) == [3, 9]
  found.apply(update(2, 3))
  assert found.tags(2) == [] and found.tags(7) == []


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("count", [1, 7, 9, 31, 33, 51, 64, 77])
def test_bit_arrays_of_any_length(count, offset):
  """Written by the format's definition, at any place in a byte."""
  bits = 0x9E3779B97F4A7C15F39C & (1 << count) - 1
  writer = encoding.BitWriter([("_bitarray", [(0, 9)])])
  writer.bits(0, offset)
  writer.write(0, (count, bits))
  reader = BitReader(writer.data(), [("_bitarray", [(0, 9)])])
  reader.bits(offset)
  assert reader.of(0)() == (count, bits)


def deltas(path):
  """Yields the users and events of the selections of a replay."""
  archive = Archive(path.read_bytes())
  build = protocol.header(archive.header)["m_version"]["m_baseBuild"]
  events = protocol.game_events(protocol.tables(protocol.nearest_builds(build)[0]),
                                archive.read("replay.game.events"))
  return (event for event in events if event.name in ("SelectionDelta", "ControlGroupUpdate"))


@needs_real
@pytest.mark.parametrize("name", [
  "pysc2/replay_03", "di-star/replay_5.0.6", "sc2reader/3.0.0.38215__fourth",
  "sc2reader/3.14.0.54518__2"])
def test_selections_of_real_games_are_consistent(name):
  """No mask refers past the end of its group, and no unit that is added is there already."""
  users, checked = {}, 0
  for event in deltas(REAL / f"{name}.SC2Replay"):
    found = users.setdefault(event.user, selection.Selection())
    content = event.fields.get("m_delta", {})
    mask = content.get("m_removeMask", event.fields.get("m_mask"))
    group = event.fields.get("m_controlGroupId", event.fields.get("m_controlGroupIndex"))
    before = found.tags(group)
    if "Mask" in mask:
      assert mask["Mask"][0] <= len(before)
    for index in (*mask.get("OneIndices", ()), *mask.get("ZeroIndices", ())):
      assert index < len(before)
    kept = selection.without(before, mask)
    assert not {*kept} & {*content.get("m_addUnitTags", ())}
    checked += bool(before)
    found.apply(event)
  assert checked > 300
