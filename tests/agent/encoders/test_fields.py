"""Classes and numbers of entity columns against hand-worked ones."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.encoders import fields
from tests.agent.encoders.observations import entity_row

_indices = jax.jit(fields.indices)
_numbers = jax.jit(fields.numbers)


def _class_of(field: str, **columns) -> int:
  at = [f.name for f in fields.FIELDS].index(field)
  return int(_indices(entity_row(**columns))[0, at])


@pytest.mark.parametrize(("health", "bucket"), [
  (0, 0), (1, 1), (35, 5), (36, 6), (1500, 38), (9999, 38)])
def test_health_is_the_floor_of_its_square_root(health, bucket):
  assert _class_of("current_health", health=health) == bucket


@pytest.mark.parametrize("cap", [200, 1000, 1500, 1800, 2500])
def test_square_root_classes_are_exact_at_every_value(cap):
  x = np.arange(-5, cap + 100)
  expected = [int(np.floor(np.sqrt(np.float64(min(max(i, 0), cap))))) for i in x]
  np.testing.assert_array_equal(fields.square_root_class(jnp.asarray(x), cap), expected)


def test_positions_are_bits_the_lowest_first():
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(130)), [0, 1, 0, 0, 0, 0, 0, 1])
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(300)), np.ones(8))
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(-1)), np.zeros(8))


@pytest.mark.parametrize(("field", "columns", "expected"), [
  ("unit_type", {"unit_type": 300}, 255),
  ("alliance", {"alliance": 4}, 4),
  ("current_shields", {"shield": 9}, 3),
  ("current_energy", {"energy": 250}, 14),
  ("cargo_space_used", {"cargo_space_taken": 12}, 8),
  ("current_minerals", {"mineral_contents": 1799}, 17),
  ("current_minerals", {"mineral_contents": 1800}, 18),
  ("current_vespene", {"vespene_contents": 2500}, 25),
  ("assigned_harvesters", {"assigned_harvesters": 24}, 24),
  ("ideal_harvesters", {"ideal_harvesters": 30}, 16),
  ("weapon_cooldown", {"weapon_cooldown": 400}, 31),
  ("order_progress_1", {"order_progress_0": 100}, 9),
  ("order_progress_2", {"order_progress_1": 59}, 5),
  ("armor_upgrades", {"armor_upgrade_level": 4}, 3),
  ("is_active", {"active": -3}, 0),
  ("order_1", {"order_id_0": 326}, 326),
])
def test_classes_of_columns(field, columns, expected):
  assert _class_of(field, **columns) == expected


@pytest.mark.parametrize(("kind", "left", "expected"), [
  ("MineralField", 1700, 10), ("RichMineralField", 1500, 0), ("MineralField750", 50, 26),
  ("MineralField450", 0, 21), ("Marine", 0, 0)])
def test_mined_minerals_is_initial_minus_current_contents(kind, left, expected):
  unit_type = v.UNIT_TYPES.index(kind)
  assert _class_of("mined_minerals", unit_type=unit_type, mineral_contents=left) == expected


@pytest.mark.parametrize(("kind", "expected"), [("VespeneGeyser", 47), ("RichVespeneGeyser", 50)])
def test_mined_vespene_of_an_empty_geyser(kind, expected):
  assert _class_of("mined_vespene", unit_type=v.UNIT_TYPES.index(kind)) == expected


def test_later_orders_distinguish_training_functions_only():
  marine = v.FUNCTIONS.index("Train_Marine_quick")
  at = list(v.TRAINING_FUNCTIONS).index(marine)
  assert _class_of("order_2", order_id_1=marine) == at > 0
  assert _class_of("order_4", order_id_3=v.FUNCTIONS.index("Attack_pt")) == 0


def test_each_addon_has_its_own_class():
  assert [_class_of("addon_type", addon_unit_type=v.UNIT_TYPES.index(name))
          for name in (*fields.ADDONS, "Marine")] == [1, 2, 3, 4, 5, 6, 0]


def test_attributes_of_known_types():
  names = ("light", "armored", "biological", "mechanical", "psionic", "massive", "structure",
           "detector", "summoned", "flying", "addon", "burrowed", "heroic")
  def attributes(unit):
    row = fields.ATTRIBUTES[v.UNIT_TYPES.index(unit)]
    return {name for name, has in zip(names, row, strict=True) if has}
  assert attributes("Marine") == {"light", "biological"}
  assert attributes("Battlecruiser") == {"armored", "mechanical", "massive", "flying"}
  assert attributes("BarracksTechLab") == {"armored", "mechanical", "structure", "addon"}
  assert attributes("DroneBurrowed") == {"light", "biological", "burrowed"}


def test_number_of_inputs_is_the_published_one():
  # 1206 with 49 training functions and 24 classes of harvesters: here they are 50 and 25.
  assert fields.NUM_CLASSES + fields.NUM_NUMBERS + fields.NUM_ATTRIBUTES == 1206 + 3 + 1


@hypothesis.given(st.integers(0, 2 ** 32 - 1))
@hypothesis.settings(max_examples=20, deadline=None)
def test_every_int16_has_a_class(seed):
  rows = np.random.default_rng(seed).integers(
    -2 ** 15, 2 ** 15, (16, types.NUM_ENTITY_COLUMNS)).astype(np.int16)
  indices = np.asarray(_indices(rows))
  assert (indices >= 0).all()
  assert (indices < [field.classes for field in fields.FIELDS]).all()
  numbers = np.asarray(_numbers(rows))
  assert (numbers >= 0).all() and (numbers <= 1).all()


def test_ratios_are_fractions_of_one():
  rows = entity_row(build_progress=50, health_ratio=255, shield_ratio=51, order_progress_0=100)
  np.testing.assert_allclose(
    _numbers(rows)[0, :6], [0.5, 1.0, 0.2, 0.0, 1.0, 0.0], rtol=1e-6)
