"""Jitted batches of games: environment steps and batched inference in one compiled program.

Players act at moments of their own choosing, so that at any time only some of the `2 x games` rows
(a game's two players) are due. Each iteration of the program lets the games run on until
`inference_batch` rows are due (or a bound is met), infers just those, longest waiting first, and
hands the actions back: no row is inferred in vain and no game waits on the host. This is the
dynamic batching of AlphaStar's actors (Vinyals et al. 2019, Methods) without a queue.

A record is made where a player observes: what it saw, did, and received since its previous action.
Both players' terminal observations are recorded too; then the game starts anew.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import rewards
from starleague.agent import types
from starleague.agent.policy import Policy
from starleague.data.records import Records
from starleague.environments import base

Array = Any
# (name index, key, state, player) -> action
ScriptedPlayer = Callable[[Array, Array, Any, Array], types.Action]
SELF_PLAY = 0  # opponent index; scripted player i is opponent i + 1


@chex.dataclass(frozen=True)
class RolloutConfig:
  """Sizes of the compiled program.

  Attributes:
    games: games played at once.
    inference_batch: rows inferred an iteration; at most 2 * games.
    iterations: iterations a call.
    max_advances: environment steps an iteration may take to gather `inference_batch` due rows.
    races: indices of types.RACES that match-ups are drawn from.
    maps: how many of the environment's maps match-ups are drawn from.
    pseudo_probability: each pseudo-reward is active in a game with this probability.
    pseudo_scale: what a unit of distance to z is worth.
    grid_per_unit: cells of the 256 grid a game unit, for the distances of build orders.
    restart: whether a game that is over is followed by another.
  """

  games: int
  inference_batch: int
  iterations: int
  max_advances: int = 16
  races: tuple[int, ...] = (1,)
  maps: int = 1
  pseudo_probability: float = 0.0
  pseudo_scale: float = 1.0
  grid_per_unit: float = 1.0
  restart: bool = True

  def __post_init__(self):
    if not 0 < self.inference_batch <= 2 * self.games:
      raise ValueError(
        f"inference_batch must be in 1..{2 * self.games} (twice the games), found "
        f"{self.inference_batch}.")


class Results(NamedTuple):
  """Games that ended, [iterations, games, ...]."""

  over: Array  # bool: this game ended in this iteration
  opponent: Array  # int32
  reward: Array  # [.., 2] float32: +1, 0, -1
  executed: types.Statistics  # what player 1 did, as player 0 last saw the game
  race: Array  # int32: that of player 1, an index of types.RACES
  side: Array  # int32: the starting side of player 1


class RolloutState(NamedTuple):
  """Everything a batch of games carries from call to call, [games, ...]."""

  key: Array
  environment: Any
  core: types.CoreState  # [games, 2, ...]
  executed: types.Statistics  # [games, 2, ...]: as of each row's last observation; a scripted
  # player's as of its opponent's
  race: Array  # [games, 2] int32
  side: Array  # [games, 2] int32: which of the two starting sides a row has
  pseudo_active: Array  # [games, 2, 4]
  target: types.Statistics  # [games, 2, ...]: z played for, before what is inactive is hidden
  opponent: Array  # [games] int32
  first: Array  # [games, 2] bool
  flushed: Array  # [games, 2] bool: the terminal observation has been recorded
  waited: Array  # [games, 2] int32: iterations a due row has been left out


class Rollouts(NamedTuple):
  """`init(key, opponents, targets) -> state`; `run(params, state, probabilities, targets) ->
  (state, Records, Results)`, which donates `state`."""

  init: Callable[..., RolloutState]
  run: Callable[..., tuple[RolloutState, Records, Results]]


def _rows(tree):
  """[games, 2, ...] -> [2 * games, ...]."""
  return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


def _pairs(tree):
  """[2 * games, ...] -> [games, 2, ...]."""
  return jax.tree.map(lambda x: x.reshape(-1, 2, *x.shape[1:]), tree)


def _select(condition, on_true, on_false):
  """Per-game choice between two trees; `condition` is [games]."""
  def one(a, b):
    return jnp.where(condition.reshape(-1, *[1] * (a.ndim - 1)), a, b)
  return jax.tree.map(one, on_true, on_false)


def no_targets(size: int = 1) -> types.Statistics:
  """A library of unconditional z, [races, 2, size, ...]."""
  return jax.tree.map(lambda x: np.zeros((len(types.RACES), 2, size, *x.shape), x.dtype),
                      types.statistics_spec())


def _new_games(environment: base.Environment, policy: Policy, config: RolloutConfig, key,
               opponents, targets) -> RolloutState:
  """Freshly started games against `opponents` [games], z drawn from `targets` [races, 2, M, ...].

  Targets are by race, and by starting side: where something is to be built depends on where a
  player begins.
  """
  games = config.games
  keys = jax.random.split(key, 7)
  races = jnp.asarray(config.races, jnp.int32)
  # Every other game: both starting sides are played equally often, whatever the key.
  swap = (jnp.arange(games) + jax.random.bernoulli(keys[4])) % 2 == 1
  side = jnp.arange(2) ^ swap[:, None].astype(jnp.int32)
  race = races[jax.random.randint(keys[2], (games, 2), 0, len(config.races))]
  target_index = jax.random.randint(keys[0], (games, 2), 0, targets.build_order.shape[2])
  target = jax.tree.map(lambda x: jnp.asarray(x)[race, side, target_index], targets)
  active = jax.random.bernoulli(
    keys[1], config.pseudo_probability, (games, 2, len(types.PSEUDO_REWARDS)))
  match_up = base.MatchUp(
    races=race,
    map_index=jax.random.randint(keys[3], (games,), 0, config.maps),
    swap_sides=swap,
    statistics=jax.vmap(jax.vmap(rewards.condition))(target, active),
    mmr=jnp.full((games, 2), base.AGENT_MMR, jnp.int16), income=jnp.full((games, 2), 100))
  state = jax.vmap(environment.reset)(jax.random.split(keys[5], games), match_up)
  core = jax.tree.map(lambda x: jnp.broadcast_to(x, (games, 2, *x.shape)), policy.initial_state())
  return RolloutState(
    key=keys[6], environment=state, core=core, executed=jax.tree.map(jnp.zeros_like, target),
    race=race, side=side, pseudo_active=active, target=target, opponent=opponents,
    first=jnp.ones((games, 2), bool),
    flushed=jnp.zeros((games, 2), bool), waited=jnp.zeros((games, 2), jnp.int32))


def _policy_rows(opponent):
  """[games, 2] bool: which rows the policy plays; a scripted opponent is always player 1."""
  return jnp.stack([jnp.ones_like(opponent, bool), opponent == SELF_PLAY], axis=1)


def _gather_due(environment, scripted_player, config: RolloutConfig, key, state: RolloutState):
  """Lets games run until enough rows are due for the policy. Returns (environment state, pending).

  `pending` [games, 2] bool marks rows to be observed: due ones, and those of games that are over
  whose terminal observation is not recorded yet.
  """
  played = _policy_rows(state.opponent)
  script = jnp.maximum(state.opponent - 1, 0)

  def pending(game):
    over = jax.vmap(environment.outcome)(game).over[:, None]
    return played & jnp.where(over, ~state.flushed, jax.vmap(environment.due)(game))

  def more(carry):
    _, waiting, advances = carry
    return (waiting.sum() < config.inference_batch) & (advances < config.max_advances)

  def go_on(carry):
    game, waiting, advances = carry
    keys = jax.random.split(jax.random.fold_in(key, advances), config.games)
    due = jax.vmap(environment.due)(game) & ~played
    action = jax.vmap(functools.partial(scripted_player, player=1))(script, keys, game)
    actions = jax.tree.map(lambda x: jnp.stack([x, x], axis=1), action)
    game = jax.vmap(environment.act)(game, actions, due)
    game = _select(waiting.any(axis=1), game, jax.vmap(environment.advance)(game))
    return game, pending(game), advances + 1

  game, waiting, _ = jax.lax.while_loop(
    more, go_on, (state.environment, pending(state.environment), 0))
  return game, waiting


def make_rollouts(environment: base.Environment, policy: Policy, config: RolloutConfig,
                  scripted_player: ScriptedPlayer,
                  pack_step: Callable[[types.Step], Any] = lambda step: step) -> Rollouts:
  """The compiled program that plays batches of games.

  Args:
    environment: pure functions of a game's state.
    policy: plays player 0, and player 1 in self-play.
    config: sizes.
    scripted_player: plays player 1 of games whose opponent index is above 0.
    pack_step: what is done to the steps [inference_batch, ...] of an iteration before they leave
      the device.

  Returns:
    Rollouts; `probabilities` [1 + scripted players] are those of the next game's opponents.
  """
  size = config.inference_batch

  def init(key, opponents, targets) -> RolloutState:
    state = _new_games(environment, policy, config, key, jnp.asarray(opponents, jnp.int32), targets)
    # Weakly typed leaves would make the second call of `run` compile it again.
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), state)

  def observe_rows(state: RolloutState, rows):
    game = jax.tree.map(lambda x: x[rows // 2], state.environment)
    observation, privileged = jax.vmap(environment.observe)(game, rows % 2)
    outcome = jax.vmap(environment.outcome)(game)
    before, active, target = jax.tree.map(
      lambda x: x[rows], _rows((state.executed, state.pseudo_active, state.target)))
    winloss = jnp.take_along_axis(outcome.reward, (rows % 2)[:, None], axis=1)[:, 0]
    reward = jax.vmap(functools.partial(
      rewards.rewards, scale=config.pseudo_scale, grid_per_unit=config.grid_per_unit))(
      winloss, before, privileged.executed, target, observation.game_loop, active)
    return observation, privileged, outcome.over, reward, active

  def iteration(params, probabilities, targets, state: RolloutState, _):
    key, run_key, act_key, opponent_key, game_key = jax.random.split(state.key, 5)
    game, pending = _gather_due(environment, scripted_player, config, run_key, state)
    state = state._replace(key=key, environment=game)
    priority, rows = jax.lax.top_k(jnp.where(pending, 1 + state.waited, 0).reshape(-1), size)
    valid = priority > 0
    observation, privileged, over, reward, active = observe_rows(state, rows)
    core, first = jax.tree.map(lambda x: x[rows], _rows((state.core, state.first)))
    output = jax.vmap(policy.step, in_axes=(None, 0, 0, 0))(
      params, jax.random.split(act_key, size), observation, core)
    last = over & valid
    acts = valid & ~over
    record = Records(
      row=jnp.where(valid, rows, -1), first=first, last=last, core_state=core,
      step=pack_step(types.Step(
        observation=observation, privileged=privileged, action=output.action,
        log_prob=output.log_prob, reward=reward,
        discount=1.0 - over.astype(jnp.float32), pseudo_active=active,
        weight=jnp.ones((size,), jnp.float32))))

    def put(tree, values, where=valid, rows=rows):
      # Slots that were not filled write out of bounds, which drops them.
      at = jnp.where(where, rows, 2 * config.games)
      return _pairs(jax.tree.map(lambda x, y: x.at[at].set(y, mode="drop"), _rows(tree), values))

    scripted = valid & (state.opponent[rows // 2] > SELF_PLAY)
    seen = put(state.executed, privileged.opponent_executed, scripted, rows ^ 1)
    blank = jax.tree.map(lambda x: jnp.zeros((config.games, 2, *x.shape[1:]), x.dtype),
                         output.action)
    game = jax.vmap(environment.act)(
      game, put(blank, output.action), put(jnp.zeros((config.games, 2), bool), acts))
    state = state._replace(
      environment=game, core=put(state.core, output.state),
      executed=put(seen, privileged.executed),
      first=put(state.first, jnp.zeros_like(valid)), flushed=put(state.flushed, last),
      waited=put(jnp.where(pending, state.waited + 1, 0), jnp.zeros((size,), jnp.int32)))
    return finish(state, probabilities, targets, opponent_key, game_key, record)

  def finish(state: RolloutState, probabilities, targets, opponent_key, game_key, record):
    outcome = jax.vmap(environment.outcome)(state.environment)
    done = outcome.over & (state.flushed | ~_policy_rows(state.opponent)).all(axis=1)
    result = Results(over=done & (state.opponent >= 0), opponent=state.opponent,
                     reward=outcome.reward, race=state.race[:, 1], side=state.side[:, 1],
                     executed=jax.tree.map(lambda x: x[:, 1], state.executed))
    if config.restart:
      opponents = jax.random.choice(
        opponent_key, probabilities.shape[0], (config.games,), p=probabilities).astype(jnp.int32)
      fresh = _new_games(environment, policy, config, game_key, opponents, targets)
      key = state.key
      state = _select(done, fresh._replace(key=()), state._replace(key=()))._replace(key=key)
    else:  # a negative opponent marks a game that has been counted
      state = state._replace(opponent=jnp.where(done, -1, state.opponent))
    return state, (record, result)

  @functools.partial(jax.jit, donate_argnums=(1,))
  def run(params, state, probabilities, targets):
    body = functools.partial(iteration, params, probabilities, targets)
    state, (records, results) = jax.lax.scan(body, state, None, length=config.iterations)
    return state, records, results

  return Rollouts(init=jax.jit(init), run=run)
