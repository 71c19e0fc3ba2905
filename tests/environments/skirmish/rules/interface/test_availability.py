"""Available functions of the default tier are exactly those that can have an effect."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import action_results, availability
from starleague.environments.skirmish.rules.interface.commands import give_orders
from starleague.environments.skirmish.rules.step import abilities, economy
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import (
  FUNCTION,
  GAMES,
  RACES,
  RULES,
  TIER,
  TYPES,
  UPGRADE,
  N,
  R,
  S,
  host,
  start,
)

FUNCTIONS, PRODUCTS = RULES.functions, RULES.products
ROWS = 64  # commands tried in one batch
REASONS = set(action_results.MESSAGES) - {action_results.ERROR, action_results.NOT_SUPPORTED}
GAS = TYPES.gas[np.where(FUNCTIONS.product < len(TYPES.names), FUNCTIONS.product, 0)]
SITES = [(x, y) for x in np.arange(-22, 23, 1.5) for y in np.arange(-22, 23, 1.5)]
SITES += [tuple(place) for place in TIER.homes[1:]]


@pytest.fixture(scope="module")
def effect():
  """(state [ROWS, ...], gated) -> whether the commands have an effect, [ROWS] bool.

  And their action results, [ROWS] int32.
  """
  def changes(state, gated):
    can = jnp.where(gated, availability.available(RULES, state), True)
    later, accepted = give_orders(RULES, state, can)
    later = abilities.use_abilities(RULES, later, accepted)
    later = economy.train(RULES, later, accepted.trainers, accepted.command.product)
    result = later.refused[0]
    later = later._replace(refused=state.refused)
    pairs = zip(jax.tree.leaves(later), jax.tree.leaves(state), strict=True)
    return jnp.any(jnp.stack([jnp.any(a != b) for a, b in pairs if a.size])), result

  return jax.jit(jax.vmap(changes, (0, None)))


@pytest.fixture(scope="module")
def can():
  return jax.jit(jax.vmap(lambda state: availability.available(RULES, state)))


def tried(effect, state, commands, gated):
  """Whether each of many commands has an effect in its own game.

  Checks that commands with an effect have no action result, and that other results are known.

  Args:
    effect: the fixture.
    state: [G, ...], numpy.
    commands: (game, function, slots, target kind, target, x, y) each, of player 0.
    gated: whether unavailable commands are ignored, as in a game.
  """
  found = []
  for first in range(0, len(commands), ROWS):
    part = commands[first:first + ROWS]
    rows = part + [part[-1]] * (ROWS - len(part))
    states = jax.tree.map(lambda values, rows=rows: values[[row[0] for row in rows]], state)
    noted = jax.tree.map(np.array, states.commands)
    for i, (_, function, slots, kind, target, x, y) in enumerate(rows):
      noted.function[i] = function, 0
      noted.selected[i] = False
      noted.selected[i, 0, slots] = True
      noted.target_kind[i, 0], noted.target[i, 0] = kind, target
      noted.x[i, 0], noted.y[i, 0] = x, y
    changed, results = (np.asarray(values)[:len(part)] for values in effect(
      states._replace(commands=noted), gated))
    assert not (changed & (results > 0)).any() and set(results.tolist()) <= {0, *REASONS}
    found += changed.tolist()
  return np.array(found)


def attempts(state, g, function, sparse=False, rng=None):
  """Commands of a function by all units, at all targets or many places."""
  present = np.flatnonzero(state.kind[g, 0])
  found = []
  if FUNCTIONS.takes_unit[function]:
    targets = [(constants.OWN, i) for i in present]
    targets += [(constants.ENEMY, i) for i in range(N)]
    targets += [(constants.RESOURCE, i) for i in range(R)]
    if sparse:
      targets = [targets[i] for i in rng.choice(len(targets), 3)] + [(constants.OWN, present[0])]
    found += [(g, function, present, kind, i, 0.0, 0.0) for kind, i in targets]
  elif FUNCTIONS.takes_point[function]:
    places = SITES
    if sparse or FUNCTIONS.kind[function] != constants.BUILDING:
      places = [(rng or np.random.default_rng(0)).uniform(-20, 20, 2) for _ in range(3)]
    # Geysers too, for structures that stand on them.
    places = [*places, *(tuple(state.side[g, 0] * np.array(p)) for p in TIER.patches[4::5])]
    found += [(g, function, present, 0, 0, x, y) for x, y in places]
  else:
    found.append((g, function, present, 0, 0, 0.0, 0.0))
  return found


def possible(effect, state, pairs, gated=True):
  """Whether some command of each (game, function) has an effect."""
  result = np.zeros(len(pairs), bool)
  commands, owner = [], []
  for i, (g, function) in enumerate(pairs):
    ways = attempts(state, g, function)
    commands += ways
    owner += [i] * len(ways)
  np.logical_or.at(result, owner, tried(effect, state, commands, gated))
  return result


def everything(default_game):
  """Games for each race in which all of its functions can be used.

  Each structure, a second town hall under construction, and each unit, damaged, with energy and an
  enemy in sight; money, and Stimpack.
  """
  pairs = [(race, RACES[(i + 1) % 3], 0) for i, race in enumerate(RACES)]
  match_ups = pairs * 9
  state = jax.tree.map(np.array, host(start(default_game, match_ups=match_ups)))
  state.minerals[:], state.vespene[:] = 2000, 2000
  state.kind[:, 0] = 0
  for g in range(GAMES):
    race = state.race[g, 0]
    own = [i for i in range(1, len(TYPES.names)) if TYPES.race[i] == race]
    plain = [i for i in own if TYPES.structure[i] and not TYPES.fighter[i]]
    armed = [i for i in own if TYPES.structure[i] and TYPES.fighter[i]]
    units = [i for i in own if not TYPES.structure[i]]
    hall = next(i for i in plain if TYPES.townhall[i])
    feeds = [i for i in plain if TYPES.gives_food[i] and not TYPES.townhall[i]] * 2
    producer = next(i for i in plain if i in PRODUCTS.producer[1:len(TYPES.names)] and i != hall) \
      if race != constants.RACES.index("Zerg") else hall
    slots = {**dict(enumerate(plain + [hall, producer] + feeds)),
             **{TIER.unarmed + i: kind for i, kind in enumerate(armed)},
             **{S + i: kind for i, kind in enumerate(units)}}
    for i, kind in slots.items():
      state.kind[g, 0, i] = kind
      state.x[g, 0, i], state.y[g, 0, i] = -23.0 + 3 * (i % 12), -22.0 + 0.1 * i
      state.health[g, 0, i] = TYPES.health[kind] - 5
      state.energy[g, 0, i] = min(TYPES.energy[kind], 150)
    second = len(plain)
    state.unfinished[g, 0, second] = 500
    # A product to cancel, in a queue that no structure needs to morph.
    state.queue[g, 0, second + 1, 0] = np.flatnonzero(
      (PRODUCTS.producer == producer) & (PRODUCTS.brood > 0))[0]
    state.timers[g, 0, second + 1, 0] = 100
    if race == constants.RACES.index("Zerg"):
      state.larvae[g, 0, 0] = 3
      overlord = next(i for i in units if TYPES.gives_food[i])
      for i in range(3):
        state.kind[g, 0, S + len(units) + i] = overlord
        state.health[g, 0, S + len(units) + i] = 200
    state.memory.seen[g, 0] = state.kind[g, 1] > 0
  state.orders.verb[:] = constants.IDLE
  state.cargo[:, 0] = 5 * TYPES.worker[state.kind[:, 0, S:]]
  state.upgrades[:, 0, UPGRADE["Stimpack"]] = state.race[:, 0] == 0
  return state


@pytest.mark.slow
def test_every_function_is_available_somewhere_and_has_an_effect(
    default_game, effect, can):
  state = everything(default_game)
  allowed = np.asarray(can(state))[:3, 0]
  missing = [name for name, c in FUNCTION.items() if not allowed[:, c].any()]
  # Stimpack is researched here, because stims need it; its research is tried below.
  assert missing == ["Research_Stimpack_quick"]
  pairs = [(g, c) for g in range(3) for c in range(1, len(FUNCTION)) if allowed[g, c]]
  works = possible(effect, state, pairs)
  assert works.all(), [(g, FUNCTIONS.names[c]) for (g, c), w in zip(pairs, works, strict=True)
                       if not w]
  state.upgrades[:] = False
  stimpack = FUNCTION["Research_Stimpack_quick"]
  assert np.asarray(can(state))[0, 0, stimpack]
  assert possible(effect, state, [(0, stimpack)]).all()


@pytest.mark.slow
def test_available_functions_have_an_effect_in_rich_games(default_record, effect, can):
  """Except buildings on the ground, for which no tried place may be free."""
  checked = 0
  for i, state in enumerate(default_record.states[4::5]):
    allowed = np.asarray(can(state))[:, 0]
    going = np.flatnonzero(state.winner < 0)[i % 2::2]
    pairs = [(g, c) for g in going for c in range(1, len(FUNCTION))
             if allowed[g, c] and (FUNCTIONS.kind[c] != constants.BUILDING or GAS[c])]
    works = possible(effect, state, pairs)
    assert works.all(), [(g, FUNCTIONS.names[c]) for (g, c), w in zip(pairs, works, strict=True)
                         if not w]
    checked += len(pairs)
  assert checked > 300


@pytest.mark.slow
def test_gas_structures_are_available_exactly_if_a_geyser_is_free(default_record, effect, can):
  """In late games with most geysers remembered as empty."""
  rng, found = np.random.default_rng(3), []
  for state in default_record.states[9::5]:
    state = jax.tree.map(np.array, state)
    state.minerals[:] = 1000
    state.memory.patches[:, 0] *= ~np.array(TIER.geysers * 2) | (rng.random((GAMES, R)) < 0.25)
    allowed = np.asarray(can(state))[:, 0]
    free = np.where(state.orders.verb == constants.CONSTRUCT, 0, state.kind[:, :, S:])[:, 0]
    pairs = [(g, c) for g in np.flatnonzero(state.winner < 0) for c in np.flatnonzero(GAS)
             if FUNCTIONS.capable[c][free[g]].any()
             and (state.kind[g, 0, :TIER.unarmed] == 0).any()]
    works = possible(effect, state, pairs, gated=False)
    found += works.tolist()
    wrong = [pair for pair, work in zip(pairs, works, strict=True) if allowed[pair] != work]
    assert not wrong
  assert np.sum(found) > 10 and np.sum(~np.array(found)) > 5


@pytest.mark.slow
def test_unavailable_functions_have_no_effect_without_the_gate(default_record, effect, can):
  """With any selection and target.

  Two rules are checked by the gate only: the technology of units, and that builders who cannot pay
  yet do not set out.
  """
  checked, rng = 0, np.random.default_rng(0)
  for state in default_record.states[3::5]:
    allowed = np.asarray(can(state))[:, 0]
    free = np.where(state.orders.verb == constants.CONSTRUCT, 0, state.kind[:, :, S:])[:, 0]
    commands = []
    for g in np.flatnonzero(state.winner < 0):
      standing = np.where(state.unfinished[g, 0] > 0, 0, state.kind[g, 0, :S])
      stands = {0, *standing.tolist(), *TYPES.counts_as[standing].tolist()}
      for c in range(1, len(FUNCTION)):
        product = FUNCTIONS.product[c]
        levels = PRODUCTS.function[len(TYPES.names):] == c
        if levels.any():  # the next level, which may require more than the first
          product += min(np.sum(state.upgrades[g, 0] & levels), np.sum(levels) - 1)
        elif FUNCTIONS.levels[c] > 1:
          product = 0
        if PRODUCTS.requirement[product] not in stands:
          continue
        builds = FUNCTIONS.kind[c] == constants.BUILDING and FUNCTIONS.capable[c][free[g]].any()
        if not allowed[g, c] and not builds:
          commands += attempts(state, g, c, sparse=True, rng=rng)
    changed = tried(effect, state, commands, False)
    wrong = {FUNCTIONS.names[command[1]] for command, did in zip(commands, changed, strict=True)
             if did}
    assert not wrong, wrong
    checked += len(commands)
  assert checked > 3000


@pytest.mark.slow
def test_the_gate_stops_all_unavailable_functions(default_record, effect, can):
  rng, state = np.random.default_rng(1), default_record.states[8]
  allowed = np.asarray(can(state))[:, 0]
  going = np.flatnonzero(state.winner < 0)
  commands = [attempts(state, g, c, sparse=True, rng=rng)[0] for g in going
              for c in range(1, len(FUNCTION)) if not allowed[g, c]]
  assert len(commands) > 1000
  assert not tried(effect, state, commands, True).any()
  # Without it, some have an effect: missing technology, buildings that cannot be paid.
  assert tried(effect, state, commands, False).any()


def test_functions_are_available_exactly_if_they_have_an_effect(game):
  """Each case: a function, and a state in which it is impossible."""
  first = mini.host(mini.start(game))

  def edit(state, **changes):
    """The state with new values of fields, each at an index of both players' arrays."""
    for name, (index, value) in changes.items():
      values = np.array(getattr(state, name))
      values[(slice(None), slice(None), *index)] = value
      state = state._replace(**{name: values})
    return state

  side = first.side[:, :, None]
  two = (slice(1, 3),)
  everything = edit(
    first, minerals=((), 1000), kind=(two, [mini.BARRACKS, mini.FACTORY]), health=(two, 500.0),
    x=(two, side * [-1.5, -6.0]), y=(two, side * [-7.5, -1.0]))

  def without(gone):
    return everything._replace(kind=np.where(everything.kind == gone, 0, everything.kind))

  def poor(cost):
    return edit(everything, minerals=((), cost - 1))

  full = edit(everything, queue=((), 1))
  young = edit(everything, unfinished=((1,), 8))
  crowded = edit(everything, kind=((slice(3, mini.S),), mini.HALL))
  site = {"rows": range(8), "x": 1.0, "y": -3.0}
  cases = [
    ("Train_SCV_quick", poor(50)), ("Train_SCV_quick", full), ("Train_Marine_quick", poor(50)),
    ("Train_Marine_quick", young), ("Train_Marauder_quick", poor(125)),
    ("Train_Marauder_quick", without(mini.BARRACKS)), ("Train_Hellion_quick", poor(100)),
    ("Train_Hellion_quick", without(mini.FACTORY)), ("Build_Barracks_pt", poor(150)),
    ("Build_Barracks_pt", crowded), ("Build_Factory_pt", poor(250)),
    ("Build_Factory_pt", young), ("Build_CommandCenter_pt", poor(400)),
    ("Build_CommandCenter_pt", without(mini.SCV)), ("Move_pt", without(mini.SCV)),
    ("HoldPosition_quick", without(mini.SCV))]
  assert len(cases) == mini.GAMES

  def effect(state, chosen):
    """Whether a step differs from one without an order."""
    done = mini.host(game.advance(game.act(state, chosen, game.due(state))))
    idle = mini.host(game.advance(game.act(state, mini.actions({}), game.due(state))))
    changed = np.zeros(mini.GAMES, bool)
    for name in ("orders", "queue", "timers", "minerals", "rally"):
      for a, b in zip(jax.tree.leaves(getattr(done, name)), jax.tree.leaves(getattr(idle, name)),
                      strict=True):
        changed |= (a != b).reshape(mini.GAMES, -1).any(axis=1)
    return changed

  chosen = mini.actions({(g, 0): mini.action(name, **site) for g, (name, _) in enumerate(cases)})
  can = np.asarray(game.observe(everything)[0].available_actions)[:, 0]
  index = [mini.FUNCTION(name) for name, _ in cases]
  assert can[np.arange(mini.GAMES), index].all()
  assert effect(everything, chosen).all()
  broken = jax.tree.map(lambda *leaves: np.stack([x[g] for g, x in enumerate(leaves)]),
                        *[state for _, state in cases])
  can = np.asarray(game.observe(broken)[0].available_actions)[:, 0]
  assert not can[np.arange(mini.GAMES), index].any()
  assert not effect(broken, chosen).any()
