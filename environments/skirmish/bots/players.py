"""Scripted players: opponents of known manners, and the teachers of the first demonstrations.

A player is one of `scripts.scripts_of(tier)`. At each decision it lists what it might do, in the
order of how pressing it is, and does the first that is possible: it defends, attacks, uses what its
units can do, mines with idle workers, then spends. It knows what its observation shows and no more
(but for those that are said to cheat), and acts through the same actions as an agent.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.bots import demonstrators, scripts, spending
from starleague.environments.skirmish.bots.scripts import Parameters
from starleague.environments.skirmish.bots.views import Choice, View, choose, first, view
from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.environment import place_to_location
from starleague.environments.skirmish.rules.queries import is_geyser
from starleague.environments.skirmish.rules.state import Array, State

HOME_RADIUS = 9.0  # an enemy this near to an own structure is a threat
SIEGE_RANGE, SIEGE_GIVES_UP = 12.0, 15.0  # an enemy this near, none this near
IN_COMBAT = 7.0  # an enemy this near: time for a dose


def _near_enemy(see: View, x: Array, y: Array, radius: float, chosen: Array | None = None) -> Array:
  """Whether an enemy in sight (or one of those chosen) is near each place: [m] bool."""
  enemy = see.enemy if chosen is None else see.enemy & chosen
  square = (see.enemy_x[:, None] - x) ** 2 + (see.enemy_y[:, None] - y) ** 2
  return jnp.any(enemy[:, None] & (square < radius ** 2), axis=0)


def _fight(rules: tables.Rules, script: Parameters, key: Array, see: View) -> list[Choice]:
  """Defence, then attack, then more for the attack."""
  s, k = rules.tier.structures, rules.max_selected
  units = see.kind[s:]
  army = look_up(scripts.army_types(rules), units)
  busy = (see.verb == constants.ATTACK) | (see.verb == constants.ATTACK_UNIT)
  own = see.kind[:s] > 0
  near = ((see.enemy_x[:, None] - see.x[:s]) ** 2 + (see.enemy_y[:, None] - see.y[:s]) ** 2
          < HOME_RADIUS ** 2) & own & see.enemy[:, None]
  threat = jnp.any(near, axis=1)
  if rules.has_flyers:  # whoever only looks is no threat
    threat &= look_up(rules.types.fighter | rules.types.worker, see.enemy_kind)
  weight = threat / jnp.maximum(jnp.sum(threat), 1)
  threat_x = jnp.sum(weight * see.enemy_x)
  threat_y = jnp.sum(weight * see.enemy_y)
  free = army & ~busy
  none = jnp.zeros(s, bool)

  def slots(chosen):
    return jnp.concatenate([none, first(chosen, k)])

  # The nearest structure that is known of, else the enemy's home, else anywhere.
  home_x, home_y = (see.side * place for place in rules.tier.home)
  apart = jnp.where(see.known, (see.known_x - home_x) ** 2 + (see.known_y - home_y) ** 2, jnp.inf)
  nearest = jnp.argmin(apart)
  keys = jax.random.split(key, 2)
  anywhere = jax.random.uniform(keys[0], (2,), minval=-rules.half + 1, maxval=rules.half - 1)
  if len(rules.tier.homes) > 1:  # one of the places where there may be a base
    bases = jnp.asarray(np.array(rules.tier.homes, np.float32))
    anywhere = -bases[jax.random.randint(keys[0], (), 0, len(rules.tier.homes))]
  guess = jnp.where(see.home_seen, see.side * anywhere, -jnp.stack([home_x, home_y]))
  aim = jnp.where(jnp.any(see.known), jnp.stack([see.known_x[nearest], see.known_y[nearest]]),
                  guess)
  # Behind the enemy's home its workers mine.
  behind = -jnp.stack([home_x, home_y]) * (1 + 4.0 / abs(rules.tier.home[0]))
  aim = jnp.where(script.harass & ~see.home_seen, behind, aim)
  aim = aim + see.side * script.noise * jax.random.uniform(keys[1], (2,), minval=-1.0, maxval=1.0)
  waiting, under_way = jnp.sum(free), jnp.sum(army & busy)
  goes = (waiting >= script.attack) | (
    (waiting >= script.reinforce) & (under_way >= script.reinforce))
  # At the most food that there is, waiting longer gains nothing.
  if not rules.tier.minerals_only:
    full = (see.food_left < 4) & (see.food_most >= 2 * rules.tier.food_cap)
    goes |= full & (waiting >= jnp.minimum(script.reinforce, script.attack // 2 + 1)) & (
      script.attack < scripts.NEVER)
  return [
    choose(rules, jnp.any(threat), "Attack_pt", slots(free), threat_x, threat_y),
    choose(rules, goes, "Attack_pt", slots(free), aim[0], aim[1])]


def _abilities(rules: tables.Rules, script: Parameters, see: View) -> list[Choice]:
  """Doses, sieges, larvae, boosts and scans, of whoever knows how."""
  s, k = rules.tier.structures, rules.max_selected
  local = rules.types.local
  units, x, y = see.kind[s:], see.x[s:], see.y[s:]
  none = jnp.zeros(s, bool)
  found = []

  def add(function, chosen, x=0.0, y=0.0, target=0, most=k):
    found.append(choose(rules, script.abilities, function, first(chosen, most), x, y, target))

  if rules.has(constants.STIM):
    fresh = (see.stimmed == 0) & (see.health[s:] > 25.0) & _near_enemy(see, x, y, IN_COMBAT)
    takes = look_up(np.array([name in constants.STIM_COST for name in rules.types.names]), units)
    add("Effect_Stim_quick", jnp.concatenate([none, fresh & takes]))
  if rules.has(constants.SIEGE):
    ground = look_up(~rules.types.flying, see.enemy_kind)
    near = _near_enemy(see, x, y, SIEGE_RANGE, ground)
    far = ~_near_enemy(see, x, y, SIEGE_GIVES_UP, ground)
    add("Morph_SiegeMode_quick",
        jnp.concatenate([none, near & (units == local("SiegeTank"))]))
    add("Morph_Unsiege_quick",
        jnp.concatenate([none, far & (units == local("SiegeTankSieged"))]))
  if rules.has(constants.INJECT):
    waits = look_up(rules.types.larvae, see.standing) & (see.injected == 0)
    queens = jnp.concatenate([none, units == local("Queen")]) & (
      see.energy >= constants.ENERGY_COST[constants.INJECT])
    add("Effect_InjectLarva_unit", queens & jnp.any(waits), target=jnp.argmax(waits), most=1)
  if rules.has(constants.BOOST):
    works = (see.queued > 0) & (see.boosted == 0) & (see.standing > 0)
    halls = jnp.pad(see.standing == local("Nexus"), (0, rules.tier.units)) & (
      see.energy >= constants.ENERGY_COST[constants.BOOST])
    add("Effect_ChronoBoostEnergyCost_unit", halls & jnp.any(works), target=jnp.argmax(
      works * see.queued), most=1)
  if rules.has(constants.SCAN):
    orbital = jnp.pad(see.standing == local("OrbitalCommand"), (0, rules.tier.units)) & (
      see.energy >= 2 * constants.ENERGY_COST[constants.SCAN])
    add("Effect_Scan_pt", orbital & ~see.home_seen, -see.side * rules.tier.home[0],
        -see.side * rules.tier.home[1], most=1)
  return found


def _write(rules: tables.Rules, see: View, choice: Choice, delay: Array) -> types.Action:
  """A choice as an action, its slots as rows."""
  k, e = rules.max_selected, rules.max_entities
  functions = rules.functions
  function = jnp.where(choice.wanted, choice.function, 0)
  picked = jnp.where(function > 0, choice.slots, False)
  order = jnp.cumsum(picked) - 1
  match = picked & (order == jnp.arange(k)[:, None])  # [K, n]
  rows = jnp.where(jnp.any(match, axis=1),
                   jnp.sum(match * see.row[:rules.tier.slots], axis=1), e)
  location = place_to_location(rules, choice.x, choice.y)
  point = jnp.asarray(functions.takes_point)[function]
  unit = jnp.asarray(functions.takes_unit)[function]
  dense = jnp.asarray(functions.index)[function]
  repeats = jnp.asarray(vocabulary.ARGUMENT_TABLE[functions.index, 3])[function]
  return types.Action(
    function=dense.astype(jnp.int16), delay=delay.astype(jnp.int16), queued=jnp.uint8(0),
    repeat=jnp.where(repeats, choice.repeat - 1, 0).astype(jnp.uint8),
    units=rows.astype(jnp.int16),
    target_unit=jnp.where(unit, see.row[choice.target], 0).astype(jnp.int16),
    location=jnp.where(point, location, 0).astype(jnp.int32))


def _random(rules: tables.Rules, key: Array, see: View) -> Choice:
  """Any function that can do something, by some that can do it, at any target."""
  keys = jax.random.split(key, 6)
  functions, tier = rules.functions, rules.tier
  function = jax.random.categorical(keys[0], jnp.where(see.can, 0.0, -jnp.inf))
  kind = jnp.concatenate([see.standing, see.kind[tier.structures:]])
  # What is unfinished can do one thing: be cancelled.
  cancels = jnp.asarray(functions.ability)[function] == constants.CANCEL
  kind = jnp.where(cancels & (jnp.arange(tier.slots) < tier.structures), see.kind, kind)
  capable = jnp.asarray(functions.capable)[function][kind]
  wanted = capable & jax.random.bernoulli(keys[1], 0.5, capable.shape)
  one = jnp.argmax(jnp.where(capable, jax.random.uniform(keys[2], capable.shape), -1.0))
  wanted |= capable & (jnp.arange(tier.slots) == one)
  candidates = see.present
  places = jnp.arange(candidates.shape[0])
  enemy = (places >= tier.slots) & (places < 2 * tier.slots)
  verb = jnp.asarray(functions.verb)[function]
  ability = jnp.asarray(functions.ability)[function]
  patch = places >= 2 * tier.slots
  own = (verb == constants.REPAIR) | (ability == constants.INJECT) | (ability == constants.BOOST)
  on_geyser = (verb == constants.BUILD) & jnp.asarray(functions.takes_unit)[function]
  geyser = patch & jnp.pad(is_geyser(rules), (2 * tier.slots, 0))
  candidates &= jnp.where(verb == constants.ATTACK_UNIT, enemy, jnp.where(
    verb == constants.GATHER, patch, jnp.where(
      on_geyser, geyser, jnp.where(own, places < tier.slots, True))))
  target = jnp.argmax(jnp.where(candidates, jax.random.uniform(keys[3], candidates.shape), -1.0))
  place = see.side * jax.random.uniform(keys[4], (2,), minval=-rules.half, maxval=rules.half)
  repeat = jax.random.randint(keys[5], (), 1, 4)
  return choose(rules, True, function, first(wanted, rules.max_selected), place[0], place[1],
                 target, repeat)


def decide(rules: tables.Rules, name_index: Array, key: Array, state: State,
           player: Array) -> types.Action:
  """The action of a scripted player.

  Args:
    rules: the game's constants.
    name_index: [] int32, an index of `scripts.names_of(tier)`.
    key: what its noise is drawn from.
    state: the game; only what the player may know of it is used.
    player: [] int32, 0 or 1.
  """
  every = scripts.parameters(rules)
  own = jax.tree.map(lambda values: jnp.asarray(values)[name_index], every)
  see = view(rules, state, player, own.vision if every.vision.any() else False)
  script = demonstrators.variation(rules, own, name_index, state.seed[player], see.race)
  keys = jax.random.split(key, 5)
  choices = _fight(rules, script, keys[0], see)
  if every.abilities.any():
    choices += _abilities(rules, script, see)
  choices += [
    spending.mine(rules, see), *spending.mine_gas(rules, see),
    spending.spend(rules, script, keys[1], see)]
  stacked = jax.tree.map(lambda *values: jnp.stack(values), *choices)
  possible = stacked.wanted & see.can[stacked.function]
  chosen = jax.tree.map(lambda values: values[jnp.argmax(possible)], stacked)
  errs = jax.random.uniform(keys[4]) < script.mistakes
  chosen = chosen._replace(wanted=jnp.any(possible) & ~errs)
  wild = _random(rules, keys[2], see)
  chosen = jax.tree.map(lambda a, b: jnp.where(script.random, a, b), wild, chosen)
  delay = jax.random.randint(keys[3], (), script.delays[0], script.delays[1] + 1)
  return _write(rules, see, chosen, delay)


def make_scripted(tier: str = "mini", *, max_entities: int = 64, map_size: int = 32,
                  location_size: int = 32, max_selected: int = 8):
  """The scripted players for an environment of the same arguments.

  Returns:
    (name_index, key, state, player) -> Action, unbatched; see `decide`.
  """
  rules = tables.make_rules(tier, max_entities, map_size, location_size, max_selected)
  return functools.partial(decide, rules)
