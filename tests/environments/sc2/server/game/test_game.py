"""Games through the server's ids, tags and coordinates equal games of Skirmish itself."""

import jax
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.sc2.server.game import catalogue, client_commands, engine, game, roster
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.client_commands import Target
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.interface import acting
from starleague.environments.skirmish.rules.interface.entities import entity_rows

# What the API does not drive: when players are due, and marks of their last action.
_AGENTS_OWN = ("commands", "next_loop", "last_loop", "last_function", "last_queued", "last_repeat",
               "was_selected", "was_targeted", "refused")


def _target(game_, player, action, row_of):
  """The target of an agent's action in the API's terms."""
  uses = vocabulary.argument_mask(int(action.function))
  if uses.location:
    x, y = acting.location_to_place(game_.rules, np.asarray(action.location))
    x, y = game_.world.to_world(x, y)
    return Target(x=float(x), y=float(y), is_point=True)
  if not uses.target_unit:
    return Target()
  found = np.flatnonzero(row_of == int(action.target_unit))
  if not found.size:
    return Target(tag=1)
  tags = np.concatenate([game_.tags[player], game_.known_tags[player],
                         roster.resource_tags(game_.rules, player)])
  return Target(tag=int(tags[found[0]]))


def _issue(game_, player, action, rows):
  """Gives an agent's action through the API; returns its result."""
  present, row = np.asarray(rows.present)[player], np.asarray(rows.row)[player]
  row_of = np.where(present, row, -1)
  n = game_.rules.tier.slots
  tags = [int(game_.tags[player, slot]) for slot in np.flatnonzero(
    np.isin(row_of[:n], np.asarray(action.units)))]
  dense = int(action.function)
  local = int(game_.rules.functions.local[dense])
  ability = int(vocabulary.FUNCTION_ABILITIES[dense])
  picked = catalogue.make_catalogue(game_.rules).functions
  assert local in picked[ability]
  target = _target(game_, player, action, row_of)
  results = [client_commands.issue(game_, player, ability, tags, target, bool(action.queued))
             for _ in range(int(action.repeat) + 1)]
  return results[0]


def _differing(a, b):
  """Names of the fields in which two states differ."""
  found = []
  for name in a._fields:
    if name not in _AGENTS_OWN:
      for one, other in zip(jax.tree.leaves(getattr(a, name)), jax.tree.leaves(getattr(b, name)),
                            strict=True):
        if not np.array_equal(np.asarray(one), np.asarray(other)):
          found.append(name)
  return found


@pytest.mark.parametrize("tier, map_name, races, scripts, steps", [
  ("mini", "open", (1, 1), ("rusher", "builder"), 200),
  pytest.param("default", "ramps", (2, 3), ("macro", "L8"), 300, marks=pytest.mark.slow)])
def test_commands_through_the_api_give_the_same_game(tier, map_name, races, scripts, steps):
  config, seed = engine.game_config(tier), 3
  seats = [live.LivePlayer(replays.scripted_player(name, config), config) for name in scripts]
  played = game.Game(Battlefield(tier, map_name, realistic=False), races, seed)
  direct = live.LiveGame(config, played.match_up, seed)
  find_rows = jax.jit(lambda state: entity_rows(played.rules, state))
  given = 0
  while direct.steps < steps and direct.winner < 0:
    rows = find_rows(direct.state)
    actions = {player: seats[player].act(direct, player)
               for player in np.flatnonzero(direct.due).tolist()}
    results = {player: _issue(played, player, action, rows)
               for player, action in actions.items() if int(action.function)}
    direct.step(actions)
    (changes,) = played.play(1)
    assert changes.loops == (played.loop,) == (8 * direct.steps,)
    given += len(results)
    assert _differing(direct.state, played.state) == [], direct.steps
    for player, result in results.items():
      refused = int(direct.state.refused[player])
      assert result == (refused or client_commands.SUCCESS), direct.steps
  assert given >= 40
  assert played.winner == direct.winner


def test_scripted_opponents_play_as_in_a_live_game():
  config, names = engine.game_config("mini"), ("rusher", "builder")
  indices = [replays.scripted_player(name, config).params for name in names]
  played = game.Game(Battlefield("mini"), (1, 1), 5,
                     {player: game.ScriptedBot(int(index)) for player, index in enumerate(indices)})
  direct = live.LiveGame(config, played.match_up, 5)
  seats = [live.LivePlayer(replays.scripted_player(name, config), config) for name in names]
  for steps in (1, 22, 37):  # several in one program, where no scripted player acts
    loops = [loop for changes in played.play(steps) for loop in changes.loops]
    assert loops == list(range(played.loop - 8 * (steps - 1), played.loop + 1, 8))
    for _ in range(steps):
      direct.step({player: seats[player].act(direct, player)
                   for player in np.flatnonzero(direct.due).tolist()})
  assert _differing(direct.state, played.state) == []
