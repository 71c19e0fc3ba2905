"""What a player remembers: built units, its camera, its last action."""

import numpy as np
import pytest

pytest.importorskip("s2clientprotocol")

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter import observations
from starleague.environments.sc2.converter.camera import Camera
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from tests.environments.sc2 import recorded

SETTING = recorded.make_setting(
  recorded.agent_config.mini(), recorded.make_game_info(128, 64), 1)


def watch(memory, *units, upgrades=(), camera=(20, 30), hallucinations=(), ordered=(),
          errors=(), loop=0):
  """The memory after an observation of units (tag, name, alliance, x, y).

  Errors are (ability, result).
  """
  response = sc_pb.ResponseObservation()
  response.observation.game_loop = loop
  for ability, result in errors:
    response.action_errors.add(ability_id=ability, result=result)
  raw = response.observation.raw_data
  raw.player.camera.x, raw.player.camera.y = camera
  raw.player.upgrade_ids.extend(upgrades)
  for tag, name, alliance, x, y in units:
    unit = raw.units.add(tag=tag, alliance=alliance,
                         unit_type=int(v.UNIT_TYPES.ids[v.UNIT_TYPES.index(name)]))
    unit.pos.x, unit.pos.y = x, y
    unit.is_hallucination = tag in hallucinations
    unit.display_type = raw_pb.Placeholder if tag in ordered else raw_pb.Visible
  return memories.watch(memory, response, observations.read(response).units, SETTING)


def built(memory):
  return [v.UNIT_TYPES.names[i] for i in memory.executed.build_order if i]


def effects(memory):
  return [v.FUNCTIONS.names[i] for i in v.EFFECT_FUNCTIONS[memory.executed.effects]]


def act(memory, name, units=(), target=0, location=0, queued=0, repeat=0, loop=50):
  picked = np.full(8, 64, np.int16)
  picked[:len(units)] = units
  action = types.Action(v.FUNCTIONS.index(name), 1, queued, repeat, picked, target, location)
  return memories.note(memory, action, np.array([70, 80, 90], np.uint64), loop, SETTING)


def test_new_units_are_built_in_their_order():
  start = [(1, "CommandCenter", 1, 10, 10), (2, "SCV", 1, 12, 10)]
  memory = watch(memories.initial(SETTING), *start)
  assert built(memory) == [] and not memory.executed.units.any()
  memory = watch(memory, *start, (3, "SCV", 1, 12, 11), (4, "SupplyDepot", 1, 20, 10),
                 (9, "Barracks", 4, 100, 10))
  assert built(memory) == []  # workers and supply are no part of it; the barracks is the enemy's
  assert memory.executed.units.nonzero()[0].tolist() == sorted(
    v.UNIT_TYPES.index(name) for name in ("SCV", "SupplyDepot"))
  memory = watch(memory, *start, (5, "Barracks", 1, 20.5, 40), (6, "Marine", 1, 22, 40))
  assert built(memory) == ["Barracks", "Marine"]
  assert memory.executed.build_order_xy[:3].tolist() == [[41, 48], [44, 48], [0, 0]]
  assert watch(memory, *start, (5, "Barracks", 1, 20.5, 40)) == memory  # nothing is new


def test_hallucinations_are_not_built():
  start = (1, "Nexus", 1, 10, 10)
  memory = watch(memories.initial(SETTING), start)
  memory = watch(memory, start, (2, "Phoenix", 1, 12, 10), (3, "Zealot", 1, 12, 11),
                 hallucinations=[2])
  assert built(memory) == ["Zealot"]


@pytest.mark.parametrize("placed", [True, False])
def test_structures_are_built_once_they_are_placed(placed):
  """The game shows an ordered structure as a placeholder, with tag 0 and an own unit's type."""
  start = [(1, "CommandCenter", 1, 10, 10), (2, "SCV", 1, 12, 10)]
  memory = watch(memories.initial(SETTING), *start)
  memory = watch(memory, *start, (0, "Barracks", 1, 20, 40), ordered=[0])
  assert built(memory) == [] and not memory.executed.units.any()
  memory = watch(memory, *start, *([(5, "Barracks", 1, 20, 40)] if placed else []))
  assert built(memory) == ["Barracks"] * placed  # once; never, if the order was cancelled
  assert memory.executed.units.sum() == placed


def test_modes_and_moves_of_a_structure_build_nothing():
  memory = watch(memories.initial(SETTING), (1, "CommandCenter", 1, 10, 10))
  for name in ("CommandCenterFlying", "CommandCenter"):
    memory = watch(memory, (1, name, 1, 10, 10))
  assert built(memory) == []
  for name in ("OrbitalCommand", "OrbitalCommandFlying", "OrbitalCommand"):
    memory = watch(memory, (1, name, 1, 10, 10))
  assert built(memory) == ["OrbitalCommand"]
  for name in ("BarracksTechLab", "TechLab", "FactoryTechLab"):
    memory = watch(memory, (2, name, 1, 10, 10))
  assert built(memory) == ["OrbitalCommand", "BarracksTechLab"]


def test_a_build_order_ends_after_twenty():
  memory = watch(memories.initial(SETTING), (1, "Nexus", 1, 10, 10))
  for i in range(0, 30, 3):
    memory = watch(memory, *((10 + i + k, "Zealot", 1, 5, 5) for k in range(3)))
  assert built(memory) == ["Zealot"] * 20


def test_the_opponents_race_shows_with_its_first_unit():
  setting = recorded.make_setting(
    recorded.agent_config.mini(), recorded.make_game_info(128, 64, away=4), 1)
  memory = watch(memories.initial(setting), (1, "MineralField", 4, 5, 5))
  assert memory.away_race == 0
  memory = watch(memory, (2, "Zergling", 4, 5, 5))
  assert memory.away_race == types.RACES.index("zerg")
  assert watch(memory, (3, "Marine", 4, 5, 5)).away_race == memory.away_race
  assert memories.initial(SETTING).away_race == 1  # requested


def test_the_camera_starts_where_the_game_has_it_and_moves_by_its_function():
  memory = watch(memories.initial(SETTING), camera=(20, 30))
  memory = watch(memory, camera=(90, 50))
  assert memory.camera == Camera(20, 30)
  moved = act(memory, "raw_move_camera", location=3 * 32 + 5)
  assert moved.camera == Camera(22, 50)  # cells of 4 game units, y upwards
  assert act(memory, "Train_Marine_quick", [0]).camera == memory.camera
  blind = recorded.make_setting(
    recorded.agent_config.mini(), recorded.make_game_info(128, 64), 1, camera=False)
  response = sc_pb.ResponseObservation()
  units = observations.read(response).units
  assert memories.watch(memories.initial(blind), response, units, blind).camera is None


def test_only_commands_change_what_was_selected():
  memory = act(memories.initial(SETTING), "Attack_unit", [2, 0], target=1, queued=1)
  assert memory.selected.tolist() == [90, 70] and memory.targeted == 80
  assert (memory.last_queued, memory.last_repeat, memory.last_loop) == (1, 0, 50)
  for name in ("no_op", "raw_move_camera"):
    later = act(memory, name, loop=60)
    assert later.selected.tolist() == [90, 70] and later.targeted == 80
    assert later.last_function == v.FUNCTIONS.index(name) and later.last_loop == 60
  memory = act(memory, "Train_Marine_quick", [1], target=2, repeat=2)
  assert memory.selected.tolist() == [80] and memory.targeted == 0 and memory.last_repeat == 2


def test_effects_and_upgrades_are_executed():
  memory = act(memories.initial(SETTING), "Effect_Stim_quick", [0])
  assert effects(memory) == ["Effect_Stim_quick"]
  memory = watch(memory, (1, "Nexus", 1, 5, 5), upgrades=[84, 999_999])
  assert memory.executed.upgrades.nonzero()[0].tolist() == [v.UPGRADES.index("WarpGateResearch")]
  assert memory.executed.effects.any()


@pytest.mark.parametrize("units, target", [([], 1), ([3], 1), ([0], 3), ([0], 40)])
def test_effects_without_a_unit_or_a_target_are_not_executed(units, target):
  memory = act(memories.initial(SETTING), "Effect_Transfusion_unit", units, target=target)
  assert effects(memory) == []
  assert memory.last_function == v.FUNCTIONS.index("Effect_Transfusion_unit")
  assert effects(act(memory, "Effect_Transfusion_unit", [0], target=1)) == [
    "Effect_Transfusion_unit"]


@pytest.mark.parametrize("errors, kept", [
  ([(3675, 15)], False), ([(380, 15)], False),  # the general ability, and the Marine's own
  ([(3675, 1)], True), ([(0, 15)], True), ([(10**9, 15)], True),  # success, and no known ability
  ([(23, 15)], True)])  # another command's
def test_effects_that_the_game_refuses_are_not_executed(errors, kept):
  """Results: 1 is Success, 15 NotEnoughLife. Abilities: 3675 and 380 stim, 23 attacks."""
  memory = act(memories.initial(SETTING), "Effect_Stim_quick", [0], loop=50)
  memory = watch(memory, errors=errors, loop=51)
  assert effects(memory) == ["Effect_Stim_quick"] * kept


def test_refusals_of_other_commands_leave_an_effect():
  first = act(memories.initial(SETTING), "Effect_Stim_quick", [0], loop=50)
  assert effects(watch(first, errors=[(3675, 15)], loop=50))  # of a command before this one
  later = act(first, "Effect_Stim_quick", [1], loop=60)  # the second use is refused
  assert effects(watch(later, errors=[(3675, 15)], loop=61)) == ["Effect_Stim_quick"]
  waits = act(first, "no_op", loop=60)  # the refusal comes late
  assert effects(watch(waits, errors=[(3675, 15)], loop=61)) == []
  repeated = act(memories.initial(SETTING), "Effect_Stim_quick", [0], repeat=2, loop=50)
  assert effects(watch(repeated, errors=[(3675, 15)] * 2, loop=51)) == ["Effect_Stim_quick"]
  assert effects(watch(repeated, errors=[(3675, 15)] * 3, loop=51)) == []


@recorded.needs_data
def test_rows_show_what_was_selected_and_targeted():
  setting = recorded.setting()
  parsed, memory = recorded.watched(recorded.response(recorded.MIDGAME), setting)
  tags = observations.convert(parsed, None, setting, memory).tags
  memory = memory._replace(selected=tags[[3, 9]], targeted=int(tags[5]))
  found = observations.convert(parsed, None, setting, memory).observation.entities
  assert found[:, types.COLUMN["was_selected"]].nonzero()[0].tolist() == [3, 9]
  assert found[:, types.COLUMN["was_targeted"]].nonzero()[0].tolist() == [5]
