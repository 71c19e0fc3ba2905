"""Rows of invented observations against the official converter's.

Owners, display and cloak types, orders, buffs, add-ons, passengers and effects, under the camera.
"""

import numpy as np
import pytest

pytest.importorskip("pysc2")

from starleague.agent import coordinates, types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import camera as cameras
from starleague.environments.sc2.converter import entities, observations
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter.setting import make_setting
from tests.environments.sc2 import invented, recorded

COLUMN = types.COLUMN
FIRST_EFFECT = 243  # the converter adds it to the ids of effects, which it puts among unit types


@pytest.fixture(scope="module")
def golden():
  with np.load(invented.GOLDEN) as file:
    return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def pairs(golden):
  """(their rows, our rows) of all observations, without cloaked enemies outside the camera."""
  theirs, ours = [], []
  for seed in range(invented.COUNT):
    response = invented.observation(seed)
    setting = make_setting(recorded.agent_config.full(), invented.game_info(), 1)
    parsed = observations.read(response)
    memory = memories.watch(memories.initial(setting), response, parsed.units, setting)
    found = observations.convert(parsed, None, setting, memory)
    np.testing.assert_array_equal(
      np.packbits(coordinates.shown(found.observation.camera, 256)), golden[f"camera_{seed}"])
    shown = cameras.contains(memory.camera, parsed.units.x, parsed.units.y)
    rows = golden[f"rows_{seed}"]
    gone = [unit.alliance == 4 and unit.cloak == 1 and not shown[i]
            for i, unit in enumerate(response.observation.raw_data.units)]
    rows = np.delete(rows, np.flatnonzero(gone), axis=0)
    count = len(found.tags)
    assert not rows[count:].any() and sum(gone) > 0
    theirs.append(rows[:count])
    ours.append(found.observation.entities[:count])
  return np.concatenate(theirs), np.concatenate(ours)


@pytest.mark.parametrize("name", [name for name in types.ENTITY_COLUMNS if name != "tag"])
def test_columns_are_the_official_converters(pairs, name):
  theirs, ours = (rows[:, COLUMN[name]] for rows in pairs)
  if name in ("unit_type", "buff_id_0", "buff_id_1"):  # numbered otherwise: one to one
    alike = set(zip(theirs.tolist(), ours.tolist(), strict=True))
    if name == "unit_type":  # it gives several destructible rocks one id
      alike = {(a, b) for a, b in alike
               if b < len(v.UNIT_RACES) and v.UNIT_RACES[b] != "Neutral"}
    assert len(alike) == len({a for a, _ in alike}) == len({b for _, b in alike}) > 30
    return
  if name == "addon_unit_type":
    theirs = np.array([v.UNIT_TYPES.from_id(int(x)) for x in theirs])
  if name.startswith("order_id"):
    theirs = v.FUNCTIONS.lookup[theirs]
  effects = pairs[1][:, COLUMN["unit_type"]] == entities.EFFECT_TYPE
  same = ~effects if name == "order_id_0" else slice(None)
  np.testing.assert_array_equal(ours[same], theirs[same])


def test_effects_and_hidden_enemies_are_where_the_converter_has_them(pairs):
  theirs, ours = (rows[:, COLUMN["unit_type"]] for rows in pairs)
  effects = ours == entities.EFFECT_TYPE
  assert effects.sum() == 10 * invented.COUNT
  assert ((theirs[effects] > FIRST_EFFECT) & (theirs[effects] <= FIRST_EFFECT + 12)).all()
  np.testing.assert_array_equal((theirs == 254) & ~effects, ours == entities.HIDDEN_TYPE)
  assert (ours == entities.HIDDEN_TYPE).sum() > 10
