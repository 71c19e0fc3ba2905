"""Raw units of observations: own slots, known slots of the opponent, resources, larvae.

Their order is that of Skirmish's entity rows.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from starleague.agent import vocabulary
from starleague.environments.sc2.protocol import common_pb, raw_pb
from starleague.environments.sc2.server.game import catalogue, roster
from starleague.environments.sc2.server.game.client_commands import resource_places
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.game.world import (
  make_world,
  shown_resources,
  shown_start,
)
from starleague.environments.sc2.server.views import force_fields
from starleague.environments.sc2.server.views.view import NEUTRAL_OWNER, View
from starleague.environments.skirmish.rules.state.queries import warp_gates
from starleague.environments.skirmish.rules.state.state import Orders
from starleague.environments.skirmish.rules.tables import constants, tables

MINERALS, GEYSER = 341, 342
_PATCH_RADIUS, _GEYSER_RADIUS, _LARVA_RADIUS = 1.125, 1.5, 0.125
_LARVA_HEALTH, _LARVA_STEP = 25.0, 0.5
_FULL_LEVELS = ("attack_upgrade_level", "armor_upgrade_level", "shield_upgrade_level")
# Constant fields of units in sight.
_SAME = {"display_type": raw_pb.Visible, "is_blip": False, "is_burrowed": False,
         "is_hallucination": False, "cloak": raw_pb.NotCloaked}
# Fields that only owners see, by Skirmish's columns.
_POSSESSIONS = {
  "active": "is_active", "assigned_harvesters": "assigned_harvesters",
  "ideal_harvesters": "ideal_harvesters", "buff_duration_remain": "buff_duration_remain",
  "buff_duration_max": "buff_duration_max", "cargo_space_taken": "cargo_space_taken",
  "cargo_space_max": "cargo_space_max"}
_VERB_FUNCTIONS = {
  constants.MOVE: "Move_pt", constants.ATTACK: "Attack_pt", constants.ATTACK_UNIT: "Attack_unit",
  constants.HOLD: "HoldPosition_quick", constants.GATHER: "Harvest_Gather_unit",
  constants.PATROL: "Patrol_pt", constants.REPAIR: "Effect_Repair_unit",
  constants.RETURN: "Harvest_Return_quick", constants.BOARD: "Smart_unit",
  constants.LOAD: "Load_unit", constants.UNLOAD: "UnloadAllAt_pt"}
_AT_POINT = (constants.MOVE, constants.ATTACK, constants.PATROL, constants.BUILD,
             constants.CONSTRUCT, constants.UNLOAD)
_AT_OWN = (constants.REPAIR, constants.BOARD, constants.LOAD)


def make_units(view: View) -> list[raw_pb.Unit]:
  """Returns the units that a player knows of."""
  return [*_own(view), *_enemies(view), *_resources(view), *force_fields.make_units(view),
          *_larvae(view)]


def _own(view: View) -> Iterator[raw_pb.Unit]:
  slots = np.flatnonzero((view.frame.state.kind[view.player] > 0) & ~_aboard(view, view.player))
  seen = _in_sight(view, view.player, slots, view.frame.tags[view.player])
  for values, more in zip(seen, _possessions(view, slots), strict=True):
    yield raw_pb.Unit(alliance=raw_pb.Self, **values, **more)


def _aboard(view: View, player: int) -> np.ndarray:
  """Slots whose unit is in a transport: [n] bool. It is listed with its transport only."""
  verb = np.asarray(view.frame.state.orders.verb[player])
  return np.pad(verb == constants.ABOARD, (view.game.rules.tier.structures, 0))


def passengers(view: View, slot: int) -> np.ndarray:
  """Returns the slots of the units in an own transport, in order: [k]."""
  target = np.pad(view.frame.state.orders.target[view.player], (view.game.rules.tier.structures, 0))
  return np.flatnonzero(_aboard(view, view.player) & (target == slot))


def _enemies(view: View) -> Iterator[raw_pb.Unit]:
  tags, seen = view.frame.known_tags[view.player], view.frame.state.memory.seen[view.player]
  known = np.flatnonzero((tags > 0) & ~_aboard(view, 1 - view.player))
  in_sight = iter(_in_sight(view, 1 - view.player, known[seen[known]], tags))
  for slot in known.tolist():
    if seen[slot]:
      yield raw_pb.Unit(alliance=raw_pb.Enemy, **next(in_sight))
    elif slot < view.game.rules.tier.structures:
      yield _remembered(view, slot, int(tags[slot]))


def _remembered(view: View, slot: int, tag: int) -> raw_pb.Unit:
  """A structure of the opponent as last seen."""
  memory, types, player = view.frame.state.memory, view.game.rules.types, view.player
  kind = memory.kind[player, slot]
  position = view.point(*_shown_place(
    view, kind, memory.x[player, slot], memory.y[player, slot]))
  return raw_pb.Unit(
    display_type=raw_pb.Snapshot, alliance=raw_pb.Enemy, tag=tag, owner=2 - player,
    unit_type=unit_type(view.game, kind), pos=position, radius=float(types.radius[kind]),
    facing=1.5 * np.pi, is_on_screen=view.shown(position), is_blip=False,
    build_progress=1.0, health=float(memory.health[player, slot]),
    health_max=float(types.health[kind]), shield_max=float(types.shield[kind]))


def unit_type(game: Game, kind: Any) -> int:
  """Returns the real game's id of a local type."""
  return int(vocabulary.UNIT_TYPES.ids[game.rules.types.index[kind]])


def local_type(game: Game, unit_type_id: int) -> int:
  """Returns the local type of a real game's id, 0 if the tier does not have it."""
  found = np.flatnonzero(vocabulary.UNIT_TYPES.ids[game.rules.types.index[1:]] == unit_type_id)
  return 1 + int(found[0]) if found.size else 0


def _in_sight(view: View, owner: int, slots: np.ndarray,
              tags: np.ndarray) -> list[dict[str, Any]]:
  """Returns the fields of units that every player with vision of them sees.

  Columns become Python's numbers at once: reading numpy's one by one takes most of the time of an
  observation.

  Args:
    view: of a player.
    owner: of the units, 0 or 1.
    slots: [k] of the units.
    tags: [n] by slot.
  """
  frame, rules = view.frame, view.game.rules
  state, types = frame.state, rules.types
  kind = np.asarray(state.kind[owner, slots])
  points = _points(
    view, kind, np.asarray(state.x[owner, slots]), np.asarray(state.y[owner, slots]))
  columns = {
    "tag": tags[slots].tolist(), "pos": points,
    "unit_type": vocabulary.UNIT_TYPES.ids[types.index[kind]].tolist(),
    "facing": frame.facing[owner, slots].tolist(), "radius": types.radius[kind].tolist(),
    "is_on_screen": [view.shown(point) for point in points],
    "is_flying": types.flying[kind].tolist(),
    "is_selected": [tag in view.selected for tag in frame.tags[owner, slots].tolist()],
    "health": state.health[owner, slots].tolist(),
    "health_max": frame.report.max_health[owner, slots].tolist(),
    "build_progress": _progress(view, owner, slots, kind).tolist(),
    "is_powered": (types.race[kind] == constants.RACES.index("Protoss")).tolist(),
    **{name: frame.report.levels[name][owner, slots].astype(int).tolist()
       for name in _FULL_LEVELS if name in frame.report.levels}}
  rows = [{"owner": owner + 1, **_SAME, **dict(zip(columns, values, strict=True))}
          for values in zip(*columns.values(), strict=True)]
  for name, has, most, current in (
      ("shield", rules.has_shields, types.shield, state.shield),
      ("energy", rules.has_energy, types.energy, state.energy)):
    if has:
      _add(rows, most[kind] > 0, **{
        name: current[owner, slots].tolist(), f"{name}_max": most[kind].tolist()})
  if rules.has_cloaking:
    cloaked = types.cloaked[kind] | np.pad(state.cloaked[owner], (rules.tier.structures, 0))[slots]
    cloak = raw_pb.CloakedAllied if owner == view.player else raw_pb.CloakedDetected
    _add(rows, cloaked, cloak=[cloak] * len(rows))
  if rules.has_sentries:
    unreal = np.pad(state.spell_loops[owner] < 0, (rules.tier.structures, 0))
    if owner != view.player:  # detectors tell them from real units
      unreal &= np.pad(state.memory.detected[view.player], (rules.tier.structures, 0))
    _add(rows, unreal[slots], is_hallucination=[True] * len(rows))
  if view.game.battlefield.realistic:  # python-sc2 sends workers to gas structures by this field
    for i in np.flatnonzero(types.gas[kind]).tolist():
      rows[i]["vespene_contents"] = _contents_below(view, owner, slots[i])
  buffs = frame.report.own["buff_id_0"][owner, slots].astype(int)
  _add(rows, buffs > 0, buff_ids=[[buff] for buff in vocabulary.BUFFS.ids[buffs].tolist()])
  return rows


def _contents_below(view: View, owner: int, slot: int) -> int:
  """The contents of the resource below a gas structure of a player, as last seen."""
  state, places = view.frame.state, resource_places(view.game, view.player)
  far = np.hypot(places[0] - state.x[owner, slot], places[1] - state.y[owner, slot])
  return int(state.memory.patches[view.player, int(np.argmin(far))])


def _add(rows: list[dict[str, Any]], where: np.ndarray, **columns: Sequence[Any]) -> None:
  """Adds fields, [k] each, to the chosen ones of k rows."""
  for i in np.flatnonzero(where).tolist():
    rows[i] |= {name: values[i] for name, values in columns.items()}


def _points(view: View, kind: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[common_pb.Point]:
  """Returns the world positions of units of local types [k] at places [k] of Skirmish."""
  types = view.game.rules.types
  move_to_shown_places(view, kind, x, y)
  return [view.point(*place) for place in zip(
    x.tolist(), y.tolist(), types.flying[kind].tolist(), strict=True)]


def move_to_shown_places(view: View, kind: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
  """Changes places [k] of units of local types [k] to where they are shown, in Skirmish."""
  for i in np.flatnonzero(view.game.rules.types.gas[kind] | _at_home(view, kind, x, y)):
    x[i], y[i] = _shown_place(view, kind[i], x[i], y[i])


def _progress(view: View, owner: int, slots: np.ndarray, kind: np.ndarray) -> np.ndarray:
  """Returns the share of units' construction that is complete: [k] float64."""
  left, rules = np.zeros(len(slots)), view.game.rules
  structures = np.flatnonzero(slots < rules.tier.structures)
  left[structures] = view.frame.state.unfinished[owner, slots[structures]]
  return 1.0 - np.maximum(left, 0) / np.maximum(rules.products.loops[kind], 1)


def _possessions(view: View, slots: np.ndarray) -> list[dict[str, Any]]:
  """Returns the fields that only the owner of units sees: orders, weapon, harvesters, rally."""
  state, player, tier = view.frame.state, view.player, view.game.rules.tier
  own = {name: values[player, slots].astype(int).tolist()
         for name, values in view.frame.report.own.items() if name in _POSSESSIONS}
  own["active"] = [bool(active) for active in own["active"]]
  rows = [{_POSSESSIONS[name]: value for name, value in zip(own, values, strict=True)}
          for values in zip(*own.values(), strict=True)]
  cooldown = state.cooldown[player].tolist()
  verbs = state.orders.verb[player].tolist(), state.next_orders.verb[player].tolist()
  queues, rally = state.queue[player].tolist(), state.rally[player].tolist()
  add_ons = view.frame.report.add_ons.slot[player].tolist()
  gates = warp_gates(view.game.rules, state)[player].tolist()  # whose queue is their cooldown
  for slot, values in zip(slots.tolist(), rows, strict=True):
    if slot >= tier.unarmed:
      values["weapon_cooldown"] = max(cooldown[slot - tier.unarmed], 0.0)
    if slot < tier.structures:
      if add_ons[slot] >= 0:
        values["add_on_tag"] = int(view.frame.tags[player, add_ons[slot]])
      if any(queues[slot]) and not gates[slot]:
        values["orders"] = list(_queue_orders(view, slot))
      if rally[slot]:
        values["rally_targets"] = [raw_pb.RallyTarget(
          point=view.point(state.rally_x[player, slot], state.rally_y[player, slot]))]
      continue
    unit = slot - tier.structures
    values["orders"] = [
      _unit_order(view, unit, orders, verb[unit])
      for orders, verb in zip((state.orders, state.next_orders), verbs, strict=True)
      if verb[unit] != constants.IDLE]
    if values.get("cargo_space_taken"):
      values["passengers"] = [_passenger(view, i) for i in passengers(view, slot).tolist()]
    if verbs[0][unit] == constants.ATTACK_UNIT:
      target = state.orders.target[player, unit]
      values["engaged_target_tag"] = int(view.frame.known_tags[player, target])
  return rows


def _passenger(view: View, slot: int) -> raw_pb.PassengerUnit:
  """Returns the unit in an own slot as its transport lists it."""
  state, player, types = view.frame.state, view.player, view.game.rules.types
  kind = int(state.kind[player, slot])
  return raw_pb.PassengerUnit(
    tag=int(view.frame.tags[player, slot]), unit_type=unit_type(view.game, kind),
    health=float(state.health[player, slot]),
    health_max=float(view.frame.report.max_health[player, slot]),
    shield=float(state.shield[player, slot]), shield_max=float(types.shield[kind]),
    energy=float(state.energy[player, slot]), energy_max=float(types.energy[kind]))


def _unit_order(view: View, unit: int, orders: Orders, verb: int) -> raw_pb.UnitOrder:
  """Returns the current or the queued order of an own unit."""
  game, state, player = view.game, view.frame.state, view.player
  names, abilities = game.rules.functions.names, catalogue.make_catalogue(game.rules)
  kind = int(state.kind[player, unit + game.rules.tier.structures])
  if orders is state.orders and verb == constants.GATHER and state.cargo[player, unit] > 0:
    verb = constants.RETURN
  if verb in (constants.BUILD, constants.CONSTRUCT):
    order = raw_pb.UnitOrder(
      ability_id=abilities.product_ability(int(orders.product[player, unit])))
  else:
    order = raw_pb.UnitOrder(
      ability_id=abilities.ability(names.index(_VERB_FUNCTIONS[verb]), kind))
  if verb in _AT_POINT:
    order.target_world_space_pos.CopyFrom(
      view.point(orders.x[player, unit], orders.y[player, unit]))
    return order
  if verb not in (constants.ATTACK_UNIT, constants.GATHER, *_AT_OWN):
    return order
  tags = (view.frame.known_tags[player] if verb == constants.ATTACK_UNIT
          else view.frame.tags[player] if verb in _AT_OWN
          else roster.resource_tags(game.rules, player))
  target = int(orders.target[player, unit])
  if 0 <= target < len(tags) and tags[target]:
    order.target_unit_tag = int(tags[target])
  return order


def _queue_orders(view: View, slot: int) -> Iterator[raw_pb.UnitOrder]:
  """Yields the products that an own structure makes."""
  state, rules, player = view.frame.state, view.game.rules, view.player
  abilities = catalogue.make_catalogue(rules)
  for product, timer in zip(state.queue[player, slot].tolist(),
                            state.timers[player, slot].tolist(), strict=True):
    if product:
      loops = max(int(rules.products.loops[product]), 1)
      yield raw_pb.UnitOrder(
        ability_id=abilities.product_ability(product),
        progress=min(max(1.0 - timer / loops, 0.0), 1.0))


def _resources(view: View) -> Iterator[raw_pb.Unit]:
  game, player, state = view.game, view.player, view.frame.state
  field, contents = game.battlefield, state.memory.patches[player]
  full = _full_resources(
    game.rules, field.map_index, field.realistic, player, float(state.side[player]))
  for i in np.flatnonzero(contents > 0).tolist():
    unit = raw_pb.Unit()
    unit.CopyFrom(full[i])
    unit.is_on_screen, unit.is_selected = view.shown(unit.pos), unit.tag in view.selected
    setattr(unit, "vespene_contents" if unit.unit_type == GEYSER else "mineral_contents",
            int(contents[i]))
    yield unit


@functools.cache
def _full_resources(rules: tables.Rules, map_index: int, realistic: bool, player: int,
                    side: float) -> list[raw_pb.Unit]:
  """Returns a map's resources in a player's order, without the fields that change."""
  world, half = make_world(rules, map_index, realistic), shown_resources(rules, realistic)
  tags, units = roster.resource_tags(rules, player).tolist(), []
  x, y = world.to_world(*np.concatenate([half, -half], axis=1) * side)
  for tag, gas, *place in zip(tags, np.tile(rules.tier.geysers, 2).tolist(), x.tolist(),
                              y.tolist(), strict=True):
    units.append(raw_pb.Unit(
      display_type=raw_pb.Visible, alliance=raw_pb.Neutral, tag=tag,
      unit_type=GEYSER if gas else MINERALS, owner=NEUTRAL_OWNER,
      pos=common_pb.Point(x=place[0], y=place[1], z=world.ground_below(*place)),
      radius=_GEYSER_RADIUS if gas else _PATCH_RADIUS, build_progress=1.0,
      cloak=raw_pb.NotCloaked, is_blip=False, is_powered=False, is_active=False,
      is_flying=False, is_burrowed=False, is_hallucination=False))
  return units


def _shown_resources(view: View) -> np.ndarray:
  """Returns the shown places of resources in Skirmish, in the player's order: [2, R] float32."""
  half = shown_resources(view.game.rules, view.game.battlefield.realistic)
  return np.concatenate([half, -half], axis=1) * view.frame.state.side[view.player]


def _shown_place(view: View, kind: Any, x: Any, y: Any) -> tuple[Any, Any]:
  """Returns the shown place of a unit in Skirmish.

  Gas structures are on their shown geyser, structures at a starting position where that is shown.
  """
  if _at_home(view, kind, x, y):
    home_x, home_y = shown_start(view.game.rules, view.game.battlefield.realistic)
    return np.copysign(home_x, x), np.copysign(home_y, y)
  if not view.game.rules.types.gas[kind]:
    return x, y
  places = resource_places(view.game, view.player)
  nearest = int(np.argmin(np.hypot(places[0] - x, places[1] - y)))
  shown_x, shown_y = _shown_resources(view)[:, nearest]
  return shown_x, shown_y


def _at_home(view: View, kind: Any, x: Any, y: Any) -> Any:
  """Whether structures stand exactly at a starting position: bool, shaped like x."""
  home_x, home_y = view.game.rules.tier.home
  at_home = ((x == home_x) & (y == home_y)) | ((x == -home_x) & (y == -home_y))
  return view.game.rules.types.structure[kind] & at_home


def _larvae(view: View) -> Iterator[raw_pb.Unit]:
  """Yields own larvae as units beside their hatchery, on realistic maps."""
  game, state, player = view.game, view.frame.state, view.player
  if not game.battlefield.realistic or not game.rules.has_larvae:
    return
  for slot in np.flatnonzero(state.larvae[player]):
    if not state.kind[player, slot]:
      continue
    tags = roster.larva_tags(game.rules, player, int(slot), int(state.larvae[player, slot]))
    for i, tag in enumerate(tags):
      position = view.point(state.x[player, slot] + _LARVA_STEP * (i % 4 - 1.5),
                            state.y[player, slot] + 3.0 + _LARVA_STEP * (i // 4))
      yield raw_pb.Unit(
        display_type=raw_pb.Visible, alliance=raw_pb.Self, tag=tag, unit_type=catalogue.LARVA,
        owner=player + 1, pos=position, radius=_LARVA_RADIUS, build_progress=1.0,
        cloak=raw_pb.NotCloaked, is_selected=tag in view.selected,
        is_on_screen=view.shown(position), is_blip=False, is_powered=False, is_active=False,
        health=_LARVA_HEALTH, health_max=_LARVA_HEALTH, is_flying=False, is_burrowed=False,
        is_hallucination=False)
