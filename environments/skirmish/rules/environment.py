"""Skirmish as an Environment: reset, observe, act, advance, due, outcome."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from starleague.agent import build_order, types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish.rules import (
  abilities,
  action_results,
  availability,
  combat,
  constants,
  construction,
  economy,
  initial_state,
  mining,
  observation,
  orders,
  perception,
  slots,
  tables,
)
from starleague.environments.skirmish.rules.arrays import flip, look_up, segment_sum, to_dense
from starleague.environments.skirmish.rules.queries import finished_kind, present_types
from starleague.environments.skirmish.rules.state import Array, Commands, State, no_commands

DRAW = 2


def reset(rules: tables.Rules, key: Array, match_up: base.MatchUp) -> State:
  """The first state of a game."""
  state = perception.perceive(rules, initial_state.initial_state(rules, key, match_up))
  # No weak types: a state from the host would otherwise be another one to the compiler.
  return jax.tree.map(lambda x: lax.convert_element_type(x, x.dtype), state)


def due(state: State) -> Array:
  """[2] bool: whose delay is over."""
  return (state.loop >= state.next_loop) & (state.winner < 0)


def outcome(state: State) -> base.Outcome:
  """Whether the game is over, and for whom it went well."""
  won = (state.winner == jnp.arange(2)).astype(jnp.float32)
  return base.Outcome(over=state.winner >= 0, reward=won - flip(won))


def location_to_place(rules: tables.Rules, location: Array) -> tuple[Array, Array]:
  """The middle of a cell of the L x L grid: x, y, map units from the map's middle."""
  size = rules.location_size
  cell = rules.tier.map_size / size

  def middle(index):
    return (index.astype(jnp.float32) - (size - 1) / 2) * cell

  return middle(location % size), middle(location // size)


def place_to_location(rules: tables.Rules, x: Array, y: Array) -> Array:
  """The cell of the L x L grid that a place lies in, clipped to the map."""
  size = rules.location_size

  def index(value):
    cell = jnp.floor((value + rules.half) * (size / rules.tier.map_size))
    return jnp.clip(cell, 0, size - 1).astype(jnp.int32)

  return index(y) * size + index(x)


def act(rules: tables.Rules, state: State, actions: types.Action, acts: Array) -> State:
  """Notes the actions of the players who act; they take effect when time goes on.

  Args:
    rules: the game's constants.
    state: the game, whose observation the actions' rows are of.
    actions: [2, ...]; those of a player who does not act are ignored.
    acts: [2] bool.
  """
  tier, sight = rules.tier, observation.entity_rows(rules, state)
  n = tier.slots
  function = jnp.asarray(rules.functions.local)[actions.function.astype(jnp.int32)]
  picked = actions.units.astype(jnp.int32)[:, :, None] == sight.row[:, None]
  picked = jnp.any(picked, axis=1) & sight.present  # [2, 2 n + R]
  selected = picked[:, :n]
  target = sight.present & (sight.row == actions.target_unit.astype(jnp.int32)[:, None])
  uses_target = look_up(rules.functions.takes_unit, function) > 0
  slot = jnp.argmax(target, axis=1)
  some = jnp.any(target, axis=1)
  kind = jnp.where(slot < n, constants.OWN, jnp.where(slot < 2 * n, constants.ENEMY, constants.RESOURCE))
  base_slot = jnp.where(slot < n, 0, jnp.where(slot < 2 * n, n, 2 * n))
  # A target that is no row makes the command one that cannot be carried out.
  known, dense = function, actions.function.astype(jnp.int32)
  function = jnp.where(uses_target & ~some, 0, function)
  x, y = location_to_place(rules, actions.location.astype(jnp.int32))
  uses = jnp.asarray(vocabulary.ARGUMENT_TABLE)[dense].astype(jnp.int32)  # [2, 7]
  new = Commands(
    function=function, selected=selected, x=x, y=y,
    target_kind=jnp.where(uses_target, kind, constants.NO_TARGET), target=slot - base_slot,
    queued=actions.queued > 0, repeat=jnp.clip(actions.repeat.astype(jnp.int32) + 1, 1, 3))
  # Only commands to units renew what was selected and targeted.
  commanded = acts & (uses[:, 4] > 0)

  def choose(mask, new_value, old_value):
    return jnp.where(mask.reshape(2, *[1] * (new_value.ndim - 1)), new_value, old_value)

  # Of what becomes a command, `orders.give_orders` says later whether it did something.
  refused = action_results.first_failure([
    ((dense == 0) | (known > 0), action_results.NOT_SUPPORTED),
    (~uses_target | some, action_results.CANT_TARGET_THAT_UNIT)])
  wait = jnp.maximum(actions.delay.astype(jnp.int32), 1)
  step = constants.LOOPS_PER_STEP
  wake = -(-(state.loop + wait) // step) * step
  return state._replace(
    commands=jax.tree.map(functools.partial(choose, acts), new, state.commands),
    next_loop=jnp.where(acts, wake, state.next_loop),
    last_loop=jnp.where(acts, state.loop, state.last_loop),
    last_function=jnp.where(acts, dense, state.last_function),
    last_queued=jnp.where(acts, actions.queued.astype(jnp.int32) * uses[:, 2], state.last_queued),
    last_repeat=jnp.where(acts, actions.repeat.astype(jnp.int32) * uses[:, 3], state.last_repeat),
    refused=jnp.where(acts, refused, state.refused),
    was_selected=choose(commanded, selected, state.was_selected),
    was_targeted=choose(commanded, target & uses_target[:, None], state.was_targeted))


def _record(rules: tables.Rules, state: State, births: list[slots.Spawns]) -> State:
  """Notes what appeared, in the executed statistics and in the score."""
  types_, executed, score = rules.types, state.executed, state.score
  kind, x, y = (jnp.concatenate(parts, axis=1) for parts in zip(*births, strict=True))
  scale = types.POSITION_GRID / rules.tier.map_size
  counted = (kind > 0) & look_up(build_order.IN_BUILD_ORDER[types_.index], kind)
  length = jnp.sum(executed.build_order > 0, axis=1, keepdims=True)
  place = jnp.where(counted, length + jnp.cumsum(counted, axis=1) - 1, -1)

  def put(values):
    return segment_sum(place, values, types.BUILD_ORDER_LENGTH).astype(jnp.uint8)

  def grid(values):
    cell = jnp.floor(scale * (values + rules.half))
    return put(jnp.clip(cell, 0, types.POSITION_GRID - 1).astype(jnp.int32))

  cost = look_up(types_.value, kind)
  structure = look_up(types_.structure, kind)
  if rules.tier.stalemate_loops:  # what is made is an event
    state = state._replace(last_event=jnp.where(jnp.any(kind > 0), state.loop, state.last_event))
  return state._replace(
    executed=executed._replace(
      build_order=executed.build_order + put(look_up(types_.index, kind)),
      build_order_xy=executed.build_order_xy + jnp.stack([grid(x), grid(y)], axis=-1),
      units=executed.units | to_dense(
        types_.index, present_types(rules, kind), vocabulary.NUM_UNIT_TYPES)),
    score=score._replace(
      units=score.units + jnp.sum(jnp.where(structure, 0, cost), axis=1),
      structures=score.structures + jnp.sum(jnp.where(structure, cost, 0), axis=1)))


def _idle_time(rules: tables.Rules, state: State) -> State:
  """Counts the loops that workers and production buildings do nothing."""
  score, s = state.score, rules.tier.structures
  worker = look_up(rules.types.worker, state.kind[:, s:])
  resting = jnp.sum(worker & (state.orders.verb == constants.IDLE), axis=1)
  standing = finished_kind(rules, state)
  produces = rules.functions.capable[rules.functions.kind == constants.TRAINING].any(axis=0)
  unused = jnp.sum(look_up(produces, standing) & (state.queue[:, :, 0] == 0), axis=1)
  return state._replace(score=score._replace(
    idle_workers=score.idle_workers + resting * constants.LOOPS_PER_STEP,
    idle_production=score.idle_production + unused * constants.LOOPS_PER_STEP))


def _winner(rules: tables.Rules, state: State) -> Array:
  """0 or 1, DRAW, or -1: whoever has no structure left has lost."""
  lost = jnp.all(state.kind[:, :rules.tier.structures] == 0, axis=1)
  late = state.loop >= rules.tier.loop_limit
  if rules.tier.stalemate_loops:
    late |= state.loop - state.last_event >= rules.tier.stalemate_loops
  winner = jnp.where(lost[0], 1, jnp.where(lost[1], 0, jnp.where(late, DRAW, -1)))
  return jnp.where(lost[0] & lost[1], DRAW, winner).astype(jnp.int32)


def step(rules: tables.Rules, state: State) -> State:
  """One step of a game that is not over."""
  can = availability.available(rules, state)
  state, given = orders.give_orders(rules, state, can)
  state = abilities.use_abilities(rules, state, given)
  state = economy.train(rules, state, given.trainers, given.product)
  state, units = economy.finish_production(rules, state)
  state = economy.grow_larvae(rules, state)
  state = mining.mine(rules, state)
  state, structures = construction.construct(rules, state)
  state = _record(rules, state, [structures, units])
  state = state._replace(hurt=jnp.zeros_like(state.hurt), commands=no_commands(rules))
  fight = combat.prepare(rules, state)
  for _ in range(constants.TICKS_PER_STEP):
    state = combat.tick(rules, state, fight)
  state = abilities.recover(rules, state)
  state = combat.remove_dead(rules, state)
  state = combat.separate_units(rules, state)
  state = state._replace(loop=state.loop + constants.LOOPS_PER_STEP)
  state = perception.perceive(rules, state)
  state = combat.complete_orders(rules, state, fight)
  state = _idle_time(rules, state)
  return state._replace(winner=_winner(rules, state))


def advance(rules: tables.Rules, state: State) -> State:
  """One step of 8 game loops; a game that is over stays as it is."""
  going = state.winner < 0
  return jax.tree.map(lambda new, old: jnp.where(going, new, old), step(rules, state), state)


def make_skirmish(tier: str = "mini", *, max_entities: int = 64, map_size: int = 32,
                  location_size: int = 32, max_selected: int = 8) -> base.Environment:
  """The embedded RTS.

  Args:
    tier: a name of `tiers.TIERS`.
    max_entities: E, rows of an observation.
    map_size: H = W of its planes.
    location_size: L, rows and columns of the grid of an action's location.
    max_selected: K, picks of an action.

  Returns:
    An Environment of pure functions of one game, to be vmapped.

  Raises:
    ValueError: an unknown tier, or sizes too small for it.
  """
  rules = tables.make_rules(tier, max_entities, map_size, location_size, max_selected)
  bind = functools.partial
  return base.Environment(
    reset=bind(reset, rules), observe=bind(observation.observe, rules), act=bind(act, rules),
    advance=bind(advance, rules), due=due, outcome=outcome)
