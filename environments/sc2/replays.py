"""Replays played back by the game: both players' observations, each with the action that followed.

A replay reports an action one game loop after the observation on which it was taken. So the game
stops at every loop of an action, and one loop later (Mathieu et al. 2021, AlphaStar Unplugged).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.agent.vocabulary import Arguments
from starleague.environments.base import PlayerStep
from starleague.environments.sc2.client import setup_requests
from starleague.environments.sc2.converter import actions as sc2_actions
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter import observations
from starleague.environments.sc2.converter.setting import Setting
from starleague.environments.sc2.protocol import sc_pb

Frame = Sequence[sc_pb.ResponseObservation]  # of players 1 and 2 at the same game loop
_REWARD = {sc_pb.Victory: 1.0, sc_pb.Defeat: -1.0}


class Schedule(NamedTuple):
  """The game loops at which a replay stops."""

  acts: tuple[frozenset[int], frozenset[int]]  # of each player: loops of its actions
  decisions: tuple[frozenset[int], frozenset[int]]  # those loops, the start, and waits
  frames: tuple[int, ...]  # all observed loops, ascending from 0


class Decision(NamedTuple):
  """A player's observation, and the actions that followed."""

  player: int  # 0 or 1
  frame: Frame
  actions: Sequence[sc_pb.Action]  # none where the player only waited
  terminal: bool  # the end of the game, which no action follows


def plan(action_loops: Sequence[Sequence[int]], end: int) -> Schedule:
  """Plans the game loops at which a replay stops.

  Both players decide at the start. Where a player waits for more than the longest delay, it decides
  again after that delay, without an action.

  Args:
    action_loops: of each player, the game loops of its actions; of consecutive camera moves, only
      the last counts.
    end: the game's length in game loops.
  """
  acts, decisions = [], []
  for loops in action_loops:
    acted = frozenset(loop for loop in loops if 0 <= loop < end)
    stops = [0]
    for loop in sorted(acted | {end}):
      while loop - stops[-1] > types.MAX_DELAY:
        stops.append(stops[-1] + types.MAX_DELAY)
      if stops[-1] < loop < end:
        stops.append(loop)
    acts.append(acted)
    decisions.append(frozenset(stops))
  frames = {end}.union(*decisions, *({loop + 1 for loop in acted} for acted in acts))
  return Schedule((acts[0], acts[1]), (decisions[0], decisions[1]), tuple(sorted(frames)))


def align(frames: Iterable[Frame], schedule: Schedule) -> Iterator[Decision]:
  """Yields the decisions of both players in order of time, then the end of the game for each.

  A player's decision has all its action errors since its decision before, as in live play.

  Args:
    frames: observations at `schedule.frames`; fewer if the game ended earlier. They are changed.
    schedule: of the replay.
  """
  waiting: list[Frame | None] = [None, None]
  errors: list[list[sc_pb.ActionError]] = [[], []]  # not observed yet
  frame: Frame | None = None
  for frame in frames:
    loop = frame[0].observation.game_loop
    for player in (0, 1):
      before = waiting[player]
      if before is not None:
        acted = before[0].observation.game_loop in schedule.acts[player]
        yield Decision(player, before, frame[player].actions if acted else (), False)
      due = loop in schedule.decisions[player]
      errors[player] = observations.carry_errors(errors[player], frame[player], due)
      waiting[player] = frame if due else None
  if frame is not None:
    for player in (0, 1):
      yield Decision(player, frame, (), True)


def convert(decisions: Iterable[Decision], settings: Sequence[Setting]) -> Iterator[PlayerStep]:
  """Converts decisions into steps, with z of zero.

  The delay in a step is the number of game loops since the player's decision before, clipped to
  1..127: as with labels, that of a decision is in the step after it.

  Args:
    decisions: of both players, in order of time.
    settings: of players 1 and 2.
  """
  remembered = [memories.initial(setting) for setting in settings]
  first, decided = [True, True], [0, 0]
  for decision in decisions:
    player, setting = decision.player, settings[decision.player]
    parsed = [observations.read(response) for response in decision.frame]
    remembered = [memories.watch(memory, own.response, own.units, of) for memory, own, of in zip(
      remembered, parsed, settings, strict=True)]
    found = observations.convert(
      parsed[player], parsed[1 - player], setting, remembered[player], remembered[1 - player])
    action, remembered[player] = _act(decision, found, remembered[player], setting)
    loop = int(found.observation.game_loop)
    delay = np.int16(np.clip(loop - decided[player], 1, types.MAX_DELAY))
    yield PlayerStep(player, _step(found, action._replace(delay=delay), decision), first[player],
                     decision.terminal, remembered[player].executed)
    first[player], decided[player] = False, loop


def _act(decision: Decision, found: observations.Converted, memory: memories.Memory,
         setting: Setting) -> tuple[types.Action, memories.Memory]:
  """Returns the action of a decision, and the memory after it.

  A camera move in the same game loop as a command only moves the camera.
  """
  loop = int(found.observation.game_loop)
  chosen = sc2_actions.decode((), found.tags, setting)
  if decision.terminal:
    return chosen, memory
  noted = False
  for camera in (True, False):
    part = [action for action in decision.actions
            if action.action_raw.HasField("camera_move") == camera]
    action = sc2_actions.decode(part, found.tags, setting)
    if action.function != sc2_actions.NO_OP:
      chosen, noted = action, True
      memory = memories.note(memory, action, found.tags, loop, setting)
  return chosen, memory if noted else memories.note(memory, chosen, found.tags, loop, setting)


def _step(found: observations.Converted, action: types.Action, decision: Decision) -> types.Step:
  results = {result.player_id: result.result
             for response in decision.frame for result in response.player_result}
  reward = np.zeros(len(types.REWARDS), np.float32)
  if decision.terminal:
    reward[0] = _REWARD.get(results.get(decision.player + 1, sc_pb.Undecided), 0.0)
  none = np.float32(0)
  return types.Step(
    observation=found.observation, privileged=found.privileged, action=action,
    log_prob=Arguments(*[none] * len(Arguments._fields)), reward=reward,
    discount=np.float32(not decision.terminal),
    pseudo_active=np.zeros(len(types.PSEUDO_REWARDS), bool), weight=np.float32(1))


def play(stream: Any, schedule: Schedule) -> Iterator[Frame]:
  """Plays a replay back, both players' sides at once, and yields observations.

  Args:
    stream: pysc2's ReplayObservationStream after `start_replay_from_data(replay, player_id=1)`.
    schedule: where it stops.
  """
  stops = schedule.frames
  sizes = [after - before for before, after in zip(stops, stops[1:], strict=False)]
  for frame in stream.observations(step_sequence=sizes):
    yield tuple(frame)


def open_stream(config: AgentConfig) -> Any:
  """Returns pysc2's stream of a replay's observations, a context manager.

  It starts two processes of the game, one for each player, in the replay's version.

  Args:
    config: sizes of the observations.
  """
  from pysc2.lib.replay import replay_observation_stream
  return replay_observation_stream.ReplayObservationStream(
    setup_requests.interface(config), step_mul=1, disable_fog=False, add_opponent_observations=True)


def errors() -> tuple[type[Exception], ...]:
  """Returns pysc2's exceptions for unplayable replays and for failures of the game."""
  import websocket
  from pysc2.lib import protocol, remote_controller, sc_process
  from pysc2.lib.replay import replay_observation_stream
  return (replay_observation_stream.ReplayError, remote_controller.ConnectError,
          remote_controller.RequestError, protocol.ConnectionError, protocol.ProtocolError,
          sc_process.SC2LaunchError, websocket.WebSocketException)


def is_passing(error: Exception) -> bool:
  """Returns whether the game did not start, or its connection was lost: the replay may be playable.

  Args:
    error: one of `errors`, or of the operating system.
  """
  import websocket
  from pysc2.lib import protocol, remote_controller, sc_process
  if isinstance(error, sc_process.SC2LaunchError):
    # A version that is not installed, or too old, has the same class, but no error of the system.
    return isinstance(error.__context__, OSError)
  if isinstance(error, protocol.ProtocolError):
    return "empty response" in str(error)  # the game has closed the connection
  if type(error) is OSError:
    return error.errno is not None  # bz2's error of damaged data has no number
  return isinstance(error, OSError | remote_controller.ConnectError | protocol.ConnectionError
                    | websocket.WebSocketException)
