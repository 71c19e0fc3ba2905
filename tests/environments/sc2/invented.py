"""Invented observations, and what the official converter makes of them.

The converter's library needs Python 3.10. With numpy<2, pysc2 4.0.0 and pys2clientprotocol there,

  python tests/environments/sc2/invented.py

writes `converter.npz` beside this file.
"""

import pathlib

import numpy as np
from pysc2.lib import actions, buffs, units
from s2clientprotocol import sc2api_pb2 as sc_pb

GOLDEN = pathlib.Path(__file__).with_name("converter.npz")
COUNT, MAP_SIZE, PLAYED_FUNCTIONS = 4, (168, 152), 556
FLAGS = ("is_hallucination", "is_active", "is_powered", "is_selected", "is_blip", "is_on_screen")
NUMBERS = ("buff_duration_remain", "buff_duration_max", "attack_upgrade_level",
           "armor_upgrade_level", "shield_upgrade_level", "cargo_space_taken", "cargo_space_max",
           "assigned_harvesters", "ideal_harvesters", "mineral_contents", "vespene_contents")
_TYPES = sorted(int(unit) for race in (units.Terran, units.Protoss, units.Zerg, units.Neutral)
                for unit in race)
_ABILITIES = sorted({f.ability_id for f in actions.RAW_FUNCTIONS if f.id < PLAYED_FUNCTIONS} - {0})
_BUFFS = sorted(int(buff) for buff in buffs.Buffs)


def game_info():
  """The info of the game."""
  info = sc_pb.ResponseGameInfo()
  info.start_raw.map_size.x, info.start_raw.map_size.y = MAP_SIZE
  for player, race in ((1, 3), (2, 1)):
    info.player_info.add(player_id=player, type=sc_pb.Participant, race_requested=race)
  return info


def observation(seed):
  """An observation of player 1 with 90 units of all owners, passengers, orders and effects."""
  rng = np.random.default_rng(seed)
  response = sc_pb.ResponseObservation()
  found = response.observation
  found.game_loop, found.player_common.player_id = int(rng.integers(1, 30_000)), 1
  found.player_common.minerals = int(rng.integers(0, 5000))
  camera = rng.uniform(30, 120, 2)
  found.raw_data.player.camera.x, found.raw_data.player.camera.y = map(float, camera)
  tags = [int(tag) for tag in rng.choice(1 << 20, 90, replace=False) + (1 << 32)]
  for i, tag in enumerate(tags):
    _add_unit(found.raw_data, rng, i, tag, tags, camera)
  for _ in range(5):
    effect = found.raw_data.effects.add(
      effect_id=int(rng.integers(1, 13)), alliance=int(rng.integers(1, 5)),
      owner=int(rng.integers(1, 3)), radius=float(rng.uniform(0, 5)))
    for place in rng.uniform(0, 150, (2, 2)):
      effect.pos.add(x=float(place[0]), y=float(place[1]))
  height = found.feature_layer_data.minimap_renders.height_map  # the converter wants it
  height.size.x = height.size.y = 128
  height.bits_per_pixel, height.data = 8, bytes(128 * 128)
  return response


def _add_unit(raw, rng, i, tag, tags, camera):
  unit = raw.units.add(
    tag=tag, unit_type=int(rng.choice(_TYPES)), alliance=int(rng.integers(1, 5)),
    owner=int(rng.integers(1, 3)), display_type=int(rng.integers(1, 4)),
    cloak=int(rng.integers(1, 4)))
  if unit.alliance == 1 and i % 2:
    unit.display_type = 4  # a placeholder: an own structure that is only ordered
  # Half of them near the camera, at whole distances: its edges count as in view.
  near = camera + rng.integers(-20, 21, 2)
  unit.pos.x, unit.pos.y = map(float, near if i % 2 else rng.uniform(0, 150, 2))
  for name, most in (("health", 1500), ("shield", 1000), ("energy", 200)):
    if rng.random() < 0.8:
      setattr(unit, f"{name}_max", float(rng.integers(1, most)))
      setattr(unit, name, float(rng.uniform(0, getattr(unit, f"{name}_max"))))
  unit.build_progress, unit.radius = float(rng.random()), float(rng.uniform(0.3, 3))
  unit.weapon_cooldown, unit.facing = float(rng.uniform(0, 50)), float(rng.uniform(0, 6.28))
  for name in FLAGS:
    setattr(unit, name, bool(rng.integers(2)))
  for name in NUMBERS:
    setattr(unit, name, int(rng.integers(0, 300)))
  for ability in rng.choice(_ABILITIES, i % 6):
    unit.orders.add(ability_id=int(ability), progress=float(rng.random()))
  unit.buff_ids.extend(int(buff) for buff in rng.choice(_BUFFS, i % 4))
  if i % 3 == 0:
    unit.add_on_tag = tags[int(rng.integers(len(tags)))]
  for k in range(i % 3 if i % 7 == 0 else 0):
    unit.passengers.add(tag=(1 << 34) + 8 * i + k, unit_type=48, health=30.7, health_max=45,
                        shield=3.2, shield_max=50, energy=20, energy_max=200)


def write_golden():
  """Writes the official converter's rows and cameras."""
  from pysc2.env.converter import converter
  from pysc2.env.converter.proto import converter_pb2
  settings = converter_pb2.ConverterSettings(
    num_action_types=PLAYED_FUNCTIONS, num_unit_types=243, num_upgrade_types=86,
    max_num_upgrades=40, camera_width_world_units=24, mmr=6000,
    minimap_features=["height_map"])
  settings.minimap.x = settings.minimap.y = 128
  raw = settings.raw_settings
  raw.resolution.x = raw.resolution.y = 256
  raw.max_unit_count, raw.num_unit_features, raw.max_unit_selection_size = 512, 46, 64
  raw.use_camera_position = raw.camera = raw.use_virtual_camera = True
  raw.add_effects_to_units = raw.add_cargo_to_units = raw.mask_offscreen_enemies = True
  raw.enable_action_repeat = True
  for name, extent in (("left", 16), ("right", 16), ("top", 13), ("bottom", 7)):
    setattr(raw.virtual_camera_dimensions, name, extent)
  found = {}
  for seed in range(COUNT):
    made = converter.Converter(
      settings, converter_pb2.EnvironmentInfo(game_info=game_info())).convert_observation(
        converter_pb2.Observation(player=observation(seed)))
    found[f"rows_{seed}"] = made["raw_units"][:160].astype(np.int32)
    found[f"camera_{seed}"] = np.packbits(made["camera"].astype(bool))
  np.savez_compressed(GOLDEN, **found)


if __name__ == "__main__":
  write_golden()
