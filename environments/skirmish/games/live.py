"""Live games: played one step at a time from Python, by scripted players, agents or humans.

A live game can be saved as a replay at any time. It runs the compiled program of `exact`, which
also resimulates replays, so that `replays.resimulate` reproduces its states bit for bit.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.agent.predictions import Predictions
from starleague.environments import base
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.games.prediction_log import PredictionLog, Recorded
from starleague.environments.skirmish.games.replay_format import (
  STEPS_PER_HASH,
  Replay,
  check_start,
  hash_steps,
)
from starleague.environments.skirmish.rules.interface import observation
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants, tables, tiers
from starleague.environments.skirmish.rules.tables.tables import DEFAULT_GAME_CONFIG, GameConfig

# (params, key, state, player, memory) -> (Action, memory), unbatched.
Decide = Callable[[Any, jax.Array, State, Any, Any], tuple[types.Action, Any]]
# The same with a record of the decision: -> (Action, memory, [N] uint8).
DecideAndRecord = Callable[[Any, jax.Array, State, Any, Any], tuple[types.Action, Any, jax.Array]]
_NO_PREDICTIONS: Mapping[int, Recorded | None] = {}


class Predictor(NamedTuple):
  """How a controller records its decisions, and how their predictions are computed afterwards."""

  decide: DecideAndRecord  # the decisions of `Controller.decide`
  # (params, records [P, N]) -> Predictions [P, ...]: see `agent.predictions.complete`.
  complete: Callable[[Any, np.ndarray], Predictions]


class Controller(NamedTuple):
  """What controls a player: see `replays.scripted_player` and `replays.policy_player`."""

  name: str
  decide: Decide
  params: Any = ()
  memory: Any = ()  # before the first observation
  mmr: int = base.AGENT_MMR
  income: int = 100  # percent
  predictor: Predictor | None = None  # None: it has no predictions


def with_controllers(match_up: base.MatchUp,
                     controllers: Sequence[Controller | None]) -> base.MatchUp:
  """Returns a match-up with the MMR and the income of two controllers; None stands for an agent."""
  agent = base.make_match_up()
  mmr, income = (np.array([getattr(controller, name) if controller else like[i]
                           for i, controller in enumerate(controllers)], like.dtype)
                 for name, like in (("mmr", agent.mmr), ("income", agent.income)))
  return match_up._replace(mmr=mmr, income=income)


class LiveGame:
  """One game. Its functions compile once per GameConfig, for all races, maps and seeds."""

  def __init__(self, game: GameConfig, match_up: base.MatchUp, seed: int):
    """Starts a game.

    Args:
      game: the arguments of the environment.
      match_up: of numpy arrays; see `base.make_match_up`.
      seed: of the units' starting positions and of the players' noise; 0 to 2^31 - 1.

    Raises:
      ValueError: a seed, an MMR or an income that a replay cannot hold, or arguments that
        `make_skirmish` rejects.
    """
    check_start(match_up, seed)
    self.game, self.match_up, self.seed, self.steps = game, match_up, int(seed), 0
    self.device = jax.devices("cpu")[0]
    with jax.default_device(self.device):
      self._program = exact.make_program(game)
      start, self._noise = exact.keys_of(self.seed)
      self.state: State = self._program.reset(start, match_up)
      self._track = exact.make_track(self.state)
      self._update_status()
    self._actions, self._acts = exact.no_actions(game, STEPS_PER_HASH)
    self._taken: list[tuple] = []
    self._predictions = PredictionLog()
    self._hashes = [exact.state_hash(self.state)]

  def _update_status(self) -> None:
    self.due, winner = (np.asarray(x) for x in self._program.status(self.state))
    self.winner = int(winner)  # 0 or 1, 2 for a draw, -1 before the end

  def key(self, player: int) -> jax.Array:
    """Returns the random key of a player's noise at this step."""
    return jax.random.fold_in(jax.random.fold_in(self._noise, self.steps), player)

  def step(self, actions: Mapping[int, types.Action],
           predictions: Mapping[int, Recorded | None] = _NO_PREDICTIONS) -> None:
    """Plays one environment step.

    Args:
      actions: by player, of exactly the players that are due.
      predictions: by player, the record of those behind its action, for the replay.

    Raises:
      ValueError: the game is over, or the actions are not those of the players that are due.
    """
    if self.winner >= 0:
      raise ValueError("the game is over: start another one")
    due = {int(player) for player in np.flatnonzero(self.due)}
    if set(actions) != due:
      raise ValueError(f"actions: expected those of players {sorted(due)}, found {sorted(actions)}")
    self._acts[0] = self.due
    for player, action in actions.items():  # first: an invalid one leaves the game as it is
      for values, value in zip(self._actions, action, strict=True):
        values[0, player] = value
    for player in sorted(actions):
      if (recorded := predictions.get(player)) is not None:
        self._predictions.add(len(self._taken), player, recorded)
      self._taken.append((self.steps, player, *(v[0, player].copy() for v in self._actions)))
    with jax.default_device(self.device):
      self._track, self.state = self._program.run(
        self._track, self.state, self._actions, self._acts, 1)
      self._update_status()
    self.steps += 1
    if self.steps % STEPS_PER_HASH == 0:
      self._hashes.append(exact.state_hash(self.state))

  def replay(self, names: tuple[str, str]) -> Replay:
    """Returns the replay of the game so far.

    Args:
      names: of player 0 and player 1: at most 200 printable characters each.

    Raises:
      ReplayError: a name of another form.
    """
    check_start(self.match_up, self.seed, names)
    step, player, *taken = (
      zip(*self._taken, strict=True) if self._taken else [()] * (2 + len(self._actions)))
    actions = (np.array(values, like.dtype).reshape(-1, *like.shape[2:])
               for values, like in zip(taken, self._actions, strict=True))
    hashes = list(self._hashes)
    if len(hashes) < len(hash_steps(self.steps)):  # step 0 is both the first and the last state
      hashes.append(exact.state_hash(self.state))
    return Replay(
      game=self.game, match_up=jax.tree.map(np.asarray, self.match_up), seed=self.seed,
      players=names, steps=self.steps, winner=self.winner, step=np.array(step, np.int32),
      player=np.array(player, np.uint8), actions=types.Action(*actions), hashes=tuple(hashes),
      rules=exact.rules_digest(self.game.tier), recorded_with=exact.recorded_with(),
      predicted=self._predictions.predicted())


class LivePlayer:
  """A player in a live game: its controller, compiled, and its memory.

  Attributes:
    name: of the controller.
    predictions: the record of those behind the latest action; None if there is none.
  """

  def __init__(self, controller: Controller, game: GameConfig, predictions: bool = False):
    """Starts before the first observation.

    Args:
      controller: made for `game`.
      game: the arguments of the environment.
      predictions: whether to record the decisions of a controller that has predictions.
    """
    self.name, self._controller, self._memory = controller.name, controller, controller.memory
    self.predictions: Recorded | None = None
    predictor = controller.predictor if predictions else None
    self._complete = predictor and functools.partial(predictor.complete, controller.params)
    self._decide = _compiled(predictor.decide if predictor else controller.decide,
                             game.max_selected)

  def reset(self) -> None:
    """Clears the memory, for a new game."""
    self._memory = self._controller.memory

  def act(self, live: LiveGame, player: int) -> types.Action:
    """Returns the action of a player that is due.

    Args:
      live: the game.
      player: the player that it controls, 0 or 1.
    """
    with jax.default_device(live.device):
      action, self._memory, *record = self._decide(
        self._controller.params, live.key(player), live.state, jnp.int32(player), self._memory)
    self.predictions = (
      None if self._complete is None else Recorded(np.asarray(record[0]), self._complete))
    return jax.tree.map(np.asarray, action)


@functools.cache
def _compiled(decide: Decide | DecideAndRecord, max_selected: int) -> Any:
  """Compiles the decisions of controllers; casts their actions to the dtypes of the spec."""
  spec = types.action_spec(max_selected)

  def cast(*arguments):
    action, *rest = decide(*arguments)
    return jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), action, spec), *rest

  return jax.jit(cast)


def record(controllers: tuple[Controller, Controller], seed: int, *,
           game: GameConfig = DEFAULT_GAME_CONFIG, match_up: base.MatchUp | None = None,
           max_steps: int | None = None, predictions: bool = False,
           on_step: Callable[[LiveGame], object] = lambda live: None) -> Replay:
  """Plays a game and returns its replay.

  Args:
    controllers: of player 0 and player 1, made for `game`.
    seed: of the game and of its players' noise; 0 to 2^31 - 1. Equal seeds give equal games.
    game: the arguments of the environment.
    match_up: of numpy arrays; `base.make_match_up()` if not given. MMR and income are the
      controllers'.
    max_steps: stops after this many environment steps; the tier's own limit if not given.
    predictions: whether the replay holds the predictions of agents.
    on_step: called with the game after each environment step.

  Raises:
    ValueError: a seed, a name, an MMR or an income that a replay cannot hold, or arguments that
      `make_skirmish` rejects.
  """
  match_up = with_controllers(match_up or base.make_match_up(), controllers)
  names = (controllers[0].name, controllers[1].name)
  check_start(match_up, seed, names)  # not at the end of the game
  live = LiveGame(game, match_up, seed)
  players = [LivePlayer(controller, game, predictions) for controller in controllers]
  limit = tiers.TIERS[game.tier].loop_limit // constants.LOOPS_PER_STEP + 1
  limit = limit if max_steps is None else min(max_steps, limit)
  while live.winner < 0 and live.steps < limit:
    due = np.flatnonzero(live.due).tolist()
    live.step({player: players[player].act(live, player) for player in due},
              {player: players[player].predictions for player in due})
    on_step(live)
  return live.replay(names)


@functools.cache
def _columns(game: GameConfig) -> Any:
  rules = tables.make_rules(*game)
  return jax.jit(lambda state: (
    observation.player_columns(rules, state), observation.score_columns(state)))


def columns(live: LiveGame) -> tuple[np.ndarray, np.ndarray]:
  """Returns both players' PLAYER_COLUMNS [2, 10] and SCORE_COLUMNS [2, 13], int32."""
  with jax.default_device(live.device):
    player, score = _columns(live.game)(live.state)
    return np.asarray(player), np.asarray(score)


@functools.cache
def _observer(game: GameConfig) -> Any:
  rules = tables.make_rules(*game)
  return jax.jit(lambda state, player: observation.observe(rules, state, player)[0])


def observe(live: LiveGame, player: int) -> types.Observation:
  """Returns a player's observation, of numpy arrays. Compiles once per GameConfig."""
  with jax.default_device(live.device):
    return jax.tree.map(np.asarray, _observer(live.game)(live.state, np.int32(player)))
