"""The human player's view: the data that the page shows of an observation.

Pure functions of an observation; nothing here reads the state of the game.
"""

from typing import Any

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers import catalog
from starleague.viewers.play import reasons
from starleague.viewers.play.commands import page_commands

MINERALS, GEYSER = -1, -2  # in place of a local type
_BUFFS = {
  "Stimpack": "stimmed", "StimpackMarauder": "stimmed", "ChronoBoostEnergyCost": "boosted",
  "QueenSpawnLarvaTimer": "injected", "CarryMineralFieldMinerals": "minerals",
  "CarryHarvestableVespeneGeyserGas": "vespene",
  "CarryHarvestableVespeneGeyserGasProtoss": "vespene",
  "CarryHarvestableVespeneGeyserGasZerg": "vespene"}
_HIDDEN_DISPLAY = 2  # display_type of a structure that is remembered, not seen


def local_types(rules: tables.Rules) -> np.ndarray:
  """Returns local types by dense index [N]; MINERALS and GEYSER for resources."""
  local = np.zeros(vocabulary.NUM_UNIT_TYPES, int)
  local[rules.types.index] = np.arange(len(rules.types.index))
  local[vocabulary.UNIT_TYPES.index("MineralField")] = MINERALS
  local[vocabulary.UNIT_TYPES.index("VespeneGeyser")] = GEYSER
  local[0] = 0
  return local


def page_setup(rules: tables.Rules, observation: types.Observation,
               names: tuple[str, str]) -> dict[str, Any]:
  """Returns the constants of a game's page, as JSON types.

  Args:
    rules: the game's constants.
    observation: the human player's first one, which shows the terrain.
    names: of the human player and of the opponent.
  """
  planes = dict(zip(types.MINIMAP_PLANES, observation.minimap, strict=True))
  ground = None
  if rules.terrain is not None:
    ground = {"passable": _rows(planes["pathable"]),
              "high": _rows(planes["height_map"] > planes["height_map"].min()),
              "buildable": _rows(planes["buildable"])}
  return {
    "names": names, "race": types.RACES[int(observation.home_race)],
    "mapSize": rules.tier.map_size, "most": rules.max_selected, "terrain": ground,
    "secondsPerStep": catalog.SECONDS_PER_STEP,
    "patchMinerals": rules.tier.patch_minerals, "geyserVespene": rules.tier.geyser_vespene,
    "types": catalog.unit_types(rules), "products": catalog.product_names(rules),
    "commands": page_commands(rules),
    "orders": {int(dense): catalog.function_name(name) for dense, name in zip(
      rules.functions.index, rules.functions.names, strict=True)}}


def _rows(plane: np.ndarray) -> list[str]:
  """Returns a plane [H, W] of digits as a string per row."""
  return ["".join(map(str, row)) for row in np.asarray(plane, np.uint8)]


def page_frame(rules: tables.Rules, observation: types.Observation) -> dict[str, Any]:
  """Returns the human player's current view, as JSON types.

  `can` lists the functions that are available, `reasons` says for each other function why not.
  """
  planes = dict(zip(types.MINIMAP_PLANES, observation.minimap, strict=True))
  available = np.asarray(observation.available_actions)[rules.functions.index]
  return {
    "loop": int(observation.game_loop),
    "clock": catalog.clock(int(observation.game_loop) / constants.LOOPS_PER_STEP),
    "player": dict(zip(types.PLAYER_COLUMNS, np.asarray(observation.player).tolist(),
                       strict=True)),
    "upgrades": [catalog.upgrade_name(vocabulary.UPGRADES.names[i])
                 for i in np.flatnonzero(observation.upgrades)],
    "rows": _entity_rows(rules, observation), "can": np.flatnonzero(available).tolist(),
    "reasons": reasons.unavailable(rules, observation),
    "visibility": _rows(planes["visibility"]),
    "creep": _rows(planes["creep"]) if planes["creep"].any() else []}


def _entity_rows(rules: tables.Rules, observation: types.Observation) -> list[dict[str, Any]]:
  """Returns the units, structures and resources that an observation shows."""
  count = int(observation.entity_count)
  entities = np.asarray(observation.entities)[:count].astype(int)
  local = local_types(rules)
  rows = []
  for entity in entities:
    value = dict(zip(types.COLUMN, entity.tolist(), strict=True))
    orders = [value[f"order_id_{k}"] for k in range(4)]
    rows.append({
      "tag": value["tag"], "type": int(local[value["unit_type"]]), "side": value["alliance"],
      "x": (value["x"] + 0.5) / types.POSITION_GRID, "y": (value["y"] + 0.5) / types.POSITION_GRID,
      "health": value["health"], "ratio": value["health_ratio"], "shield": value["shield"],
      "energy": value["energy"], "built": value["build_progress"],
      "ghost": value["display_type"] == _HIDDEN_DISPLAY,
      "orders": [order for order in orders if order], "length": value["order_length"],
      "progress": value["order_progress_0"],
      "contents": value["mineral_contents"] + value["vespene_contents"],
      "cooldown": value["weapon_cooldown"],
      "buff": _BUFFS.get(vocabulary.BUFFS.names[value["buff_id_0"]], ""),
      "workers": [value["assigned_harvesters"], value["ideal_harvesters"]]})
  return rows
