"""Units, structures and upgrades from tracker events, literally."""

import pytest

from starleague.agent import vocabulary as v
from starleague.data.replays import tracker
from starleague.data.replays.protocol import Event
from starleague.data.replays.readers import ProtocolError
from tests.data.replays import games


def read(*events):
  return tracker.read(Event(*event) for event in events)


def test_the_units_of_a_game():
  """Hallucinations and the gateway that was one before are left out; places are of centres."""
  found = read(*games.TRACKER)
  units = [(unit.player, unit.name, unit.kind, unit.loop) for unit in found.units if unit.loop]
  assert units == [
    (1, "Pylon", tracker.PLACED, 300), (1, "Gateway", tracker.PLACED, 448),
    (2, "SpawningPool", tracker.PLACED, 600), (1, "Zealot", tracker.BORN, 900),
    (2, "Lair", tracker.MORPHED, 1200)]
  assert sum(unit.kind == tracker.START for unit in found.units) == 7
  pylon, gateway = found.units[7:9]
  assert (pylon.x, pylon.y) == (44.0, 36.0) and (gateway.x, gateway.y) == (48.5, 30.5)
  assert found.births[games.tag(16)] == (1, 47.5, 28.5)  # the hallucination


def test_setups_and_upgrades():
  found = read(*games.TRACKER, games.setup(3, None))
  assert found.setups == [tracker.Setup(1, 0, False), tracker.Setup(2, 1, False),
                          tracker.Setup(3, -1, True)]
  assert [(upgrade.player, upgrade.loop, v.UPGRADES.names[upgrade.vocabulary_index])
          for upgrade in found.upgrades] == [(1, 1300, "Blink"), (2, 1300, "MetabolicBoost")]


def test_types_at_game_loops():
  types = read(*games.TRACKER).types
  gateway = games.tag(14)
  assert [types.at(gateway, loop) for loop in (0, 448, 999, 1000, 1099, 1100, 9999)] == [
    "Gateway", "Gateway", "Gateway", "WarpGate", "WarpGate", "Gateway", "Gateway"]
  assert types.seen(gateway) == ["Gateway", "WarpGate", "Gateway"]
  assert types.at(games.tag(99), 5) == "" and types.seen(games.tag(99)) == []


@pytest.mark.parametrize("event", [
  games.born(5, 40, 1, "BeaconArmy", 1, 1),  # marks an order of the computer
  games.born(5, 40, 1, "Zealot", 1, 1, m_creatorAbilityName=b"HallucinationZealot"),
  games.upgrade(5, 1, "RewardDanceGhost"),
  (5, -1, "UnitTypeChange", {"m_unitTagIndex": 40, "m_unitTagRecycle": 1,
                             "m_unitTypeName": b"Lair"})])  # of a unit that was never born
def test_events_that_add_nothing(event):
  found = read(event)
  assert found.units == [] and found.upgrades == []


def test_tags():
  assert tracker.unit_tag(3, 2) == 3 * 2**18 + 2 == 786434


def test_an_event_that_lacks_a_field_is_named():
  with pytest.raises(ProtocolError) as error:
    read((5, -1, "UnitBorn", {"m_unitTypeName": b"Zealot", "m_unitTagIndex": 1}))
  assert str(error.value) == "UnitBorn at game loop 5 lacks 'm_unitTagRecycle'"
