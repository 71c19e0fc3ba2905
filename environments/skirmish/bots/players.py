"""Scripted players: opponents with known strategies, and the first demonstrators.

A player is one of `scripts.scripts_of(tier)`. At each decision it lists commands in order of
urgency and gives the first possible one: retreat and scout (see `answers`), defend, attack, use
abilities, send idle workers to mine, spend. Except for cheating levels, it knows only what it
observes. It acts through the same actions as an agent.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.bots import (
  answers,
  demonstrators,
  plans,
  scripts,
  spending,
)
from starleague.environments.skirmish.bots.scripts import Parameters
from starleague.environments.skirmish.bots.views import (
  Choice,
  View,
  first_slots,
  make_choice,
  make_view,
  structure_slots,
  unit_slots,
)
from starleague.environments.skirmish.rules.interface.acting import place_to_location
from starleague.environments.skirmish.rules.state.arrays import look_up, squared_distance
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import arrival
from starleague.environments.skirmish.rules.tables import constants, tables

# (player index, key, state, player) -> Action, unbatched.
ScriptedPlayer = Callable[[Array, jax.Array, State, Array], types.Action]
# Distances in map units.
HOME_RADIUS = 9.0  # an enemy this near to an own structure is a threat
ROUNDING = 1.5  # of places to the locations of `small`
SIEGE_RANGE, UNSIEGE_RANGE = 12.0, 15.0  # an enemy this near; none this near
STIM_RANGE = 7.0  # an enemy this near
HARASS_DISTANCE = 4.0  # behind the opponent's town hall, where its workers mine
STIM_HEALTH = 25.0  # units with no more health take no stim
FULL_FOOD = 4  # food left, in halves, below which an army waits no longer
FULL_SLOTS = 2  # free unit slots, below which it waits no longer either: those of two Zerglings


def _enemy_near(view: View, x: Array, y: Array, radius: float,
                chosen: Array | bool = True) -> Array:
  """Whether a visible enemy, of those chosen [n] bool, is near each place [m]: [m] bool."""
  enemy = view.enemy & chosen
  square = squared_distance(x, y, view.enemy_x[:, None], view.enemy_y[:, None])
  return jnp.any(enemy[:, None] & (square < radius ** 2), axis=0)


def _threats(rules: tables.Rules, view: View) -> Array:
  """The enemies near each own structure: [n, S] bool."""
  s = rules.tier.structures
  square = squared_distance(
    view.x[:s], view.y[:s], view.enemy_x[:, None], view.enemy_y[:, None])
  near = (square < HOME_RADIUS ** 2) & (view.kind[:s] > 0) & view.enemy[:, None]
  if rules.has_flyers:  # scouting units are no threat
    near &= look_up(rules.types.fighter | rules.types.worker, view.enemy_kind)[:, None]
  return near


def _main_place(view: View, near: Array) -> tuple[Array, Array]:
  """The mean x and y of the enemies near the structure that has most of them: [] each.

  The mean of all would lie between two bases that are attacked at once.

  Args:
    view: the game as the player knows it.
    near: [n, S] bool, enemies near structures.
  """
  enemies = near[:, jnp.argmax(jnp.sum(near, axis=0))]
  weight = enemies / jnp.maximum(jnp.sum(enemies), 1)
  return jnp.sum(weight * view.enemy_x), jnp.sum(weight * view.enemy_y)


def find_threat(rules: tables.Rules, view: View) -> tuple[Array, Array, Array]:
  """Returns whether enemies are near an own structure, and where most of them are: [] each."""
  near = _threats(rules, view)
  return jnp.any(near), *_main_place(view, near)


def defend(rules: tables.Rules, view: View, free: Array) -> Choice:
  """Returns the command to attack the enemies near own structures.

  Where units fly, it leaves out enemies that no free unit can hit, units that can hit none of the
  others, and units at the place already. Otherwise an enemy out of their reach would take all
  decisions: units that arrive without a target are free again. Medivacs follow.

  Args:
    rules: the game's constants.
    view: the game as the player knows it.
    free: [M] bool, units of the army that do not attack.
  """
  types, s = rules.types, rules.tier.structures
  near, defenders = _threats(rules, view), free
  threat = jnp.any(near, axis=1)
  if rules.has_flyers:
    kind, flying = view.kind[s:], look_up(types.flying, view.enemy_kind)
    ground, air = (look_up(weapon.damage > 0, kind) for weapon in (types.ground, types.air))
    threat &= jnp.where(flying, jnp.any(free & air), jnp.any(free & ground))
    defenders &= (ground & jnp.any(threat & ~flying)) | (air & jnp.any(threat & flying)) | ~(
      ground | air)
  x, y = _main_place(view, near & threat[:, None])
  if rules.has_flyers:
    there = ROUNDING + arrival.end_of_attacks(rules, jnp.where(free, view.kind[s:], 0))
    defenders &= squared_distance(x, y, view.x[s:], view.y[s:]) >= there ** 2
  slots = unit_slots(rules, first_slots(defenders, rules.max_selected))
  return make_choice(rules, jnp.any(threat), "Attack_pt", slots, x, y)


def _attack_target(rules: tables.Rules, script: Parameters, key: jax.Array, view: View) -> Array:
  """The place to attack, [2] float32.

  This is the nearest known enemy structure, else the opponent's starting position, else a random
  place. Harassing players aim behind the opponent's town hall until they have seen it.
  """
  homes, half = rules.tier.homes, rules.half
  home_x, home_y = (view.side * place for place in rules.tier.home)
  square = jnp.where(
    view.known, squared_distance(home_x, home_y, view.known_x, view.known_y), jnp.inf)
  nearest = jnp.argmin(square)
  place_key, noise_key = jax.random.split(key, 2)
  place = jax.random.uniform(place_key, (2,), minval=-half + 1, maxval=half - 1)
  if len(homes) > 1:  # a base of the opponent's side
    bases = jnp.asarray(np.array(homes, np.float32))
    place = -bases[jax.random.randint(place_key, (), 0, len(homes))]
  guess = jnp.where(view.home_seen, view.side * place, -jnp.stack([home_x, home_y]))
  target = jnp.where(
    jnp.any(view.known), jnp.stack([view.known_x[nearest], view.known_y[nearest]]), guess)
  behind = -jnp.stack([home_x, home_y]) * (1 + HARASS_DISTANCE / abs(rules.tier.home[0]))
  target = jnp.where(script.harass & ~view.home_seen, behind, target)
  return target + view.side * script.noise * jax.random.uniform(
    noise_key, (2,), minval=-1.0, maxval=1.0)


def attacks(rules: tables.Rules, script: Parameters, view: View, waiting: Array,
            under_way: Array) -> Array:
  """Returns whether the army at home attacks: [] bool.

  It does with the plan's number of fighters, or to reinforce an attack. An army that cannot grow
  attacks with the plan's reinforcements, or with more than half of that number. Few large units may
  never reach it: they attack when no fighter is in production, and most of them are at home.

  Args:
    rules: the game's constants.
    script: the parameters of the plan that the player follows now.
    view: the game as the player knows it.
    waiting: [] int32, units of the army at home.
    under_way: [] int32, units of the army that attack.
  """
  enough = (waiting >= script.attack) | (
    (waiting >= script.reinforce) & (under_way >= script.reinforce))
  if rules.tier.minerals_only:
    return enough
  brood, army = rules.products.brood, scripts.army_types(rules)
  fighters = np.where(np.pad(army, (0, len(brood) - len(army))), brood, 0)
  room = rules.tier.units - jnp.sum(view.kind[rules.tier.structures:] > 0) - jnp.sum(
    look_up(brood, view.in_training))
  full = (room < FULL_SLOTS) | (
    (view.food_left < FULL_FOOD) & (view.food_most >= 2 * rules.tier.food_cap))
  complete = jnp.sum(look_up(fighters, view.in_training)) == 0
  half = waiting >= jnp.minimum(script.reinforce, script.attack // 2 + 1)
  most = complete & (waiting > under_way)
  return enough | (full & (half | most) & (script.attack < plans.NEVER))


def _fight(rules: tables.Rules, script: Parameters, key: jax.Array, view: View) -> list[Choice]:
  """Commands to defend, and to attack or reinforce an attack."""
  army = look_up(scripts.army_types(rules), view.kind[rules.tier.structures:])
  attacking = (view.verb == constants.ATTACK) | (view.verb == constants.ATTACK_UNIT)
  free = army & ~attacking
  slots = unit_slots(rules, first_slots(free, rules.max_selected))
  target = _attack_target(rules, script, key, view)
  return [
    defend(rules, view, free),
    make_choice(rules, attacks(rules, script, view, jnp.sum(free), jnp.sum(army & attacking)),
                "Attack_pt", slots, target[0], target[1])]


def _unit_abilities(rules: tables.Rules, view: View) -> list[tuple[str, Array]]:
  """Stim and siege mode: (function, units [M] bool that use it)."""
  s, local = rules.tier.structures, rules.types.local
  units, x, y = view.kind[s:], view.x[s:], view.y[s:]
  found = []
  if rules.has(constants.STIM):
    ready = (view.stimmed == 0) & (view.health[s:] > STIM_HEALTH) & _enemy_near(
      view, x, y, STIM_RANGE)
    users = np.array([name in constants.STIM_COST for name in rules.types.names])
    found.append(("Effect_Stim_quick", ready & look_up(users, units)))
  if rules.has(constants.SIEGE):
    ground = look_up(~rules.types.flying, view.enemy_kind)
    near = _enemy_near(view, x, y, SIEGE_RANGE, ground)
    far = ~_enemy_near(view, x, y, UNSIEGE_RANGE, ground)
    found += [("Morph_SiegeMode_quick", near & (units == local("SiegeTank"))),
              ("Morph_Unsiege_quick", far & (units == local("SiegeTankSieged")))]
  return found


def abilities(rules: tables.Rules, allowed: Array | np.ndarray | bool,
              view: View) -> dict[str, Choice]:
  """Returns commands to use abilities where they help, by function.

  They are stim, siege mode, larva injection, chrono boost and scan, as far as the tier has them.

  Args:
    rules: the game's constants.
    allowed: [] bool; without it, none is wanted.
    view: the game as the player knows it.
  """
  s, local, cost = rules.tier.structures, rules.types.local, constants.ENERGY_COST
  found = {
    function: make_choice(rules, allowed, function,
                          first_slots(unit_slots(rules, units), rules.max_selected))
    for function, units in _unit_abilities(rules, view)}

  def add(function: str, slots: Array, x: Array | float = 0.0, y: Array | float = 0.0,
          target: Array | int = 0) -> None:
    found[function] = make_choice(rules, allowed, function, first_slots(slots, 1), x, y, target)

  if rules.has(constants.INJECT):
    waiting = look_up(rules.types.larvae, view.standing) & (view.injected == 0)
    queens = unit_slots(rules, view.kind[s:] == local("Queen")) & (
      view.energy >= cost[constants.INJECT])
    add("Effect_InjectLarva_unit", queens & jnp.any(waiting), target=jnp.argmax(waiting))
  if rules.has(constants.BOOST):
    works = (view.queued > 0) & (view.boosted == 0) & (view.standing > 0)
    nexuses = structure_slots(rules, view.standing == local("Nexus")) & (
      view.energy >= cost[constants.BOOST])
    add("Effect_ChronoBoostEnergyCost_unit", nexuses & jnp.any(works),
        target=jnp.argmax(works * view.queued))
  if rules.has(constants.SCAN):
    orbitals = structure_slots(rules, view.standing == local("OrbitalCommand")) & (
      view.energy >= 2 * cost[constants.SCAN])
    add("Effect_Scan_pt", orbitals & ~view.home_seen, -view.side * rules.tier.home[0],
        -view.side * rules.tier.home[1])
  return found


def to_action(rules: tables.Rules, view: View, choice: Choice, delay: Array) -> types.Action:
  """Returns the action of a choice: its units are entity rows, the choice's are slots."""
  k, e, functions = rules.max_selected, rules.max_entities, rules.functions
  function = jnp.where(choice.wanted, choice.function, 0)
  picked = jnp.where(function > 0, choice.slots, False)
  order = jnp.cumsum(picked) - 1
  match = picked & (order == jnp.arange(k)[:, None])  # [K, n]
  rows = jnp.where(jnp.any(match, axis=1),
                   jnp.sum(match * view.row[:rules.tier.slots], axis=1), e)
  location = place_to_location(rules, choice.x, choice.y)
  takes_point = jnp.asarray(functions.takes_point)[function]
  takes_unit = jnp.asarray(functions.takes_unit)[function]
  dense = jnp.asarray(functions.index)[function]
  repeats = jnp.asarray(vocabulary.ARGUMENT_TABLE[functions.index, 3])[function]
  return types.Action(
    function=dense.astype(jnp.int16), delay=delay.astype(jnp.int16), queued=jnp.uint8(0),
    repeat=jnp.where(repeats, choice.repeat - 1, 0).astype(jnp.uint8),
    units=rows.astype(jnp.int16),
    target_unit=jnp.where(takes_unit, view.row[choice.target], 0).astype(jnp.int16),
    location=jnp.where(takes_point, location, 0).astype(jnp.int32))


def _possible_targets(rules: tables.Rules, view: View, function: Array) -> Array:
  """Targets that a function can have: [2 n + R] bool."""
  n = rules.tier.slots
  index = jnp.arange(view.present.shape[0])
  own, enemy, resource = index < n, (index >= n) & (index < 2 * n), index >= 2 * n
  verb = jnp.asarray(rules.functions.verb)[function]
  ability = jnp.asarray(rules.functions.ability)[function]
  helps = (verb == constants.REPAIR) | (ability == constants.INJECT) | (
    ability == constants.BOOST)
  on_geyser = (verb == constants.BUILD) & jnp.asarray(rules.functions.takes_unit)[function]
  geyser = resource & jnp.pad(is_geyser(rules), (2 * n, 0))
  return view.present & jnp.where(verb == constants.ATTACK_UNIT, enemy, jnp.where(
    verb == constants.GATHER, resource, jnp.where(
      on_geyser, geyser, jnp.where(helps, own, True))))


def _random_choice(rules: tables.Rules, key: jax.Array, view: View) -> Choice:
  """A random available function, executed by some slots that can, with a random target."""
  keys = jax.random.split(key, 6)
  functions, tier = rules.functions, rules.tier
  function = jax.random.categorical(keys[0], jnp.where(view.can, 0.0, -jnp.inf))
  kind = jnp.concatenate([view.standing, view.kind[tier.structures:]])
  # Unfinished structures can only be cancelled.
  cancels = jnp.asarray(functions.ability)[function] == constants.CANCEL
  kind = jnp.where(cancels & (jnp.arange(tier.slots) < tier.structures), view.kind, kind)
  capable = jnp.asarray(functions.capable)[function][kind]
  chosen = capable & jax.random.bernoulli(keys[1], 0.5, capable.shape)
  one = jnp.argmax(jnp.where(capable, jax.random.uniform(keys[2], capable.shape), -1.0))
  chosen |= capable & (jnp.arange(tier.slots) == one)
  targets = _possible_targets(rules, view, function)
  target = jnp.argmax(jnp.where(targets, jax.random.uniform(keys[3], targets.shape), -1.0))
  place = view.side * jax.random.uniform(keys[4], (2,), minval=-rules.half, maxval=rules.half)
  repeat = jax.random.randint(keys[5], (), 1, 4)
  return make_choice(rules, True, function, first_slots(chosen, rules.max_selected), place[0],
                     place[1], target, repeat)


def decide(rules: tables.Rules, name_index: Array, key: jax.Array, state: State,
           player: Array) -> types.Action:
  """Returns the action of a scripted player.

  Args:
    rules: the game's constants.
    name_index: [] int32, index of `scripts.names_of(tier)`.
    key: random key of its noise.
    state: the game; the player uses its view of it.
    player: [] int32, 0 or 1.
  """
  all_scripts = scripts.parameters(rules)
  own = jax.tree.map(lambda values: jnp.asarray(values)[name_index], all_scripts)
  view = make_view(rules, state, player, own.vision if all_scripts.vision.any() else False)
  adapts = all_scripts.answers.any()
  sight = answers.sight_of(rules, view) if adapts else jnp.int32(scripts.NOTHING)
  plan = own.follows[sight, view.race, view.away_race]
  script = demonstrators.variation(rules, own, plan, state.seed[player], view.race)
  keys = jax.random.split(key, 5)
  choices = _fight(rules, script, keys[0], view)
  if adapts:
    choices = answers.commands(rules, script, view, sight) + choices
  if all_scripts.abilities.any():
    choices += abilities(rules, script.abilities, view).values()
  choices += [
    spending.mine(rules, view), *spending.mine_gas(rules, view),
    spending.spend(rules, script, keys[1], view)]
  stacked = jax.tree.map(lambda *values: jnp.stack(values), *choices)
  # Without a row, a target cannot be named.
  takes_unit = jnp.asarray(rules.functions.takes_unit)[stacked.function]
  possible = stacked.wanted & view.can[stacked.function] & (
    ~takes_unit | view.present[stacked.target])
  chosen = jax.tree.map(lambda values: values[jnp.argmax(possible)], stacked)
  errs = jax.random.uniform(keys[4]) < script.mistakes
  chosen = chosen._replace(wanted=jnp.any(possible) & ~errs)
  random = _random_choice(rules, keys[2], view)
  chosen = jax.tree.map(lambda a, b: jnp.where(script.random, a, b), random, chosen)
  delay = jax.random.randint(keys[3], (), script.delays[0], script.delays[1] + 1)
  return to_action(rules, view, chosen, delay)


def make_scripted(tier: str = "mini", *, max_entities: int = 64, map_size: int = 32,
                  location_size: int = 32, max_selected: int = 8) -> ScriptedPlayer:
  """Makes the scripted players for an environment of the same arguments.

  Returns:
    (name_index, key, state, player) -> Action, unbatched; see `decide`.
  """
  rules = tables.make_rules(tier, max_entities, map_size, location_size, max_selected)
  return functools.partial(decide, rules)
