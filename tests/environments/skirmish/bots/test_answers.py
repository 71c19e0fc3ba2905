"""Scripted players that change their plan: what they see, follow, and do about it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import answers, scripts, views
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish.default_games import GAMES, LOCAL, NAMES, RACES, RULES, TIER, S
from tests.environments.skirmish.states import first, on_device

EVERY = scripts.parameters(RULES)
TERRAN, PROTOSS, ZERG = range(3)
STEPS = 1500  # 12,000 game loops: the longest games


def script_of(name, race):
  """A player's parameters for one race; those of its skill are for all races."""
  index = NAMES.index(name)
  return jax.tree.map(jnp.asarray, scripts.Parameters(*(
    values[index, race] if i <= EVERY._fields.index("greedy") else values[index]
    for i, values in enumerate(EVERY))))


def start(*known, race=TERRAN, away=TERRAN):
  """A game in which player 0 has seen structures at the opponent's start."""
  state = first(RULES, (RACES[race], RACES[away]))
  for slot, name in enumerate(known):
    state.memory.kind[0, slot] = LOCAL[name]
    state.memory.x[0, slot], state.memory.y[0, slot] = -state.x[0, 0], -state.y[0, 0]
  return state


@jax.jit
def _view(state):
  return views.make_view(RULES, state, jnp.int32(0))


def view_of(state):
  return _view(on_device(state))


def commands(state, name="adaptive", race=TERRAN, **changes):
  view = view_of(state)
  script = script_of(name, race)._replace(**changes)
  return answers.commands(RULES, script, view, answers.sight_of(RULES, view))


@pytest.mark.parametrize(("known", "sight"), [
  ((), scripts.NOTHING),
  (("CommandCenter", "Barracks", "Barracks"), scripts.NOTHING),
  (("CommandCenter", "Bunker", "Bunker"), scripts.NOTHING),
  (("Refinery",), scripts.TECHNOLOGY),
  (("CommandCenter", "CommandCenter"), scripts.TECHNOLOGY),
  (("Bunker", "Bunker", "MissileTurret"), scripts.DEFENCE),
  (("Refinery", "Bunker", "Bunker", "Bunker"), scripts.DEFENCE)])
def test_known_structures_tell_the_opponents_plan(known, sight):
  found = answers.sight_of(RULES, view_of(start(*known)))
  assert int(found) == sight


def test_the_opponents_own_memory_tells_nothing():
  state = start()
  state.memory.kind[1, :3] = LOCAL["Bunker"]
  assert int(answers.sight_of(RULES, view_of(state))) == scripts.NOTHING


def test_the_adaptive_player_follows_a_plan_by_sight_and_races():
  follows = EVERY.follows[NAMES.index("adaptive")]
  names = np.array(NAMES)[follows].tolist()
  shielded, fast = ["defence"] * 3, ["rush"] * 3
  assert names[0] == [shielded, ["rush", "defence", "defence"], fast]
  assert names[1] == [fast] * 3
  assert names[2] == [["safe_siege"] * 3, ["macro"] * 3, ["macro"] * 3]


def test_the_aggressive_player_begins_with_a_rush_except_as_protoss_against_zerg():
  follows = EVERY.follows[NAMES.index("aggressive")]
  names = np.array(NAMES)[follows]
  slow = np.argwhere(names[0] != "rush").tolist()
  assert slow == [[PROTOSS, ZERG]] and names[0, PROTOSS, ZERG] == "defence"
  assert (names[1] == "rush").all() and (names[2] == "macro").all()


def test_the_other_players_have_no_answers():
  others = ~np.isin(NAMES, ["adaptive", "aggressive"])
  assert not EVERY.answers[others].any() and EVERY.answers[~others].all()
  own = np.broadcast_to(np.arange(len(NAMES))[others, None, None, None], (others.sum(), 3, 3, 3))
  np.testing.assert_array_equal(EVERY.follows[others], own)


def test_a_worker_scouts_once_the_first_building_has_begun():
  state = start()
  assert not commands(state)[1].wanted
  state.kind[0, 1], state.health[0, 1] = LOCAL["Barracks"], 100
  state.orders.verb[0, :4] = constants.GATHER
  scout = commands(state)[1]
  # The start of both players is at a corner; all workers stand around it.
  square = (state.x[0, S:S + 4] + TIER.home[0]) ** 2 + (state.y[0, S:S + 4] + TIER.home[1]) ** 2
  assert scout.wanted and np.flatnonzero(scout.slots).tolist() == [S + square.argmin()]
  np.testing.assert_allclose((scout.x, scout.y), (-TIER.home[0], -TIER.home[1]))
  assert RULES.functions.names[int(scout.function)] == "Move_pt"
  assert not commands(state, "rush")[1].wanted


@pytest.mark.parametrize("reason", ["one under way", "known", "attacked", "shielded"])
def test_no_second_worker_scouts(reason):
  state = start(*(("Refinery",) if reason == "known" else ()))
  state.kind[0, 1], state.health[0, 1] = LOCAL["Barracks"], 100
  state.orders.verb[0, :4] = constants.GATHER
  if reason == "one under way":
    state.orders.verb[0, 2] = constants.MOVE
  if reason == "shielded":
    state.kind[0, TIER.unarmed:TIER.unarmed + 2] = LOCAL["Bunker"]
  if reason == "attacked":
    state.kind[1, S:S + 3] = LOCAL["Marine"]
    state.memory.seen[0, S:S + 3] = True
  assert not commands(state)[1].wanted


def test_a_scout_goes_on_to_the_second_base_while_that_decides():
  state = start("CommandCenter")
  state.kind[0, 1], state.health[0, 1] = LOCAL["Barracks"], 100
  state.x[0, S], state.y[0, S] = -TIER.home[0], -TIER.home[1]
  scout = commands(state)[1]
  assert scout.wanted and np.flatnonzero(scout.slots).tolist() == [S]
  np.testing.assert_allclose((scout.x, scout.y), (-TIER.homes[1][0], -TIER.homes[1][1]))
  # Zerg attacks with or without technology: one look is enough.
  zerg = start("Hatchery", race=ZERG, away=ZERG)
  zerg.kind[0, 1], zerg.health[0, 1] = LOCAL["SpawningPool"], 100
  assert not commands(zerg, race=ZERG)[1].wanted


def under_fire(fighters):
  """Marines that attack three Bunkers; one more defends at home."""
  state = start("Bunker", "Bunker", "Bunker")
  units = slice(S + 4, S + 4 + fighters)
  state.kind[0, units] = LOCAL["Marine"]
  state.orders.verb[0, 4:4 + fighters + 1] = constants.ATTACK
  state.x[0, units], state.y[0, units] = -TIER.home[0] - 5, -TIER.home[1] - 5
  at_home = S + 4 + fighters
  state.kind[0, at_home] = LOCAL["Marine"]
  state.x[0, at_home], state.y[0, at_home] = TIER.home
  return state, units


def test_a_small_attack_on_static_defence_is_called_back():
  attack = EVERY.attack[NAMES.index("safe_siege"), TERRAN]
  state, units = under_fire(attack // 2 - 2)
  retreat, _ = commands(state, attack=jnp.int32(attack))
  assert retreat.wanted
  assert np.flatnonzero(retreat.slots).tolist() == list(range(units.start, units.stop))
  np.testing.assert_allclose((retreat.x, retreat.y), TIER.home)
  state, _ = under_fire(attack // 2)  # with the one at home, more than half
  assert not commands(state, attack=jnp.int32(attack))[0].wanted


@pytest.mark.slow
def test_the_adaptive_player_beats_static_defence(default_game):
  names = np.tile(scripts.indices_of(["adaptive", "defence"], "default"), (GAMES, 1))
  state = default_games.start(default_game)
  for step in range(STEPS):
    if step % 50 == 0 and (np.asarray(state.winner) >= 0).all():
      break
    actions = default_games.choose(default_game, state, names, 1, step)
    state = default_game.advance(default_game.act(state, actions, default_game.due(state)))
  won, lost = (np.mean(np.asarray(state.winner) == player) for player in range(2))
  assert won + (1 - won - lost) / 2 > 0.6  # of games in all match-ups, where `rush` scores 21%
