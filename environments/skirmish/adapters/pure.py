"""Skirmish as pure functions, in the manner of JaxMARL (both players) and gymnax (one player).

  environment = Solo("rusher")
  observation, state = environment.reset(key)
  mask = environment.get_avail_actions(state)
  observation, state, reward, done, info = environment.step(key, state, action)

All methods are pure, with static shapes: jit and vmap them. `step` starts the next game when one is
over: with `_, reset_key = jax.random.split(key)`, the state is then that of `reset(reset_key)`.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.adapters import features, macros
from starleague.environments.skirmish.bots import players, scripts
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.games.dm_environment import RANDOM
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.interface import observation
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

AGENTS = ("player_0", "player_1")
OBSERVATIONS = ("flat", "full")
ACTIONS = ("small", "full")


class Discrete(NamedTuple):
  """The integers from 0 to n - 1."""

  n: int
  shape: tuple[int, ...] = ()
  dtype: Any = jnp.int32

  def sample(self, key: Array) -> Array:
    """Returns a random value."""
    return jax.random.randint(key, (), 0, self.n, self.dtype)

  def contains(self, value: Array) -> Array:
    """Returns whether a value is one of them."""
    return (value >= 0) & (value < self.n)


class Box(NamedTuple):
  """Arrays of a shape with values from `low` to `high`, both included."""

  low: Any
  high: Any
  shape: tuple[int, ...]
  dtype: Any

  def sample(self, key: Array) -> Array:
    """Returns random integers.

    Raises:
      ValueError: the space is of floats, which has no limits to draw from.
    """
    if jnp.issubdtype(self.dtype, jnp.floating):
      raise ValueError("Box.sample: expected a space of integers or booleans, found "
                       f"{jnp.dtype(self.dtype).name}, which has no limits to draw from")
    if self.high == np.iinfo(np.int32).max:  # all of int32: `randint` cannot take the limit
      return jax.lax.bitcast_convert_type(jax.random.bits(key, self.shape, jnp.uint32), jnp.int32)
    return jax.random.randint(key, self.shape, self.low, self.high + 1).astype(self.dtype)

  def contains(self, value: Array) -> Array:
    """Returns whether all values are within the limits."""
    return jnp.all((value >= self.low) & (value <= self.high))


class SoloState(NamedTuple):
  """A game of one player against a scripted one."""

  game: State
  opponent: Array  # [] int32, index of the tier's scripted players


def _choose(what: str, name: str, known: Sequence[str]) -> str:
  if name not in known:
    raise ValueError(f"{what} {name!r}: expected one of {', '.join(known)}")
  return name


class _Environment:
  """What both environments share: the tier, the match-ups, observations and actions.

  Attributes:
    tier, rules: the tier's name and constants.
    loops: game loops of a step with small actions.
    action_names: names of the small actions.
  """

  def __init__(self, tier: str, races: Sequence[str], map_name: str, loops: int,
               observations: str, actions: str):
    self.tier = _choose("tier", tier, tuple(GAME_CONFIGS))
    self.config = GAME_CONFIGS[tier]
    most = types.MAX_DELAY // constants.LOOPS_PER_STEP * constants.LOOPS_PER_STEP
    if loops % constants.LOOPS_PER_STEP or not 0 < loops <= most:
      raise ValueError(f"loops: expected a multiple of {constants.LOOPS_PER_STEP} up to {most}, "
                       f"found {loops}")
    self.loops = loops
    self.observations = _choose("observations", observations, OBSERVATIONS)
    self.actions = _choose("actions", actions, ACTIONS)
    self.rules = tables.make_rules(**self.config._asdict())
    dm_environment.draw_match_up(np.random.default_rng(0), tier, races, map_name)
    playable, maps = dm_environment.playable(tier), dm_environment.map_names(tier)
    self._races = [np.array([dm_environment.race_index(name, tier) for name in (
      playable if race == RANDOM else (race,))], np.int32) for race in races]
    self._maps = np.array([maps.index(name) for name in (
      maps if map_name == RANDOM else (map_name,))], np.int32)
    self._environment = skirmish.make_skirmish(**self.config._asdict())
    self.action_names = macros.names(self.rules)

  def _start(self, key: Array, **settings: Any) -> State:
    """Returns the first state of a game with drawn races, map and sides."""
    keys = jax.random.split(key, 5)
    races = jnp.stack([_draw(keys[i], names) for i, names in enumerate(self._races)])
    match_up = base.make_match_up(
      races, _draw(keys[2], self._maps), jax.random.bernoulli(keys[3]), **settings)
    return self._environment.reset(keys[4], match_up)

  def _observe(self, state: State, player: Array) -> Any:
    """Returns a player's observation."""
    if self.observations == "flat":
      return features.features(self.rules, state, player)
    return observation.observe(self.rules, state, player)[0]

  def _mask(self, state: State, player: Array) -> Array:
    """Returns the mask of a player's actions, of functions for full ones."""
    if self.actions == "small":
      return macros.mask(self.rules, state, player)
    return observation.observe(self.rules, state, player)[0].available_actions

  def _to_action(self, state: State, player: Array, action: Any) -> types.Action:
    """Returns a player's action as the game takes it."""
    if self.actions == "small":
      return macros.action(self.rules, state, player, action, self.loops)
    spec = types.action_spec(self.config.max_selected)
    return jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), action, spec)

  def _play(self, state: State, agents: np.ndarray, actions: Any) -> State:
    """Plays until an agent is due or the game is over: at least one environment step.

    Args:
      state: the game.
      agents: [2] bool: the players that are agents.
      actions: (state, step) -> both players' actions [2, ...].
    """
    environment = self._environment

    def play_once(step, state):
      return environment.advance(
        environment.act(state, actions(state, step), environment.due(state)))

    if self.actions == "small":  # every agent is due after `loops`
      return jax.lax.fori_loop(0, self.loops // constants.LOOPS_PER_STEP, play_once, state)

    def goes_on(carry):
      step, state = carry
      due = jnp.any(environment.due(state) & agents)
      return (step == 0) | ~(due | (state.winner >= 0))

    return jax.lax.while_loop(
      goes_on, lambda carry: (carry[0] + 1, play_once(*carry)), (0, state))[1]

  def _observation_box(self) -> Any:
    """Returns the space of observations."""
    if self.observations == "flat":
      return Box(-jnp.inf, jnp.inf, (features.size(self.rules),), jnp.float32)
    spec = types.observation_spec(self.config.max_entities, self.config.map_size)
    return jax.tree.map(_box_of, spec)

  def _action_set(self) -> Any:
    """Returns the space of actions."""
    if self.actions == "small":
      return Discrete(len(self.action_names))
    spec = dm_environment.action_spec(self.config)
    return types.Action(*(
      Box(int(each.minimum), int(each.maximum), each.shape, each.dtype) for each in spec))


def _box_of(spec: jax.ShapeDtypeStruct) -> Box:
  if spec.dtype == np.bool_:
    return Box(0, 1, spec.shape, spec.dtype)
  return Box(np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max, spec.shape, spec.dtype)


def _draw(key: Array, values: np.ndarray) -> Array:
  """One of a few values."""
  return jnp.asarray(values)[jax.random.randint(key, (), 0, len(values))]


def _renewed(done: Array, new: Any, old: Any) -> Any:
  return jax.tree.map(lambda a, b: jnp.where(done, a, b), new, old)


class Duel(_Environment):
  """Both players, with JaxMARL's methods: dicts by agent, `player_0` and `player_1`.

  Rewards are +1 for a win and -1 for a loss, 0 for a draw and before the end.
  """

  def __init__(self, tier: str = "mini", *, races: Sequence[str] = (RANDOM, RANDOM),
               map_name: str = RANDOM, loops: int = 16, observations: str = "flat",
               actions: str = "small"):
    """Makes the environment.

    Args:
      tier: a name of `GAME_CONFIGS`.
      races: of the two players, or "random".
      map_name: a map of the tier, or "random".
      loops: game loops of a step with small actions, a multiple of 8. Full actions have a delay: a
        step lasts until a player is due, and the actions of players that are not due are ignored.
      observations: "flat", see `features`, or "full": `types.Observation`.
      actions: "small", see `macros`, or "full": `types.Action`.

    Raises:
      ValueError: an unknown name, or `loops` out of range.
    """
    super().__init__(tier, races, map_name, loops, observations, actions)
    self.agents = list(AGENTS)
    self.num_agents = len(AGENTS)

  @property
  def name(self) -> str:
    """The name of the environment."""
    return f"skirmish_{self.tier}"

  def observation_space(self, agent: str = AGENTS[0]) -> Any:
    """Returns the space of an agent's observations."""
    del agent
    return self._observation_box()

  def action_space(self, agent: str = AGENTS[0]) -> Any:
    """Returns the space of an agent's actions."""
    del agent
    return self._action_set()

  def reset(self, key: Array) -> tuple[dict[str, Any], State]:
    """Starts a game: (observations, state)."""
    state = self._start(key)
    return self.get_obs(state), state

  def get_obs(self, state: State) -> dict[str, Any]:
    """Returns the observations."""
    return self._by_agent(functools.partial(self._observe, state))

  def get_avail_actions(self, state: State) -> dict[str, Array]:
    """Returns the masks of the actions: what has an effect now."""
    return self._by_agent(functools.partial(self._mask, state))

  def step_env(self, key: Array, state: State, actions: Mapping[str, Any]) -> tuple:
    """Plays a step without a reset: see `step`."""
    state, rewards, dones, infos = self._step(key, state, actions)
    return self.get_obs(state), state, rewards, dones, infos

  def step(self, key: Array, state: State, actions: Mapping[str, Any]) -> tuple:
    """Plays a step, and starts the next game if this one is over.

    Returns:
      (observations, state, rewards, dones, infos); `dones` has "__all__" too.
    """
    key, reset_key = jax.random.split(key)
    state, rewards, dones, infos = self._step(key, state, actions)
    state = _renewed(dones["__all__"], self._start(reset_key), state)
    return self.get_obs(state), state, rewards, dones, infos

  def _step(self, key: Array, state: State, actions: Mapping[str, Any]) -> tuple:
    del key  # both players' actions are given, and the rules draw nothing
    taken = [self._to_action(state, jnp.int32(player), actions[agent])
             for player, agent in enumerate(AGENTS)]
    both = jax.tree.map(lambda *values: jnp.stack(values), *taken)
    state = self._play(state, np.ones(2, bool), lambda now, step: both)
    outcome = skirmish.outcome(state)
    rewards = dict(zip(AGENTS, outcome.reward, strict=True))
    return state, rewards, dict.fromkeys((*AGENTS, "__all__"), outcome.over), {}

  def _by_agent(self, function: Any) -> dict[str, Any]:
    """Values of both players, from one program."""
    both = jax.vmap(function)(jnp.arange(len(AGENTS)))
    return {agent: jax.tree.map(lambda values, i=i: values[i], both)
            for i, agent in enumerate(AGENTS)}


class Solo(_Environment):
  """One player against scripted ones, with gymnax's methods; `params` is not used.

  The reward is +1 for a win and -1 for a loss, 0 for a draw and before the end.
  """

  default_params: Any = None

  def __init__(self, opponents: str | Sequence[str] = "rusher", *, tier: str = "mini",
               races: Sequence[str] = (RANDOM, RANDOM), map_name: str = RANDOM, loops: int = 16,
               observations: str = "flat", actions: str = "small"):
    """Makes the environment.

    Args:
      opponents: names of scripted players of the tier; each game draws one.
      tier: a name of `GAME_CONFIGS`.
      races: of the player and of the opponent, or "random".
      map_name: a map of the tier, or "random".
      loops: game loops of a step with small actions, a multiple of 8. Full actions have a delay.
      observations: "flat", see `features`, or "full": `types.Observation`.
      actions: "small", see `macros`, or "full": `types.Action`.

    Raises:
      ValueError: an unknown name, or `loops` out of range.
    """
    super().__init__(tier, races, map_name, loops, observations, actions)
    named = (opponents,) if isinstance(opponents, str) else tuple(opponents)
    self._opponents = scripts.indices_of(named, tier)
    skills = [script.skill for script in scripts.scripts_of(tier)]
    self._mmr = np.array([skill.mmr for skill in skills], np.int16)
    self._income = np.array([skill.income for skill in skills], np.int32)
    self._script = players.make_scripted(**self.config._asdict())

  @property
  def name(self) -> str:
    """The name of the environment."""
    return f"skirmish_{self.tier}_solo"

  @property
  def num_actions(self) -> int:
    """The number of small actions, or of functions."""
    space = self._action_set()
    return space.n if isinstance(space, Discrete) else space.function.high + 1

  def observation_space(self, params: Any = None) -> Any:
    """Returns the space of observations."""
    del params
    return self._observation_box()

  def action_space(self, params: Any = None) -> Any:
    """Returns the space of actions."""
    del params
    return self._action_set()

  def reset(self, key: Array, params: Any = None) -> tuple[Any, SoloState]:
    """Starts a game: (observation, state)."""
    del params
    state = self._start_solo(key)
    return self.get_obs(state), state

  def get_obs(self, state: SoloState) -> Any:
    """Returns the observation."""
    return self._observe(state.game, jnp.int32(0))

  def get_avail_actions(self, state: SoloState) -> Array:
    """Returns the mask of the actions: what has an effect now."""
    return self._mask(state.game, jnp.int32(0))

  def step_env(self, key: Array, state: SoloState, action: Any, params: Any = None) -> tuple:
    """Plays a step without a reset: see `step`."""
    del params
    state, reward, done, info = self._step(key, state, action)
    return self.get_obs(state), state, reward, done, info

  def step(self, key: Array, state: SoloState, action: Any, params: Any = None) -> tuple:
    """Plays a step, and starts the next game if this one is over.

    Returns:
      (observation, state, reward, done, info); info has the discount.
    """
    del params
    key, reset_key = jax.random.split(key)
    state, reward, done, info = self._step(key, state, action)
    state = _renewed(done, self._start_solo(reset_key), state)
    return self.get_obs(state), state, reward, done, info

  def _start_solo(self, key: Array) -> SoloState:
    key, opponent_key = jax.random.split(key)
    opponent = _draw(opponent_key, self._opponents)
    agent = base.make_match_up()
    mmr = jnp.stack([agent.mmr[0], jnp.asarray(self._mmr)[opponent]])
    income = jnp.stack([agent.income[0], jnp.asarray(self._income)[opponent]])
    return SoloState(self._start(key, mmr=mmr, income=income), opponent)

  def _step(self, key: Array, state: SoloState, action: Any) -> tuple:
    mine = self._to_action(state.game, jnp.int32(0), action)

    def actions(now: State, step: Array) -> types.Action:
      theirs = self._script(state.opponent, jax.random.fold_in(key, step), now, jnp.int32(1))
      return jax.tree.map(lambda a, b: jnp.stack([a, b.astype(a.dtype)]), mine, theirs)

    game = self._play(state.game, np.array([True, False]), actions)
    outcome = skirmish.outcome(game)
    info = {"discount": 1.0 - outcome.over.astype(jnp.float32)}
    return SoloState(game, state.opponent), outcome.reward[0], outcome.over, info
