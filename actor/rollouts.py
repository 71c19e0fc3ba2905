"""Rollouts: batches of games and batched inference in one compiled program.

Each player chooses its own delays, so at any time only some of the `2 x games` rows (one player of
one game each) are due. An iteration of the program has four parts:

  1. games advance until `inference_batch` rows are due, or a bound is reached;
  2. the policy infers these rows only, those that waited longest first (see `Decider`);
  3. the games take the actions, and each inferred row gives one record;
  4. finished games are replaced by new ones.

No inference is wasted and no game waits for the host. This is the dynamic batching of AlphaStar's
actors (Vinyals et al. 2019, Methods) without a queue.

A record holds an observation, the action taken on it, and the reward since the player's previous
action. The terminal observations of both players are recorded too.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from starleague.actor import behaviour, rewards, rows
from starleague.actor.rollout_types import (
  COUNTED,
  SELF_PLAY,
  Decider,
  Results,
  RolloutConfig,
  Rollouts,
  RolloutState,
  ScriptedPlayer,
)
from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.agent.vocabulary import NUM_UNIT_TYPES
from starleague.data.records import Records
from starleague.data.z.conditioning import Conditioning
from starleague.environments import base, chunks


class _Setup(NamedTuple):
  """The arguments of `make_program`."""

  environment: base.Environment
  decider: Decider
  config: RolloutConfig
  scripted_player: ScriptedPlayer | None
  pack_step: Callable[[types.Step], Any]


class _Batch(NamedTuple):
  """What the rows inferred in an iteration observe, [inference_batch, ...]."""

  row: jax.Array  # int32; any row where the slot is empty
  filled: jax.Array  # bool
  game: Any  # states of the rows' games
  observation: types.Observation
  privileged: types.Privileged
  over: types.Array  # bool
  reward: jax.Array  # [.., 5] float32
  rival_value: jax.Array  # float32: win-loss value of the opponent; 0 at the end
  units: Any  # as `RolloutState.units`
  pseudo_active: jax.Array  # [.., 4] bool

  @property
  def last(self) -> types.Array:
    """[inference_batch] bool: filled slots with a terminal observation."""
    return self.over & self.filled

  @property
  def acts(self) -> types.Array:
    """[inference_batch] bool: filled slots whose action is taken."""
    return self.filled & ~self.over


def _draw_games(setup: _Setup, key: jax.Array, opponents: jax.Array, conditioning: Conditioning,
                ) -> tuple[RolloutState, Callable[[jax.Array], Any]]:
  """Draws games against `opponents` [games], with z for their match-ups.

  Returns:
    The state of the batch without those of its games, and a function that makes the latter: game
    indices [n] -> [n, ...].
  """
  config, games = setup.config, setup.config.games
  keys = jax.random.split(key, 7)
  races = jnp.asarray(config.races, jnp.int32)
  # Alternating sides: both starting sides are played equally often for every key.
  swap = (jnp.arange(games) + jax.random.bernoulli(keys[4])) % 2 == 1
  side = jnp.arange(2) ^ swap[:, None].astype(jnp.int32)
  if conditioning.match_up_probabilities is None:
    race = races[jax.random.randint(keys[2], (games, 2), 0, len(config.races))]
  else:
    logits = jnp.log(jnp.asarray(conditioning.match_up_probabilities))[opponents]
    pair = jax.random.categorical(keys[2], logits.reshape(games, -1))
    race = races[jnp.stack(jnp.divmod(pair, len(races)), axis=1)]
  if conditioning.races is not None:
    fixed = jnp.asarray(conditioning.races)[opponents]
    race = jnp.where(fixed < 0, race, fixed)
  map_index = jax.random.randint(keys[3], (games,), 0, config.maps)
  options = jnp.asarray(conditioning.rows)[map_index[:, None], race, race[:, ::-1], side]
  if conditioning.goals is None:
    choice = jax.random.randint(keys[0], (games, 2), 0, options.shape[-1])
  else:
    goal = jnp.asarray(conditioning.goal)[opponents][..., None]
    choice = jax.random.categorical(keys[0], jnp.asarray(conditioning.goals)[goal, options])
  row = jnp.take_along_axis(options, choice[..., None], axis=-1)[..., 0]
  z = jax.tree.map(lambda x: jnp.asarray(x)[row], conditioning.z)
  probabilities = jnp.asarray(conditioning.active)
  active = jax.random.bernoulli(
    keys[1], probabilities[opponents] if probabilities.ndim == 3 else probabilities,
    (games, 2, len(types.PSEUDO_REWARDS)))
  active &= setup.decider.plays(opponents)[..., None]  # a scripted player has no z
  mmr, income = setup.decider.strength(opponents, conditioning)
  match_up = base.MatchUp(
    races=race, map_index=map_index, swap_sides=swap,
    z=jax.vmap(jax.vmap(rewards.condition))(z, active), mmr=mmr, income=income)
  reset_keys = jax.random.split(keys[5], games)

  def start(game: jax.Array) -> Any:
    return jax.vmap(setup.environment.reset)(
      reset_keys[game], jax.tree.map(lambda x: x[game], match_up))

  core = jax.tree.map(
    lambda x: jnp.broadcast_to(x, (games, 2, *x.shape)), setup.decider.initial_state())
  state = RolloutState(
    key=keys[6], environment=(), core=core, plan=setup.decider.initial_plan(games),
    executed=jax.tree.map(jnp.zeros_like, z),
    race=race, side=side, map_index=map_index, pseudo_active=active, z=z,
    opponent=opponents, first=jnp.ones((games, 2), bool),
    flushed=jnp.zeros((games, 2), bool), waited=jnp.zeros((games, 2), jnp.int32),
    value=jnp.zeros((games, 2)), rival_value=jnp.zeros((games, 2)),
    units=() if conditioning.objectives is None else jnp.zeros(
      (games, 2, 2, NUM_UNIT_TYPES), jnp.uint8), track=behaviour.start((games, 2)))
  return state, start


def _advance_until_due(setup: _Setup, key: jax.Array,
                       state: RolloutState) -> tuple[Any, Any, jax.Array]:
  """Advances games, scripted players included, until enough rows of the decider are due.

  Games with a pending row wait; the others advance together.

  Returns:
    The environment state, the plans, and `pending` [games, 2] bool: rows to be observed, that is,
    due rows, and rows of finished games whose terminal observation is not recorded yet.
  """
  environment, config, decider = setup.environment, setup.config, setup.decider
  played, script = decider.plays(state.opponent), decider.script(state.opponent)

  def pending(game, plan):
    over = jax.vmap(environment.outcome)(game).over[:, None]
    ready = jax.vmap(environment.due)(game) if decider.ready is None else decider.ready(plan)
    return played & jnp.where(over, ~state.flushed, ready)

  def too_few(carry):
    *_, waiting, advances = carry
    return (waiting.sum() < config.inference_batch) & (advances < config.max_advances)

  def advance(carry):
    game, plan, waiting, advances = carry
    if setup.scripted_player is not None:
      game = _act_scripted(setup, setup.scripted_player, jax.random.fold_in(key, advances), game,
                           played, script)
    # Finished games, where none replaces them, wait for ever.
    idle = ~waiting.any(axis=1) & ~jax.vmap(environment.outcome)(game).over
    game = chunks.update_chosen(
      lambda _, chosen: jax.vmap(environment.advance)(chosen), idle, game, config.chunk)
    plan = decider.look(jax.random.fold_in(key, advances), game, plan, state.opponent, idle)
    return game, plan, pending(game, plan), advances + 1

  game = state.environment
  plan = decider.look(jax.random.fold_in(key, config.max_advances), game, state.plan,
                      state.opponent, jnp.zeros(config.games, bool))
  game, plan, waiting, _ = jax.lax.while_loop(
    too_few, advance, (game, plan, pending(game, plan), 0))
  return game, plan, waiting


def _act_scripted(setup: _Setup, scripted_player: ScriptedPlayer, key: jax.Array, game: Any,
                  played: jax.Array, script: jax.Array) -> Any:
  """Gives games the actions of scripted players that are due.

  Args:
    setup: of the program.
    scripted_player: plays player 1.
    key: random key of the players.
    game: states of the games.
    played: [games, 2] bool: rows of the decider.
    script: [games] int32: index of the scripted player.
  """
  environment = setup.environment
  keys = jax.random.split(key, setup.config.games)
  due = jax.vmap(environment.due)(game) & ~played

  def act(game_index: jax.Array, game: Any) -> Any:
    action = jax.vmap(scripted_player, in_axes=(0, 0, 0, None))(
      script[game_index], keys[game_index], game, jnp.int32(1))
    actions = jax.tree.map(lambda x: jnp.stack([x, x], axis=1), action)
    return jax.vmap(environment.act)(game, actions, due[game_index])

  return chunks.update_chosen(act, due.any(axis=1), game, setup.config.chunk)


def _observe(setup: _Setup, params: Any, state: RolloutState, pending: jax.Array,
             conditioning: Conditioning) -> _Batch:
  """Observes `inference_batch` pending rows, chosen by the decider."""
  environment, config = setup.environment, setup.config
  priority = jnp.where(pending, 1 + state.waited, 0).reshape(-1)
  row, filled = setup.decider.choose_rows(
    params, priority, state.opponent, config.inference_batch)
  game = jax.tree.map(lambda x: x[row // 2], state.environment)
  observation, privileged = jax.vmap(environment.observe)(game, row % 2)
  outcome = jax.vmap(environment.outcome)(game)
  before, active, z = rows.gather((state.executed, state.pseudo_active, state.z), row)
  result = jnp.take_along_axis(outcome.reward, (row % 2)[:, None], axis=1)[:, 0]
  winloss = rewards.winloss_reward(outcome.over, result, config.draw)
  reward = jax.vmap(functools.partial(
    rewards.rewards, scale=config.pseudo_scale, grid_per_unit=config.grid_per_unit))(
    winloss, before, privileged.executed, z, observation.game_loop, active)
  rival_value = jnp.where(outcome.over, 0.0, state.value.reshape(-1)[row ^ 1])
  units = () if conditioning.objectives is None else jnp.stack(
    [observation.unit_counts, privileged.opponent_unit_counts], axis=1)
  reward = _add_personal(reward, state, conditioning, row, rival_value, units)
  return _Batch(row, filled, game, observation, privileged, outcome.over, reward, rival_value,
                units, active)


def _add_personal(reward: jax.Array, state: RolloutState, conditioning: Conditioning,
                  row: jax.Array, rival_value: jax.Array, units: Any) -> jax.Array:
  """Adds to the result's rewards those that the conditioning gives some players."""
  if conditioning.minimax is not None:
    factor = jnp.asarray(conditioning.minimax)[state.opponent].reshape(-1)[row]
    reward = reward.at[:, 0].add(
      rewards.minimax_reward(rows.gather(state.rival_value, row), rival_value, factor))
  if conditioning.objectives is not None:
    number = jnp.asarray(conditioning.objective)[state.opponent].reshape(-1)[row]
    before, first = rows.gather((state.units, state.first), row)
    found = jax.vmap(rewards.objective_reward)(
      before[:, 0], units[:, 0], before[:, 1], units[:, 1],
      jnp.asarray(conditioning.objectives)[number])
    reward = reward.at[:, 0].add(jnp.where(first, 0.0, found))  # units of the start are not built
  return reward


def _infer(setup: _Setup, params: Any, key: jax.Array, state: RolloutState,
           batch: _Batch) -> tuple[StepOutput, Records]:
  """Runs the decider on a batch of rows. Returns its output and the records."""
  size = setup.config.inference_batch
  core, first = rows.gather((state.core, state.first), batch.row)
  plan = jax.tree.map(lambda x: x[batch.row // 2], state.plan)
  output = setup.decider.decide(
    params, jax.random.split(key, size), batch.game, batch.row % 2, state.opponent[batch.row // 2],
    batch.observation, batch.privileged, core, plan)
  step = types.Step(
    observation=batch.observation, privileged=batch.privileged,
    action=setup.decider.recorded(output), log_prob=output.log_prob, reward=batch.reward,
    discount=1.0 - batch.over.astype(jnp.float32), pseudo_active=batch.pseudo_active,
    weight=jnp.ones((size,), jnp.float32))
  return output, Records(
    row=jnp.where(batch.filled, batch.row, -1), first=first, last=batch.last, core_state=core,
    step=setup.pack_step(step))


def _act(setup: _Setup, state: RolloutState, pending: jax.Array, batch: _Batch,
         output: StepOutput) -> RolloutState:
  """Gives the actions to the games and updates the rows of the batch."""
  games, row = setup.config.games, batch.row

  def put(tree: Any, values: Any, where: types.Array = batch.filled,
          row: jax.Array = row) -> Any:
    return rows.scatter(tree, row, where, values)

  # A scripted player never observes: its executed statistics are those that its
  # opponent observed.
  scripted = batch.filled & ~setup.decider.plays(state.opponent).reshape(-1)[row ^ 1]
  executed = put(state.executed, batch.privileged.opponent_executed, scripted, row ^ 1)
  blank = jax.tree.map(lambda x: jnp.zeros((games, 2, *x.shape[1:]), x.dtype), output.action)
  game = jax.vmap(setup.environment.act)(
    state.environment, put(blank, output.action), put(jnp.zeros((games, 2), bool), batch.acts))
  if setup.decider.value is not None:
    state = state._replace(value=put(state.value, setup.decider.value(output)),
                           rival_value=put(state.rival_value, batch.rival_value))
  return state._replace(
    environment=game, core=put(state.core, output.state),
    executed=put(executed, batch.privileged.executed),
    first=put(state.first, jnp.zeros_like(batch.filled)), flushed=put(state.flushed, batch.last),
    waited=put(jnp.where(pending, state.waited + 1, 0), jnp.zeros(row.shape, jnp.int32)),
    units=put(state.units, batch.units), track=_follow(state.track, batch, scripted))


def _follow(track: behaviour.Track, batch: _Batch, scripted: jax.Array) -> behaviour.Track:
  """Follows the players of the batch's rows, and those scripted ones that they play against."""
  loop = batch.observation.game_loop
  for row, filled, player, score in (
      (batch.row, batch.filled, batch.observation.player, batch.privileged.cumulative_score),
      (batch.row ^ 1, scripted, batch.privileged.opponent_player,
       batch.privileged.opponent_cumulative_score)):
    found = behaviour.follow(rows.gather(track, row), player, score, loop)
    track = rows.scatter(track, row, filled, found)
  return track


def _finish_games(setup: _Setup, keys: tuple[jax.Array, jax.Array], state: RolloutState,
                  probabilities: jax.Array, conditioning: Conditioning,
                  ) -> tuple[RolloutState, Results]:
  """Gives the results of finished games and starts new games in their place."""
  config = setup.config
  outcome = jax.vmap(setup.environment.outcome)(state.environment)
  done = outcome.over & (state.flushed | ~setup.decider.plays(state.opponent)).all(axis=1)
  results = Results(over=done & (state.opponent != COUNTED), opponent=state.opponent,
                    reward=outcome.reward, executed=state.executed, z=state.z,
                    race=state.race, side=state.side, map_index=state.map_index,
                    track=state.track)
  if not config.restart:
    return state._replace(opponent=jnp.where(done, COUNTED, state.opponent)), results
  opponent_key, game_key = keys
  opponents = jax.random.choice(
    opponent_key, probabilities.shape[0], (config.games,), p=probabilities).astype(jnp.int32)
  new, start = _draw_games(setup, game_key, opponents, conditioning)
  environment = chunks.update_chosen(
    lambda game, _: start(game), done, state.environment, config.restart_chunk)
  # All other fields are per game but the first, the key of the batch.
  state = RolloutState(state.key, (), *rows.select(done, new[2:], state[2:]))
  return state._replace(environment=environment), results


def make_rollouts(environment: base.Environment, policy: Policy, config: RolloutConfig,
                  scripted_player: ScriptedPlayer,
                  pack_step: Callable[[types.Step], Any] = lambda step: step) -> Rollouts:
  """Makes the compiled program that plays batches of a policy's games.

  Args:
    environment: pure functions of a game's state.
    policy: plays player 0, and player 1 in self-play.
    config: sizes.
    scripted_player: plays player 1 of games whose opponent index is above 0.
    pack_step: applied on the device to the steps [inference_batch, ...] of an iteration.

  Returns:
    Rollouts. `probabilities` [1 + scripted players] are those of a new game's opponents;
    `conditioning` has rows for all maps of the config.
  """
  def decide(params, keys, game, player, opponent, observation, privileged, core,
             plan) -> StepOutput:
    del game, player, opponent, privileged, plan
    return jax.vmap(policy.step, in_axes=(None, 0, 0, 0))(params, keys, observation, core)

  def plays(opponent: jax.Array) -> jax.Array:
    return jnp.stack([jnp.ones_like(opponent, bool), opponent == SELF_PLAY], axis=1)

  decider = Decider(decide, policy.initial_state, plays, agents_strength)
  return make_program(environment, decider, config, scripted_player, pack_step)


def agents_strength(opponent: jax.Array,
                    conditioning: Conditioning) -> tuple[jax.Array, jax.Array]:
  """Returns the conditioning's MMR and income of games: [games, 2] int16 and int32."""
  shape = (*opponent.shape, 2)
  income = (jnp.full(shape, 100) if conditioning.income is None
            else jnp.asarray(conditioning.income)[opponent])
  return jnp.full(shape, conditioning.mmr, jnp.int16), income


def make_program(environment: base.Environment, decider: Decider, config: RolloutConfig,
                 scripted_player: ScriptedPlayer | None,
                 pack_step: Callable[[types.Step], Any]) -> Rollouts:
  """Makes the compiled program that plays batches of games; see `make_rollouts`.

  Args:
    environment, config, pack_step: as for `make_rollouts`.
    decider: plays the rows that are recorded.
    scripted_player: plays player 1 where the decider does not; None: the decider plays all rows.
  """
  setup = _Setup(environment, decider, config, scripted_player, pack_step)

  def init(key, opponents, conditioning) -> RolloutState:
    state, start = _draw_games(setup, key, jnp.asarray(opponents, jnp.int32), conditioning)
    state = state._replace(environment=start(jnp.arange(config.games)))
    # Weakly typed leaves would make the second call of `run` compile again.
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), state)

  @functools.partial(jax.jit, donate_argnums=(1,))
  def run(params, state, probabilities, conditioning):
    def iteration(state, _):
      key, advance_key, action_key, *new_keys = jax.random.split(state.key, 5)
      game, plan, pending = _advance_until_due(setup, advance_key, state)
      state = state._replace(key=key, environment=game, plan=plan)
      batch = _observe(setup, params, state, pending, conditioning)
      output, records = _infer(setup, params, action_key, state, batch)
      state = _act(setup, state, pending, batch, output)
      state, results = _finish_games(setup, tuple(new_keys), state, probabilities, conditioning)
      return state, (records, results)

    state, (records, results) = jax.lax.scan(iteration, state, None, length=config.iterations)
    return state, records, results

  return Rollouts(init=jax.jit(init), run=run)
