"""Games outside JAX: a process that plays them, one after another, through the inference service.

Works with any `base.Environment` whose functions take and return numpy arrays.
"""

import contextlib
import json
import pathlib
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from absl import logging

from starleague.actor import behaviour, rewards
from starleague.actor.inference import Client, Header
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.agent.vocabulary import Arguments
from starleague.common.errors import UserError
from starleague.environments import base

_MOST_NOISE = 2**30  # seeds of a game's noise; a row's is twice that plus its player
_INACTIVE = (False,) * len(types.PSEUDO_REWARDS)
_REWARDS = jax.jit(rewards.rewards)


class GameConditioning(NamedTuple):
  """The conditioning of the agents in the games of an actor."""

  mmr: int  # as their observations show it
  z: types.Statistics  # [M, ...], to play for; row 0 is unconditional
  pseudo_scale: float = 1.0  # pseudo-reward per unit of distance to z
  draw: float = 0.0  # reward of a draw, for both players


class GameRequest(NamedTuple):
  """A game to be played; travels as JSON."""

  opponent: str = ""  # the built-in bot that plays player 1; empty: an agent does
  seed: int = 0  # of the game and of the actions' noise
  races: tuple[int, int] = (1, 1)  # indices of types.RACES
  map_index: int = 0
  swap_sides: bool = False
  players: tuple[int, int] = (0, 0)  # whose parameters act, as of `inference.Header`
  recorded: tuple[bool, bool] = (True, True)  # whether somebody learns from the player's steps
  # Row of `GameConditioning.z` of each player, by its starting side, which the game decides.
  z_rows: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
  # Of each player: whether the parts of z are active, PSEUDO_REWARDS.
  active: tuple[tuple[bool, ...], tuple[bool, ...]] = (_INACTIVE, _INACTIVE)
  replay: str = ""  # path of the replay to write at the end, if that is possible; empty: none


class Report(NamedTuple):
  """The end of a game; travels as JSON."""

  result: int | None  # 1, 0 or -1, of player 0; None: the match is void
  loops: int = 0  # game loops
  steps: int = 0  # agent steps of all agents
  build_orders: tuple[tuple[int, ...], ...] = ()  # of each agent, [20], as in types.Statistics
  reason: str = ""  # of a void match
  final: bool = False  # no other game can be played either, for the same reason
  behaviours: tuple[tuple[float, float, int], ...] = ()  # of each agent, as `behaviour.describe`


class Host(Protocol):
  """Plays games one after another, such as `environments.sc2.environment.GameHost`."""

  bot: str  # that plays player 1 of the next game; empty: an agent
  final_errors: tuple[type[Exception], ...]  # after these, no other game can be played either

  def environment(self) -> base.Environment:
    """Returns the environment that plays the games."""

  def sides(self) -> tuple[int, int]:
    """Returns the starting sides of both players of the current game, as in libraries of z."""

  def grid_per_unit(self) -> float:
    """Returns the cells of the 256 x 256 grid per game unit on the map of the current game."""

  def show(self, z: types.Statistics) -> None:
    """Sets the z that both players of the current game observe, [2, ...]."""

  def save_replay(self, path: pathlib.Path) -> None:
    """Writes the replay of the current game."""

  def close(self) -> None:
    """Ends the current game and everything that belongs to it, also if it hangs."""


def agents_of(request: GameRequest) -> tuple[int, ...]:
  """Returns the players that agents play."""
  return (0,) if request.opponent else (0, 1)


class _Goal:
  """The z that a player of a game plays for, and its rewards."""

  def __init__(self, z: types.Statistics, active: Sequence[bool], scale: float,
               grid_per_unit: float, draw: float):
    """Starts with nothing executed.

    Args:
      z: unbatched.
      active: [4], PSEUDO_REWARDS.
      scale, grid_per_unit: see `rewards.pseudo_rewards`.
      draw: reward of a draw.
    """
    self.z, self.active = z, np.asarray(active, bool)
    self._draw = draw
    self._options = {"scale": scale, "grid_per_unit": grid_per_unit}
    self._executed = types.zeros(types.statistics_spec())

  @property
  def shown(self) -> types.Statistics:
    """z as the player observes it."""
    return jax.tree.map(np.asarray, rewards.condition(self.z, self.active))

  @property
  def build_order(self) -> tuple[int, ...]:
    """The build order that the player has executed, [20]."""
    return tuple(np.asarray(self._executed.build_order).tolist())

  def reward(self, result: float | None, executed: types.Statistics,
             loop: types.Leaf) -> np.ndarray:
    """Returns the rewards since the last call, [5] float32, types.REWARDS.

    Args:
      result: 1, -1, or 0 for a draw; None before the end.
      executed: so far.
      loop: game loop.
    """
    winloss = 0.0 if result is None else result or self._draw
    before, self._executed = self._executed, executed
    if not self.active.any():  # needs no compiled program
      return np.array([winloss] + [0] * len(self.active), np.float32)
    return np.asarray(_REWARDS(
      winloss, before, executed, self.z, loop, self.active, **self._options))


def _goals(host: Host, request: GameRequest, conditioning: GameConditioning) -> list[_Goal]:
  """Returns the goals of both players of a game that has started, and shows them their z."""
  goals = [_Goal(jax.tree.map(lambda x, i=request.z_rows[player][side]: x[i],
                              conditioning.z),
                 request.active[player], conditioning.pseudo_scale, host.grid_per_unit(),
                 conditioning.draw)
           for player, side in enumerate(host.sides())]
  host.show(jax.tree.map(lambda *x: np.stack(x), *(goal.shown for goal in goals)))
  return goals


def play(host: Host, client: Client, request: GameRequest, conditioning: GameConditioning,
         config: AgentConfig) -> Report:
  """Plays a game: the agents' steps go through the client's slots, player i's through slot i.

  Args:
    host: plays the game; its bot is that of the request.
    client: with a slot for each agent.
    request: what to play.
    conditioning: of the agents.
    config: the agent's.

  Raises:
    ServiceError: the inference service has ended.
  """
  agents, environment = agents_of(request), host.environment()
  state = environment.reset(np.asarray(request.seed), base.make_match_up(
    request.races, request.map_index, request.swap_sides, mmr=(conditioning.mmr, conditioning.mmr)))
  goals = _goals(host, request, conditioning)
  tracks = [behaviour.start()] * 2
  numbers, steps = [0, 0], 0
  while True:
    outcome = environment.outcome(state)
    due = np.asarray(environment.due(state))
    requests = {
      player: (_header(request, player, numbers[player], bool(outcome.over)),
               _step(environment, state, player, outcome, goals[player], config))
      for player in agents if outcome.over or due[player]}
    for player, (_, step) in requests.items():
      tracks[player] = behaviour.follow(
        tracks[player], step.observation.player, step.privileged.cumulative_score,
        step.observation.game_loop)
    actions = client.act(requests) if requests else {}
    if outcome.over:
      loop = int(requests[0][1].observation.game_loop)
      orders = [goals[player].build_order for player in agents]
      return Report(
        int(np.sign(np.asarray(outcome.reward)[0])), loop, steps, tuple(orders),
        behaviours=behaviour.describe(
          np.array(orders), jax.tree.map(lambda *x: np.stack(x), *(tracks[i] for i in agents))))
    if actions:
      steps += len(actions)
      for player in actions:
        numbers[player] += 1
      acts = np.array([player in actions for player in range(2)])
      any_action = next(iter(actions.values()))
      both = jax.tree.map(lambda *x: np.stack(x), *(
        actions.get(player, any_action) for player in range(2)))
      state = environment.act(state, both, acts)
    state = environment.advance(state)


def _header(request: GameRequest, player: int, number: int, last: bool) -> Header:
  noise = 2 * (request.seed % _MOST_NOISE) + player
  return Header(int(number == 0), int(last), request.players[player], noise, number,
                int(request.recorded[player]))


def _step(environment: base.Environment, state: Any, player: int, outcome: base.Outcome,
          goal: _Goal, config: AgentConfig) -> types.Step:
  """Returns a player's step; the service adds action and log-probs."""
  observation, privileged = environment.observe(state, np.asarray(player))
  zero = np.float32(0)
  result = float(np.asarray(outcome.reward)[player]) if outcome.over else None
  reward = goal.reward(result, privileged.executed, observation.game_loop)
  return types.Step(
    observation=observation, privileged=privileged,
    action=types.zeros(types.action_spec(config.max_selected)),
    log_prob=Arguments(*[zero] * len(Arguments._fields)), reward=reward,
    discount=np.float32(not outcome.over),
    pseudo_active=goal.active, weight=np.float32(1))


def serve(connection: Connection, make_host: Callable[[], Host], address: str,
          conditioning: GameConditioning, config: AgentConfig, deadline_s: float = 60.0) -> None:
  """Plays the games that come through a connection until it ends: the main loop of a process.

  A game that fails is void, and everything that belongs to it is ended before the next one. A game
  whose replay cannot be written has its result, and the log the reason.

  Args:
    connection: requests come and reports go as JSON.
    make_host: makes what plays the games.
    address: of the inference service.
    conditioning: of the agents.
    config: the agent's.
    deadline_s: seconds of each wait for the service, which may wait for the learner.
  """
  host = make_host()
  try:
    while True:
      request = decode(GameRequest, connection.recv_bytes())
      host.bot = request.opponent
      try:
        # Only slots that ask are claimed: the service waits for the others.
        with contextlib.closing(
            Client(address, config, len(agents_of(request)), deadline_s)) as client:
          report = play(host, client, request, conditioning, config)
        if request.replay:
          _save_replay(host, pathlib.Path(request.replay))
      except UserError as error:
        host.close()
        if isinstance(error, ConnectionError):  # the service has ended
          raise
        report = Report(None, reason=" ".join(str(error).split()),
                        final=isinstance(error, host.final_errors))
      connection.send_bytes(encode(report))
  except (EOFError, ConnectionError, BrokenPipeError):
    pass  # the actor has ended
  finally:
    host.close()


def _save_replay(host: Host, path: pathlib.Path) -> None:
  """Writes a replay; a game whose replay cannot be written keeps its result."""
  try:
    host.save_replay(path)
  except (UserError, OSError) as error:
    logging.warning("replay_not_saved path=%s reason=%r", path, " ".join(str(error).split()))
    if isinstance(error, UserError):  # the game's: its processes may hang
      host.close()


def encode(message: GameRequest | Report) -> bytes:
  """Returns a message as JSON."""
  return json.dumps(message._asdict()).encode()


def decode(kind: Any, message: bytes) -> Any:
  """Returns a message of a kind, GameRequest or Report; lists become tuples.

  Raises:
    ValueError: it is no such message.
  """
  values = json.loads(message)
  if not isinstance(values, dict) or set(values) - set(kind._fields):
    raise ValueError(f"expected a {kind.__name__} with {', '.join(kind._fields)}, found {values}")
  return kind(**{name: _tuples(value) for name, value in values.items()})


def _tuples(value: Any) -> Any:
  return tuple(map(_tuples, value)) if isinstance(value, list) else value
