"""Raw units of observations: own slots, known slots of the opponent, resources, larvae.

They stand in the order of Skirmish's own entity rows.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import vocabulary
from starleague.environments.sc2.protocol import common_pb, raw_pb
from starleague.environments.sc2.server import catalogue, roster
from starleague.environments.sc2.server.commands import resource_places
from starleague.environments.sc2.server.game import Frame, Game
from starleague.environments.sc2.server.world import FLYING_HEIGHT, shown_resources
from starleague.environments.skirmish.rules import constants

NEUTRAL_OWNER = 16
MINERALS, GEYSER = 341, 342
_PATCH_RADIUS, _GEYSER_RADIUS, _LARVA_RADIUS = 1.125, 1.5, 0.125
_LARVA_HEALTH, _LARVA_STEP = 25.0, 0.5
_FULL_LEVELS = ("attack_upgrade_level", "armor_upgrade_level", "shield_upgrade_level")
_VERB_FUNCTIONS = {
  constants.MOVE: "Move_pt", constants.ATTACK: "Attack_pt", constants.ATTACK_UNIT: "Attack_unit",
  constants.HOLD: "HoldPosition_quick", constants.GATHER: "Harvest_Gather_unit",
  constants.PATROL: "Patrol_pt", constants.REPAIR: "Effect_Repair_unit",
  constants.RETURN: "Harvest_Return_quick"}
_AT_POINT = (constants.MOVE, constants.ATTACK, constants.PATROL, constants.BUILD,
             constants.CONSTRUCT)


class View(NamedTuple):
  """A player's look at a frame."""

  game: Game
  frame: Frame
  player: int
  selected: Collection[int]  # tags
  screen: tuple[float, float, float, float]  # left, bottom, right, top of the camera's view

  def point(self, x: Any, y: Any, flying: bool = False) -> common_pb.Point:
    """World position of a place of Skirmish."""
    wx, wy = self.game.world.to_world(x, y)
    z = float(self.game.world.ground_at(wx, wy)) + FLYING_HEIGHT * flying
    return common_pb.Point(x=float(wx), y=float(wy), z=z)

  def shown(self, position: common_pb.Point) -> bool:
    """Whether a world position is in the camera's view."""
    left, bottom, right, top = self.screen
    return left <= position.x < right and bottom <= position.y < top


def raw_units(view: View) -> list[raw_pb.Unit]:
  """Returns the units that a player knows of."""
  return [*_own(view), *_enemies(view), *_resources(view), *_larvae(view)]


def _own(view: View) -> Iterator[raw_pb.Unit]:
  frame, player = view.frame, view.player
  state = frame.state
  for slot in np.flatnonzero(state.kind[player]):
    yield raw_pb.Unit(
      display_type=raw_pb.Visible, alliance=raw_pb.Self, tag=int(frame.tags[player, slot]),
      **_place(view, player, slot), **_condition(view, player, slot),
      **_possession(view, slot))


def _enemies(view: View) -> Iterator[raw_pb.Unit]:
  frame, player, enemy = view.frame, view.player, 1 - view.player
  memory, s = frame.state.memory, view.game.rules.tier.structures
  for slot in np.flatnonzero(frame.known_tags[player]):
    tag = int(frame.known_tags[player, slot])
    if memory.seen[player, slot]:
      yield raw_pb.Unit(
        display_type=raw_pb.Visible, alliance=raw_pb.Enemy, tag=tag,
        **_place(view, enemy, slot), **_condition(view, enemy, slot))
    elif slot < s:
      yield _remembered(view, int(slot), tag)


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


def _place(view: View, owner: int, slot: int) -> dict[str, Any]:
  """What a unit is and where it stands."""
  state, types = view.frame.state, view.game.rules.types
  kind = state.kind[owner, slot]
  flying = bool(types.flying[kind])
  position = view.point(
    *_shown_place(view, kind, state.x[owner, slot], state.y[owner, slot]), flying)
  return {
    "unit_type": unit_type(view.game, kind), "owner": owner + 1, "pos": position,
    "facing": float(view.frame.facing[owner, slot]), "radius": float(types.radius[kind]),
    "is_on_screen": view.shown(position), "is_flying": flying, "is_blip": False,
    "is_burrowed": False, "is_hallucination": False, "cloak": raw_pb.NotCloaked,
    "is_selected": int(view.frame.tags[owner, slot]) in view.selected}


def _condition(view: View, owner: int, slot: int) -> dict[str, Any]:
  """Health, energy, construction, buffs and upgrades of a unit in sight."""
  state, report, rules = view.frame.state, view.frame.report, view.game.rules
  kind = state.kind[owner, slot]
  values: dict[str, Any] = {
    "health": float(state.health[owner, slot]),
    "health_max": float(report.max_health[owner, slot]),
    "build_progress": 1.0,
    "is_powered": constants.RACES[rules.types.race[kind]] == "Protoss"}
  if slot < rules.tier.structures and state.unfinished[owner, slot] > 0:
    loops = max(int(rules.products.loops[kind]), 1)
    values["build_progress"] = 1.0 - float(state.unfinished[owner, slot]) / loops
  if rules.has_shields and rules.types.shield[kind] > 0:
    values["shield"] = float(state.shield[owner, slot])
    values["shield_max"] = float(rules.types.shield[kind])
  if rules.has_energy and rules.types.energy[kind] > 0:
    values["energy"] = float(state.energy[owner, slot])
    values["energy_max"] = float(rules.types.energy[kind])
  buff = int(report.own["buff_id_0"][owner, slot])
  if buff:
    values["buff_ids"] = [int(vocabulary.BUFFS.ids[buff])]
  for name in _FULL_LEVELS:
    if name in report.levels:
      values[name] = int(report.levels[name][owner, slot])
  return values


def _possession(view: View, slot: int) -> dict[str, Any]:
  """What only the owner of a unit sees: orders, weapon, harvesters, rally point."""
  game, state, player = view.game, view.frame.state, view.player
  own, tier = view.frame.report.own, game.rules.tier
  values: dict[str, Any] = {
    "is_active": bool(own["active"][player, slot]),
    "assigned_harvesters": int(own["assigned_harvesters"][player, slot]),
    "ideal_harvesters": int(own["ideal_harvesters"][player, slot])}
  if "buff_duration_max" in own:
    values["buff_duration_remain"] = int(own["buff_duration_remain"][player, slot])
    values["buff_duration_max"] = int(own["buff_duration_max"][player, slot])
  if slot >= tier.unarmed:
    values["weapon_cooldown"] = max(float(state.cooldown[player, slot - tier.unarmed]), 0.0)
  if slot >= tier.structures:
    unit = slot - tier.structures
    values["orders"] = list(unit_orders(view, int(unit)))
    if state.orders.verb[player, unit] == constants.ATTACK_UNIT:
      target = state.orders.target[player, unit]
      values["engaged_target_tag"] = int(view.frame.known_tags[player, target])
    return values
  values["orders"] = list(queue_orders(view, int(slot)))
  if state.rally[player, slot]:
    values["rally_targets"] = [raw_pb.RallyTarget(
      point=view.point(state.rally_x[player, slot], state.rally_y[player, slot]))]
  return values


def unit_orders(view: View, unit: int) -> Iterator[raw_pb.UnitOrder]:
  """Yields the orders of an own unit: the current one and the queued one."""
  state, player = view.frame.state, view.player
  for orders in (state.orders, state.next_orders):
    verb = int(orders.verb[player, unit])
    if verb == constants.IDLE:
      continue
    if orders is state.orders and verb == constants.GATHER and state.cargo[player, unit] > 0:
      verb = constants.RETURN
    yield _unit_order(view, unit, orders, verb)


def _unit_order(view: View, unit: int, orders: Any, verb: int) -> raw_pb.UnitOrder:
  game, state, player = view.game, view.frame.state, view.player
  names, abilities = game.rules.functions.names, catalogue.make_catalogue(game.rules)
  kind = int(state.kind[player, unit + game.rules.tier.structures])
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
  tags = {
    constants.ATTACK_UNIT: view.frame.known_tags[player],
    constants.GATHER: roster.resource_tags(game.rules, player),
    constants.REPAIR: view.frame.tags[player]}.get(verb)
  target = int(orders.target[player, unit])
  if tags is not None and 0 <= target < len(tags) and tags[target]:
    order.target_unit_tag = int(tags[target])
  return order


def queue_orders(view: View, slot: int) -> Iterator[raw_pb.UnitOrder]:
  """Yields the products that an own structure makes."""
  state, rules, player = view.frame.state, view.game.rules, view.player
  abilities = catalogue.make_catalogue(rules)
  for product, timer in zip(state.queue[player, slot], state.timers[player, slot], strict=True):
    if product:
      loops = max(int(rules.products.loops[product]), 1)
      yield raw_pb.UnitOrder(
        ability_id=abilities.product_ability(int(product)),
        progress=float(np.clip(1.0 - timer / loops, 0.0, 1.0)))


def _resources(view: View) -> Iterator[raw_pb.Unit]:
  game, player = view.game, view.player
  contents, tier = view.frame.state.memory.patches[player], game.rules.tier
  tags, places = roster.resource_tags(game.rules, player), _shown_resources(view)
  for i in np.flatnonzero(contents > 0):
    gas = tier.geysers[i % len(tier.geysers)]
    position = view.point(*places[:, i])
    unit = raw_pb.Unit(
      display_type=raw_pb.Visible, alliance=raw_pb.Neutral, tag=int(tags[i]),
      unit_type=GEYSER if gas else MINERALS, owner=NEUTRAL_OWNER, pos=position,
      radius=_GEYSER_RADIUS if gas else _PATCH_RADIUS, build_progress=1.0,
      cloak=raw_pb.NotCloaked, is_on_screen=view.shown(position), is_blip=False,
      is_powered=False, is_active=False, is_flying=False, is_burrowed=False,
      is_hallucination=False, is_selected=int(tags[i]) in view.selected)
    setattr(unit, "vespene_contents" if gas else "mineral_contents", int(contents[i]))
    yield unit


def _shown_resources(view: View) -> np.ndarray:
  """Where resources are shown, in the player's order and in Skirmish: [2, R] float32."""
  half = shown_resources(view.game.rules, view.game.battlefield.realistic)
  return np.concatenate([half, -half], axis=1) * view.frame.state.side[view.player]


def _shown_place(view: View, kind: Any, x: Any, y: Any) -> tuple[Any, Any]:
  """Where a unit is shown, in Skirmish: gas structures stand on the geyser as it is shown."""
  if not view.game.rules.types.gas[kind]:
    return x, y
  places = resource_places(view.game, view.player)
  nearest = int(np.argmin(np.hypot(places[0] - x, places[1] - y)))
  shown_x, shown_y = _shown_resources(view)[:, nearest]
  return shown_x, shown_y


def _larvae(view: View) -> Iterator[raw_pb.Unit]:
  """Own larvae as units, beside their hatchery, where the map says so."""
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
