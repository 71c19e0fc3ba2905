"""Observations of the API, as a participant sees them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.sc2.protocol import (
  common_pb,
  raw_pb,
  sc_pb,
  score_pb,
  spatial_pb,
  ui_pb,
)
from starleague.environments.sc2.server.game import engine, roster
from starleague.environments.sc2.server.game.game import Changes, Frame, Game
from starleague.environments.sc2.server.game.world import image
from starleague.environments.sc2.server.views import interface_actions, layers, possible, raw_units
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.sc2.server.views.view import View
from starleague.environments.skirmish.rules.state.queries import powers
from starleague.environments.skirmish.rules.tables import constants, tables

_PLANE = {name: i for i, name in enumerate(types.MINIMAP_PLANES)}
_VISIBLE = 2  # of the plane "visibility"
_GUARD_EFFECT, _SCAN_EFFECT = 2, 6  # GuardianShieldPersistent, ScannerSweep
_MOST_PANEL_UNITS = 500


class Scene(NamedTuple):
  """The parts of an observation that a frame, the selection and the camera decide."""

  key: tuple[Any, ...]  # what decided them; the frame is first
  view: View
  units: dict[int, raw_pb.Unit]  # by tag
  effects: list[raw_pb.Effect]
  common: sc_pb.PlayerCommon
  score: score_pb.Score
  raw: raw_pb.ObservationRaw | None  # without events; None: the participant did not ask for it


def observe(game: Game, seat: ServerSeat, loop: int,
            reveal: bool = False) -> sc_pb.ResponseObservation:
  """Returns a participant's observation, without the result of the game.

  Args:
    game: the game.
    seat: of the participant.
    loop: game loops played; the state is that of the last multiple of 8.
    reveal: whether there is no fog of war.
  """
  scene = _scene(game, seat, reveal)
  selected = [tag for tag in seat.selected if tag in scene.units]
  events = seat.look(loop)
  observation = sc_pb.Observation(
    game_loop=loop, player_common=scene.common, alerts=sorted(set(events.get("alert", []))),
    abilities=_selected_abilities(game, seat.player, selected),
    ui_data=_panels(seat, scene.units, game))
  if seat.options.score:
    observation.score.CopyFrom(scene.score)
  if scene.raw is not None:
    observation.raw_data.CopyFrom(scene.raw)
    observation.raw_data.event.dead_units.extend(sorted(set(events.get("dead", []))))
  if seat.options.HasField("feature_layer"):
    listed = list(scene.units.values())
    observation.feature_layer_data.CopyFrom(spatial_pb.ObservationFeatureLayer(
      renders=layers.screen(scene.view, seat, listed, scene.effects),
      minimap_renders=layers.minimap(scene.view, seat, listed)))
  return sc_pb.ResponseObservation(
    actions=events.get("action", []), action_errors=events.get("error", []),
    chat=events.get("chat", []), observation=observation)


def _scene(game: Game, seat: ServerSeat, reveal: bool) -> Scene:
  """Returns the scene of a seat; game loops between steps show the same one."""
  view = interface_actions.make_view(game, seat)
  key = view.frame, view.selected, view.screen, reveal
  last = seat.scene
  if last is not None and last.key[0] is view.frame and last.key[1:] == key[1:]:
    return last
  if reveal:
    view = view._replace(frame=revealed(view.frame))
  listed, effects = raw_units.make_units(view), list(_effects(view))
  raw = raw_pb.ObservationRaw(
    player=_raw_player(view, seat), units=listed, map_state=_map_state(view), effects=effects,
  ) if seat.options.raw else None
  seat.scene = Scene(key, view, {unit.tag: unit for unit in listed}, effects,
                     _player_common(view), _score(view), raw)
  return seat.scene


def revealed(frame: Frame) -> Frame:
  """Returns a frame in which both players see everything."""
  memory = frame.state.memory
  planes = frame.report.planes.copy()
  planes[:, _PLANE["visibility"]] = _VISIBLE
  drawn = frame.report.planes[:, _PLANE["player_relative"]]
  planes[:, _PLANE["player_relative"]] = np.where(
    (drawn == 0) & (drawn[::-1] == types.ALLIANCE_SELF), types.ALLIANCE_ENEMY, drawn)
  return frame._replace(
    known_tags=frame.tags[::-1], report=frame.report._replace(planes=planes),
    state=frame.state._replace(memory=memory._replace(
      seen=memory.seen | True, detected=memory.detected | True)))


def _player_common(view: View) -> sc_pb.PlayerCommon:
  values = view.frame.report.player[view.player]
  return sc_pb.PlayerCommon(
    player_id=view.player + 1,
    **{name: int(value) for name, value in zip(types.PLAYER_COLUMNS, values, strict=True)})


def _score(view: View) -> score_pb.Score:
  total, *rest = view.frame.report.score[view.player].tolist()
  common = _player_common(view)
  details: dict[str, Any] = dict(zip(types.SCORE_COLUMNS[1:], map(float, rest), strict=True))
  return score_pb.Score(
    score_type=score_pb.Score.Melee, score=total, score_details=score_pb.ScoreDetails(
      **details, food_used=score_pb.CategoryScoreDetails(
        army=common.food_army, economy=common.food_workers)))


def _raw_player(view: View, seat: ServerSeat) -> raw_pb.PlayerRaw:
  game, state, player = view.game, view.frame.state, view.player
  camera = common_pb.Point(x=seat.camera[0], y=seat.camera[1])
  camera.z = float(game.world.ground_at(np.float32(camera.x), np.float32(camera.y)))
  rules = game.rules
  ids = vocabulary.UPGRADES.ids[rules.upgrades.index[np.flatnonzero(state.upgrades[player])]]
  return raw_pb.PlayerRaw(
    camera=camera, upgrade_ids=[int(i) for i in ids], power_sources=list(_power_sources(view)))


def _power_sources(view: View) -> Iterator[raw_pb.PowerSource]:
  """Yields the player's own finished Pylons and phasing Warp Prisms."""
  rules, state, player = view.game.rules, view.frame.state, view.player
  s, pylon = rules.tier.structures, rules.types.local("Pylon")
  stands = (state.kind[player, :s] == pylon) & (state.unfinished[player] == 0) & (pylon > 0)
  prisms = np.asarray(powers(rules, state))[player]
  for radius, slots in ((constants.POWER_RADIUS, np.flatnonzero(stands)),
                        (constants.PRISM_POWER_RADIUS, s + np.flatnonzero(prisms))):
    for slot in slots.tolist():
      kind = state.kind[player, slot]
      yield raw_pb.PowerSource(
        pos=view.point(state.x[player, slot], state.y[player, slot],
                       bool(rules.types.flying[kind])),
        radius=radius, tag=int(view.frame.tags[player, slot]))


def _map_state(view: View) -> raw_pb.MapState:
  """Visibility and creep on the world's cells, rows upwards."""
  planes, border = view.frame.report.planes[view.player], view.game.world.border
  size = view.game.world.playable
  cells = np.floor((np.arange(size) + 0.5) * planes.shape[-1] / size).astype(int)
  visibility, creep = (np.pad(planes[_PLANE[name]][cells[::-1, None], cells], border)
                       for name in ("visibility", "creep"))
  return raw_pb.MapState(
    visibility=image(visibility),
    creep=image(creep.astype(bool)))


def _effects(view: View) -> Iterator[raw_pb.Effect]:
  """Yields the player's own scan, and the Guardian Shields of Sentries in sight."""
  state, player, s = view.frame.state, view.player, view.game.rules.tier.structures
  for owner, unit in np.argwhere(state.spell_loops > 0).tolist():
    if roster.is_passenger(view.game.rules, state, owner, s + unit):
      continue
    if owner == player or state.memory.seen[player, s + unit]:
      place = view.point(state.x[owner, s + unit], state.y[owner, s + unit])
      yield raw_pb.Effect(
        effect_id=_GUARD_EFFECT, pos=[common_pb.Point2D(x=place.x, y=place.y)],
        alliance=raw_pb.Self if owner == player else raw_pb.Enemy, owner=owner + 1,
        radius=constants.GUARD_RADIUS)
  if state.scan_loops[player] > 0:
    place = view.point(state.scan_x[player], state.scan_y[player])
    yield raw_pb.Effect(
      effect_id=_SCAN_EFFECT, pos=[common_pb.Point2D(x=place.x, y=place.y)],
      alliance=raw_pb.Self, owner=player + 1,
      radius=constants.SCAN_RADIUS * view.game.rules.tier.sight_scale)


def _selected_abilities(game: Game, player: int,
                        selected: list[int]) -> list[common_pb.AvailableAbility]:
  """Returns the abilities of the selected units, each once."""
  found: dict[tuple[int, bool], common_pb.AvailableAbility] = {}
  shown = selected[:_MOST_PANEL_UNITS]
  for listed in possible.unit_abilities(game, player, shown) if shown else ():
    for ability in listed:
      found[ability.ability_id, ability.requires_point] = ability
  return list(found.values())


def _unit_info(unit: raw_pb.Unit) -> ui_pb.UnitInfo:
  return ui_pb.UnitInfo(
    unit_type=unit.unit_type, player_relative=unit.alliance, health=int(unit.health),
    shields=int(unit.shield), energy=int(unit.energy), build_progress=unit.build_progress,
    max_health=int(unit.health_max), max_shields=int(unit.shield_max),
    max_energy=int(unit.energy_max))


def _passenger_info(unit: raw_pb.PassengerUnit, rules: tables.Rules) -> ui_pb.UnitInfo:
  (kind,) = np.flatnonzero(vocabulary.UNIT_TYPES.ids[rules.types.index] == unit.unit_type)
  return ui_pb.UnitInfo(
    unit_type=unit.unit_type, player_relative=raw_pb.Self, health=int(unit.health),
    shields=int(unit.shield), energy=int(unit.energy),
    transport_slots_taken=int(rules.types.cargo_size[kind]), build_progress=1.0,
    max_health=int(unit.health_max), max_shields=int(unit.shield_max),
    max_energy=int(unit.energy_max))


def _panels(seat: ServerSeat, present: dict[int, raw_pb.Unit], game: Game) -> ui_pb.ObservationUI:
  """The panel of the selection, and the control groups."""
  groups = []
  for index, tags in sorted(seat.groups.items()):
    alive = [present[tag] for tag in tags if tag in present]
    if alive:
      groups.append(ui_pb.ControlGroup(
        control_group_index=index, leader_unit_type=alive[0].unit_type, count=len(alive)))
  panel = ui_pb.ObservationUI(groups=groups)
  selected = [present[tag] for tag in seat.selected if tag in present]
  if len(selected) > 1:
    panel.multi.units.extend(_unit_info(unit) for unit in selected[:_MOST_PANEL_UNITS])
  elif selected:
    unit = selected[0]
    makes = unit.orders and game.tags[seat.player, game.rules.tier.structures:].tolist(
      ).count(unit.tag) == 0
    if unit.passengers:
      panel.cargo.CopyFrom(ui_pb.CargoPanel(
        unit=_unit_info(unit),
        passengers=[_passenger_info(passenger, game.rules) for passenger in unit.passengers],
        slots_available=unit.cargo_space_max - unit.cargo_space_taken))
    elif makes:
      panel.production.unit.CopyFrom(_unit_info(unit))
      panel.production.production_queue.extend(
        ui_pb.BuildItem(ability_id=order.ability_id, build_progress=order.progress)
        for order in unit.orders)
    else:
      panel.single.CopyFrom(ui_pb.SinglePanel(
        unit=_unit_info(unit), attack_upgrade_level=unit.attack_upgrade_level,
        armor_upgrade_level=unit.armor_upgrade_level,
        shield_upgrade_level=unit.shield_upgrade_level, buffs=unit.buff_ids))
  return panel


def note_changes(rules: tables.Rules, seat: ServerSeat, changes: Changes) -> None:
  """Notes deaths and alerts of a run of steps for a participant's next observation."""
  player, s, worker = seat.player, rules.tier.structures, rules.types.worker
  before, after = (
    engine.Track._make([*(x[:, player] for x in track[:-1]), track.winner])
    for track in (changes.before, changes.after))
  born, kinds = changes.born[:, player, s:], after.kind[:, s:]
  if rules.has_sentries:  # hallucinations are not trained
    born = born & (after.spell_loops >= 0)
  stood = (before.kind[:, :s] > 0) & (after.kind[:, :s] > 0)
  hurt = after.hurt & (after.kind > 0)
  emptied = (before.patches > 0) & (after.patches <= 0)
  gas = np.tile(rules.tier.geysers, 2)
  happened = {
    sc_pb.BuildingComplete: stood & (before.unfinished > 0) & (after.unfinished == 0),
    sc_pb.BuildingUnderAttack: hurt[:, :s], sc_pb.UnitUnderAttack: hurt[:, s:],
    sc_pb.TrainWorkerComplete: born & worker[kinds],
    sc_pb.TrainUnitComplete: born & ~worker[kinds],
    sc_pb.ResearchComplete: after.upgrades & ~before.upgrades,
    sc_pb.MineralsExhausted: emptied & ~gas, sc_pb.VespeneExhausted: emptied & gas,
    # An injection ends without larvae if its hatchery dies. Some tiers have no injections.
    sc_pb.LarvaHatched: (before.injected > 0) & (after.injected == 0) & (
      stood[:, :before.injected.shape[1]])}
  alerts = {alert: where.any(axis=1) for alert, where in happened.items() if where.any()}
  for i, loop in enumerate(changes.loops):
    for tag in changes.dead[i][player]:
      seat.note(loop, "dead", tag)
    for alert, where in alerts.items():
      if where[i]:
        seat.note(loop, "alert", alert)
