"""A stand-in for pysc2's controllers of a replay: both players' sides of an invented game."""

from starleague.agent import vocabulary as v
from starleague.environments.sc2.protocol import sc_pb
from tests.environments.sc2 import recorded

TAG = 1 << 32
WIDTH, HEIGHT = 128, 128


def command(name, tags=(TAG,), place=None):
  action = sc_pb.Action()
  found = action.action_raw.unit_command
  found.ability_id = int(v.FUNCTION_ABILITIES[v.FUNCTIONS.index(name)])
  found.unit_tags.extend(tags)
  if place:
    found.target_world_space_pos.x, found.target_world_space_pos.y = place
  return action


def move_camera(x, y):
  action = sc_pb.Action()
  action.action_raw.camera_move.center_world_space.x = x
  action.action_raw.camera_move.center_world_space.y = y
  return action


class Controller:
  """One player's side of a replay, in the manner of pysc2's RemoteController."""

  def __init__(self, player, end, actions, errors=None):
    """`errors`: results by the game loop from which the game reports them, once each."""
    self.player, self.end, self.actions, self.loop, self.stops = player, end, actions, 0, []
    self.errors = dict(errors or {})

  def replay_info(self, data):
    return sc_pb.ResponseReplayInfo(game_duration_loops=self.end)

  def start_replay(self, request):
    assert request.observed_player_id == self.player and request.options.raw

  def game_info(self):
    return recorded.make_game_info(WIDTH, HEIGHT)

  def step(self, count):
    self.loop = min(self.loop + count, self.end)

  def observe(self):
    self.stops.append(self.loop)
    response = sc_pb.ResponseObservation(actions=self.actions.get(self.loop - 1, ()))
    for loop in sorted(loop for loop in self.errors if loop <= self.loop):
      response.action_errors.add(result=self.errors.pop(loop))
    response.observation.game_loop = self.loop
    raw = response.observation.raw_data
    raw.player.camera.x = raw.player.camera.y = 20
    response.observation.player_common.minerals = 100 * self.player + self.loop
    unit = raw.units.add(tag=TAG, unit_type=18, alliance=1, owner=self.player)
    unit.pos.x, unit.pos.y = 30, 30
    if self.loop > 5:  # a marine that appears
      raw.units.add(tag=2 * TAG, unit_type=48, alliance=1, owner=self.player)
    if self.loop == self.end:
      response.player_result.add(player_id=1, result=sc_pb.Defeat)
      response.player_result.add(player_id=2, result=sc_pb.Victory)
    return response
