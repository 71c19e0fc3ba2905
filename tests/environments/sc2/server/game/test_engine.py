"""Compiled programs of the server against Skirmish itself."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments.sc2.server.game import engine, game
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.skirmish.games import live


def test_the_minimap_at_its_own_resolution_is_skirmishs():
  played = game.Game(Battlefield("mini"), (1, 1), 2)
  assert sum(len(changes.loops) for changes in played.play(3)) == 3
  planes = played.frame().report.planes
  direct = live.LiveGame(engine.game_config("mini"), played.match_up, 2)
  for _ in range(3):
    direct.step({player: jax.tree.map(
      lambda spec: np.zeros(spec.shape, spec.dtype), types.action_spec(8))._replace(
        delay=np.int16(1)) for player in np.flatnonzero(direct.due).tolist()})
  for player in range(2):
    np.testing.assert_array_equal(planes[player], live.observe(direct, player).minimap)


def test_a_command_is_executed_at_once_and_plays_no_step():
  programs = engine.make_programs("mini")
  played = game.Game(Battlefield("mini"), (1, 1), 2)
  rules = played.rules
  slot = int(np.flatnonzero(played.state.kind[0] == rules.types.local("CommandCenter"))[0])
  train = rules.functions.names.index("Train_SCV_quick")
  none = jax.tree.map(np.asarray, played.state.commands)
  given = none._replace(function=np.array([train, 0], np.int32),
                        selected=np.arange(rules.tier.slots) == np.array([[slot], [-1]]))
  state = programs.command(jax.tree.map(jnp.asarray, played.state), given)
  assert state.minerals.tolist() == [0, 50] and int(state.loop) == int(played.state.loop)
  assert int(state.queue[0, slot, 0]) == rules.types.local("SCV")
  assert state.refused.tolist() == [0, 0]
  again = programs.command(state, given)
  assert again.refused.tolist() == [9, 0]  # NotEnoughMinerals
  jax.tree.map(np.testing.assert_array_equal, state.commands, played.state.commands)


def test_steps_in_one_program_are_those_of_single_ones():
  start = game.Game(Battlefield("mini"), (1, 1), 2)
  advance = engine.make_advance("mini", scripted=False)
  bots = engine.Bots(np.full(2, -1, np.int32), jax.random.key_data(jax.random.key(0)))
  state = jax.tree.map(jnp.asarray, start.state)
  shown, pending, track = advance(bots, state, np.int32(0), np.int32(5))
  one = state
  for step in range(5):
    one, _, single = advance(bots, one, np.int32(step), np.int32(1))
    jax.tree.map(lambda many, first, step=step: np.testing.assert_array_equal(
      np.asarray(many)[step], np.asarray(first)[0]), track, single)
  jax.tree.map(np.testing.assert_array_equal, shown, one)
  jax.tree.map(np.testing.assert_array_equal, pending, shown)  # without scripted players
  kept, _, _ = advance(bots, state, np.int32(0), np.int32(0))
  jax.tree.map(np.testing.assert_array_equal, kept, state)


def test_structures_fit_on_known_free_ground():
  played = game.Game(Battlefield("mini"), (1, 1), 2)
  barracks, center = (played.rules.types.local(name) for name in ("Barracks", "CommandCenter"))
  places = np.array([[0, 0], [-6.5, -6.5], [-11.9, 0], [99, 0]], np.float32)
  for kind, expected in ((barracks, [True, False, False, False]),
                         (center, [True, False, False, False])):
    assert played.placeable(0, places, np.full(4, kind, np.int32)).tolist() == expected
  many = np.tile(places, (20, 1))  # more than one run of the program
  assert many.shape[0] > 2 * engine.PLACEMENTS
  assert played.placeable(0, many, np.full(80, barracks, np.int32)).tolist() == [
    True, False, False, False] * 20
