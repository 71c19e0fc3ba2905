"""Answers: scripted players that change their plan when they have seen their opponent's.

No strategy of one plan beats all others: a rush loses to static defence, and a macro game to early
attacks. A player with answers begins with one plan, scouts, and follows another once it has seen
technology or static defence. It stays a function of its view, which forgets a structure when its
place is seen without it: once the opponent's static defence is destroyed, the plan reverts.
"""

import jax.numpy as jnp

from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.bots.views import (
  Choice,
  View,
  first_slots,
  make_choice,
  unit_slots,
)
from starleague.environments.skirmish.rules.state.arrays import look_up, squared_distance
from starleague.environments.skirmish.rules.state.state import Array
from starleague.environments.skirmish.rules.tables import constants, tables

DEFENDED = 3  # known armed structures that make a static defence
MANY_FIGHTERS = 3  # enemies in sight, with which no scout leaves
SHIELDED = 2  # own armed structures, with which none leaves either: an attack may be near
FIRE_RADIUS = 14.0  # units this near to an armed structure are in its reach, or soon will be


def _armed(rules: tables.Rules, view: View) -> Array:
  """The opponent's armed structures as far as they are known: [S] bool."""
  return view.known & look_up(rules.types.fighter & rules.types.structure, view.known_kind)


def sight_of(rules: tables.Rules, view: View) -> Array:
  """Returns what a player has seen of the opponent's plan, one of scripts.SIGHTS: [] int32."""
  types = rules.types
  halls = jnp.sum(view.known & look_up(types.townhall, view.known_kind))
  gas = jnp.any(view.known & look_up(types.gas, view.known_kind))
  defended = jnp.sum(_armed(rules, view)) >= DEFENDED
  return jnp.where(defended, scripts.DEFENCE, jnp.where(
    gas | (halls > 1), scripts.TECHNOLOGY, scripts.NOTHING))


def commands(rules: tables.Rules, script: scripts.Parameters, view: View,
             sight: Array) -> list[Choice]:
  """Returns commands to retreat from static defence, and to scout; wanted of players with answers.

  Args:
    rules: the game's constants.
    script: the parameters of the plan that the player follows now.
    view: the game as the player knows it.
    sight: see `sight_of`.
  """
  return [_retreat(rules, script, view, sight), _scout(rules, script, view, sight)]


def _retreat(rules: tables.Rules, script: scripts.Parameters, view: View, sight: Array) -> Choice:
  """Calls back an attack on static defence with less than half of the plan's fighters."""
  s = rules.tier.structures
  attacking = look_up(scripts.army_types(rules), view.kind[s:]) & (
    (view.verb == constants.ATTACK) | (view.verb == constants.ATTACK_UNIT))
  square = squared_distance(view.x[s:], view.y[s:], view.known_x[:, None], view.known_y[:, None])
  under_fire = attacking & jnp.any(
    _armed(rules, view)[:, None] & (square < FIRE_RADIUS ** 2), axis=0)
  weak = 2 * jnp.sum(attacking) < script.attack
  x, y = (view.side * place for place in rules.tier.home)
  return make_choice(
    rules, script.answers & weak & (sight == scripts.DEFENCE), "Move_pt",
    unit_slots(rules, first_slots(under_fire, rules.max_selected)), x, y)


def _scout(rules: tables.Rules, script: scripts.Parameters, view: View, sight: Array) -> Choice:
  """Sends the worker nearest to the opponent's start there, once the first building has begun.

  It goes to and fro between the opponent's first two bases while what it sees decides the plan.
  """
  s = rules.tier.structures
  worker = look_up(rules.types.worker, view.kind[s:])
  ready = jnp.any(view.kind[:s] == script.building[0])
  under_way = jnp.any(worker & (view.verb == constants.MOVE))
  follows = script.follows[:, view.race, view.away_race]
  decides = (follows[scripts.NOTHING] != follows[scripts.TECHNOLOGY]) | ~jnp.any(view.known)
  fighters = look_up(rules.types.fighter & ~rules.types.structure, view.enemy_kind)
  shields = look_up(rules.types.fighter & rules.types.structure, view.kind[:s])
  late = (jnp.sum(view.enemy & fighters) >= MANY_FIGHTERS) | (jnp.sum(shields) >= SHIELDED)
  start, second = rules.tier.homes[0], rules.tier.homes[min(1, len(rules.tier.homes) - 1)]
  x, y = (-view.side * jnp.where(view.home_seen, second[i], start[i]) for i in range(2))
  waits = worker & ((view.verb == constants.GATHER) | (view.verb == constants.IDLE))
  square = squared_distance(-view.side * start[0], -view.side * start[1], view.x[s:], view.y[s:])
  nearest = jnp.arange(rules.tier.units) == jnp.argmin(jnp.where(waits, square, jnp.inf))
  return make_choice(
    rules, script.answers & ready & (sight == scripts.NOTHING) & decides & ~under_way & ~late,
    "Move_pt", unit_slots(rules, waits & nearest), x, y)
