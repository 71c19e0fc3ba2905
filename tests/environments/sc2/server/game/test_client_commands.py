"""Results and orders of client commands."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from starleague.environments.sc2.server.game import client_commands, engine, roster, world
from starleague.environments.sc2.server.game.client_commands import Target
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, SCV

RULES = engine.rules_of("default")


def test_commands_have_results_and_errors():
  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    (home,) = play.units_of(seen, COMMAND_CENTER)
    workers = [unit.tag for unit in play.units_of(seen, SCV)]
    results = []
    for request in (
        play.command(524, home.tag),  # 50 minerals are enough for one SCV
        play.command(524, home.tag), play.command(524, workers[0]), play.command(623, home.tag),
        play.command(16, *workers, target_world_space_pos={"x": 12, "y": 12}),
        play.command(16, 12345, target_world_space_pos={"x": 12, "y": 12}),
        play.command(23, workers[0], target_unit_tag=99)):
      results += (await play.ask(session, action=request)).action.result
    return results, await play.step(session), await play.step(session), home.tag

  results, after, later, home = play.run(script)
  # Success, NotEnoughMinerals, no selected unit can, NotSupported, Success, no unit, no target.
  assert results == [1, 9, 88, 2, 1, 88, 36]
  assert [error.result for error in after.action_errors] == [9, 88, 2, 88, 36]
  assert [error.ability_id for error in after.action_errors] == [524, 524, 623, 16, 23]
  assert after.action_errors[0].unit_tag == home
  assert len(after.actions) == 2 and not later.action_errors and not later.actions
  (center,) = play.units_of(after, COMMAND_CENTER)
  assert [order.ability_id for order in center.orders] == [524]
  assert after.observation.player_common.minerals < 50
  targets = {(order.ability_id, order.target_world_space_pos.x)
             for unit in play.units_of(after, SCV) for order in unit.orders}
  assert targets == {(16, 12.0)}


class Recorder:
  """A game of `default` that only records commands, with chosen units and results."""

  winner = -1

  def __init__(self, *results):
    n = RULES.tier.slots
    self.rules, self.world = RULES, world.make_world(RULES, 0)
    self.tags, self.known_tags = np.zeros((2, n), np.int64), np.zeros((2, n), np.int64)
    self.state = SimpleNamespace(
      x=np.zeros((2, n), np.float32), y=np.zeros((2, n), np.float32), side=np.array([1, -1]),
      memory=SimpleNamespace(patches=np.full((2, RULES.tier.resources), 900)))
    self.results, self.commands = list(results), []

  def command(self, player, given):
    self.commands.append(jax.tree.map(lambda values: values[player], given))
    assert not any(np.any(np.asarray(values)[1 - player]) for name, values in
                   given._asdict().items() if name != "repeat")
    return self.results.pop(0)


def issue(played, ability, tags, *target, queued=False, player=0):
  return client_commands.issue(played, player, ability, tags, Target(*target), queued)


def test_each_larva_has_a_command_and_one_success_is_enough():
  played = Recorder(21, 0, 9)  # no larva, success, not enough minerals
  played.tags[0, 40] = 7
  larvae = [roster.larva_tags(RULES, 0, slot, 1)[0] for slot in (3, 5)]
  assert issue(played, 1343, [larvae[0], 7, larvae[1]]) == client_commands.SUCCESS
  assert [np.flatnonzero(command.selected).tolist() for command in played.commands] == [
    [3], [5], [40]]
  names = {RULES.functions.names[int(command.function)] for command in played.commands}
  assert names == {"Train_Zergling_quick"}
  assert issue(Recorder(21), 1343, larvae[:1]) == 21


@pytest.mark.parametrize("results, tags, found, sides", [
  ((88, 0), [5, 6], 1, [30, 40]), ((9, 88), [5, 6], 9, [30, 40]), ((0,), [6], 1, [40]),
  ((36,), [6], 36, [40]), ((0,), [5], 1, [30]), ((88,), [], 88, [None])])
def test_a_player_in_control_of_the_opponent_commands_its_units_too(results, tags, found, sides):
  played = Recorder(*results)
  played.tags[0, 30], played.tags[1, 40] = 5, 6
  assert client_commands.issue_to_all(
    played, 0, 16, tags, Target(20.0, 30.0, is_point=True)) == found
  chosen = [np.flatnonzero(command.selected).tolist() for command in played.commands]
  assert chosen == [[slot] if slot else [] for slot in sides] and not played.results


def test_a_point_is_converted_into_skirmishs_plane():
  played = Recorder(0, 0)
  played.tags[1, 30] = 5
  assert issue(played, 16, [5, 6], 20.0, 30.0, 0, True, player=1, queued=True) == 1
  (command,) = played.commands
  assert (command.x, command.y, command.target_kind) == (-4, -6, constants.NO_TARGET)
  assert command.queued and np.flatnonzero(command.selected).tolist() == [30]


def test_units_are_targets_if_the_player_knows_them():
  played = Recorder(0, 0, 0)
  played.tags[0, [20, 21]] = 5, 6
  played.known_tags[0, 33] = 8
  played.state.x[1, 33], played.state.y[1, 33] = 3.5, -2.5
  patch = int(roster.resource_tags(RULES, 0)[2])
  for ability, target in ((1, 6), (23, 8), (295, patch)):
    assert issue(played, ability, [5], 0.0, 0.0, target) == client_commands.SUCCESS
  kinds = [(int(command.target_kind), int(command.target)) for command in played.commands]
  assert kinds == [(constants.OWN, 21), (constants.ENEMY, 33), (constants.RESOURCE, 2)]
  assert (played.commands[1].x, played.commands[1].y) == (3.5, -2.5)
  assert (played.commands[2].x, played.commands[2].y) == RULES.tier.patches[2]
  assert issue(played, 23, [5], 0.0, 0.0, 99) == action_results.CANT_TARGET_THAT_UNIT
  played.state.memory.patches[0, 2] = 0  # mined out
  assert issue(played, 295, [5], 0.0, 0.0, patch) == action_results.CANT_TARGET_THAT_UNIT


@pytest.mark.parametrize("ability, target, result", [
  (623, (), action_results.NOT_SUPPORTED),  # Battlecruiser
  (295, (), action_results.CANT_TARGET_THAT_UNIT),  # a resource is needed
  (321, (), action_results.ERROR),  # a place is needed
  (16, (float("nan"), 1.0, 0, True), action_results.CANT_TARGET_THAT_UNIT),
  (16, (2e4, 1.0, 0, True), action_results.CANT_TARGET_THAT_UNIT)])
def test_impossible_targets_give_the_games_result(ability, target, result):
  played = Recorder()
  assert issue(played, ability, [], *target) == result and not played.commands
  played.winner = 1
  assert issue(played, ability, [], *target) == action_results.NOT_SUPPORTED


def test_resources_are_in_the_players_order():
  played = Recorder()
  first, second = (client_commands.resource_places(played, player) for player in (0, 1))
  half = RULES.tier.resources // 2
  np.testing.assert_array_equal(first[:, :half].T, np.array(RULES.tier.patches, np.float32))
  np.testing.assert_array_equal(first[:, half:], -first[:, :half])
  np.testing.assert_array_equal(second, -first)
