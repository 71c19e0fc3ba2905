"""Skirmish as a `dm_env.Environment` for one player against a script, an agent or a function.

  environment = SkirmishEnvironment("L5", races=("protoss", "zerg"), map_name="ramps", seed=1)
  timestep = environment.reset()
  while not timestep.last():
    timestep = environment.step(my_policy(timestep.observation))

Observations and actions are `types.Observation` and `types.Action`.
"""

from collections.abc import Callable, Sequence

import dm_env
import jax
import numpy as np
from dm_env import specs

from starleague.agent import types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish.games import live, replay_format, replays
from starleague.environments.skirmish.rules.tables import constants, maps, tables, tiers
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS, GameConfig

# A scripted player's name, a Controller, or a function of the opponent's observation.
Function = Callable[[types.Observation], types.Action]
Opponent = str | replays.Controller | Function
RANDOM = "random"  # drawn for each game


def race_index(name: str, tier: str) -> int:
  """Returns the index in types.RACES of a race of a tier.

  Raises:
    ValueError: the tier does not have a race of that name.
  """
  known = playable(tier)
  if name not in known:
    raise ValueError(f"race {name!r}: expected one of {', '.join(known)} in tier {tier}")
  return types.RACES.index(name)


def playable(tier: str) -> tuple[str, ...]:
  """Returns the names of the races of a tier."""
  if tier not in tiers.TIERS:
    raise ValueError(f"unknown tier {tier!r}: choose one of {', '.join(tiers.TIERS)}")
  rules = tables.make_rules(*GAME_CONFIGS[tier])
  return tuple(constants.RACES[race].lower() for race in rules.races)


def map_names(tier: str) -> tuple[str, ...]:
  """Returns the names of the maps of a tier; flat tiers have one."""
  return maps.NAMES if tiers.TIERS[tier].field_block else maps.NAMES[:1]


def map_index(name: str, tier: str) -> int:
  """Returns the index of a map of a tier.

  Raises:
    ValueError: the tier does not have a map of that name.
  """
  known = map_names(tier)
  if name not in known:
    raise ValueError(f"map {name!r}: expected one of {', '.join(known)} in tier {tier}")
  return known.index(name)


def draw_match_up(rng: np.random.Generator, tier: str, races: Sequence[str] = (RANDOM, RANDOM),
                  map_name: str = RANDOM, swap_sides: bool | None = None) -> base.MatchUp:
  """Returns a match-up whose races, map and sides are given or drawn.

  Args:
    rng: random numbers for the values that are not given.
    tier: a name of `tiers.TIERS`.
    races: player 0's and player 1's, or "random".
    map_name: one of `map_names(tier)`, or "random".
    swap_sides: player 0 starts in the second position; None: drawn.

  Raises:
    ValueError: an unknown name.
  """
  if len(races) != 2:
    raise ValueError(f"races: expected 2, found {len(races)}")
  # All values are drawn, given or not: a given map does not change the races.
  drawn = [str(rng.choice(playable(tier))) for _ in range(2)]
  place, swap = str(rng.choice(map_names(tier))), bool(rng.integers(2))
  named = [found if race == RANDOM else race for found, race in zip(drawn, races, strict=True)]
  return replays.make_match_up(
    races=(race_index(named[0], tier), race_index(named[1], tier)),
    map_index=map_index(place if map_name == RANDOM else map_name, tier),
    swap_sides=swap if swap_sides is None else swap_sides)


def action_spec(game: GameConfig) -> types.Action:
  """Returns specs of an action with the least and the greatest value of each argument."""
  limits = {
    "function": (0, vocabulary.NUM_FUNCTIONS - 1), "delay": (1, types.MAX_DELAY), "queued": (0, 1),
    "repeat": (0, 2), "units": (0, game.max_entities), "target_unit": (0, game.max_entities - 1),
    "location": (0, game.location_size ** 2 - 1)}
  shapes = types.action_spec(game.max_selected)._asdict()
  return types.Action(*(
    specs.BoundedArray(shape.shape, shape.dtype, *limits[name], name=f"action.{name}")
    for name, shape in shapes.items()))


def observation_spec(game: GameConfig) -> types.Observation:
  """Returns specs of an observation."""
  shapes = types.observation_spec(game.max_entities, game.map_size)

  def spec(path, shape):
    name = "observation" + "".join(f".{key.name}" for key in path)
    if shape.dtype == np.bool_:
      return specs.BoundedArray(shape.shape, shape.dtype, False, True, name=name)
    return specs.Array(shape.shape, shape.dtype, name=name)

  return jax.tree_util.tree_map_with_path(spec, shapes)


def check_action(action: types.Action, spec: types.Action) -> types.Action:
  """Checks an action and returns it in the specs' dtypes.

  Raises:
    TypeError: it is no Action, or an argument is not of integers.
    ValueError: an argument has a wrong shape or is out of its range.
  """
  if not isinstance(action, types.Action):
    raise TypeError(f"action: expected types.Action, found {type(action).__name__}")
  values = []
  for (name, like), value in zip(spec._asdict().items(), action, strict=True):
    array = np.asarray(value)
    if array.dtype.kind not in "iub":
      raise TypeError(f"action.{name}: expected integers ({like.dtype}), found {array.dtype}")
    if array.shape != like.shape:
      raise ValueError(f"action.{name}: expected shape {like.shape}, found {array.shape}")
    low, high = int(like.minimum), int(like.maximum)
    wrong = array[(array.astype(np.int64) < low) | (array.astype(np.int64) > high)]
    if wrong.size:
      raise ValueError(f"action.{name}: expected {low} to {high}, found {int(wrong.flat[0])}")
    values.append(array.astype(like.dtype))
  return types.Action(*values)


class SkirmishEnvironment(dm_env.Environment):
  """One player's side of consecutive games. Equal arguments give equal games, bit for bit."""

  def __init__(self, opponent: Opponent = "L5", *, game: GameConfig = GAME_CONFIGS["default"],
               races: Sequence[str] = (RANDOM, RANDOM), map_name: str = RANDOM,
               player: int = 0, swap_sides: bool | None = None, seed: int = 0):
    """Makes the environment; `reset` starts a game.

    Args:
      opponent: a scripted player's name, a `replays.Controller` made for `game`, or a function of
        the opponent's observation. A function keeps its own memory; an observation at game loop 0
        starts a new game.
      game: the sizes; see `GAME_CONFIGS`.
      races: of the user and of the opponent, or "random".
      map_name: one of `map_names(tier)`, or "random".
      player: the user's index, 0 or 1; it matters only for replays.
      swap_sides: player 0 starts in the second position; None: drawn for each game.
      seed: of the match-ups, the games and the scripts' noise; 0 or more.

    Raises:
      ValueError: an unknown name, a seed below 0, or sizes too small for the tier.
    """
    tables.make_rules(*game)
    if player not in (0, 1):
      raise ValueError(f"player: expected 0 or 1, found {player}")
    if seed < 0:
      raise ValueError(f"seed: expected 0 or more, found {seed}")
    draw_match_up(np.random.default_rng(0), game.tier, races, map_name)
    self._game, self._player, self._seed = game, player, seed
    self._races = tuple(races) if player == 0 else tuple(races)[::-1]
    self._map, self._swap = map_name, swap_sides
    if isinstance(opponent, str):
      opponent = replays.scripted_player(opponent, game)
    self._opponent: replays.Controller | Function = opponent
    self._controller = opponent if isinstance(opponent, replays.Controller) else None
    self._opponent_player = live.LivePlayer(self._controller, game) if self._controller else None
    self._actions, self._observations = action_spec(game), observation_spec(game)
    self._games = 0
    self._live: live.LiveGame | None = None
    self._over = True
    self._failed = False  # the latest step has not reached the player's next action

  @property
  def playing(self) -> bool:
    """Whether a game is under way: `step` plays it on, and otherwise starts the next one."""
    return self._live is not None and not self._over

  def reset(self) -> dm_env.TimeStep:
    """Starts the next game."""
    rng = np.random.default_rng([self._seed, self._games])
    self._games += 1
    match_up = draw_match_up(rng, self._game.tier, self._races, self._map, self._swap)
    controllers = (None, self._controller)
    self._live = live.LiveGame(
      self._game,
      live.with_controllers(match_up, controllers if self._player == 0 else controllers[::-1]),
      int(rng.integers(replay_format.MOST_SEED + 1)))
    if self._opponent_player:
      self._opponent_player.reset()
    self._over = self._failed = False
    return dm_env.restart(live.observe(self._live, self._player))

  def step(self, action: types.Action) -> dm_env.TimeStep:
    """Takes an action and advances the game until the user is due again or the game is over.

    Raises:
      TypeError: the action is no Action of integers.
      ValueError: an argument has a wrong shape or is out of its range.
      RuntimeError: an earlier step failed after it had taken its action, for example by an error
        of the opponent's function. `reset` starts the next game.
    """
    if self._live is None or not self.playing:
      return self.reset()
    game, mine, other = self._live, self._player, 1 - self._player
    if self._failed:
      # The player has not seen the present state: its action may name rows of another one.
      raise RuntimeError(
        "step: expected a game in which the player is due, found one whose last step failed at "
        f"game loop {game.steps * constants.LOOPS_PER_STEP}; call reset first")
    checked = check_action(action, self._actions)
    while True:
      actions = {mine: checked} if game.due[mine] else {}
      if game.due[other]:
        actions[other] = self._opponent_action(game, other)
      self._failed = True
      game.step(actions)
      if game.winner >= 0 or game.due[mine]:
        break
    observation = live.observe(game, mine)
    self._failed = False
    if game.winner < 0:
      return dm_env.transition(np.float32(0), observation, np.float32(1))
    self._over = True
    reward = 0 if game.winner > 1 else (1 if game.winner == mine else -1)
    return dm_env.TimeStep(
      dm_env.StepType.LAST, np.float32(reward), np.float32(0), observation)

  def _opponent_action(self, game: live.LiveGame, player: int) -> types.Action:
    if self._opponent_player:
      return self._opponent_player.act(game, player)
    assert not isinstance(self._opponent, replays.Controller)
    action = self._opponent(live.observe(game, player))  # its own errors stay as they are
    try:
      return check_action(action, self._actions)
    except (TypeError, ValueError) as error:
      raise type(error)(f"the opponent's {error}") from error

  def observation_spec(self) -> types.Observation:
    """Returns specs of `types.Observation`."""
    return self._observations

  def action_spec(self) -> types.Action:
    """Returns bounded specs of `types.Action`."""
    return self._actions

  def reward_spec(self) -> specs.BoundedArray:
    """Returns the reward's spec: +1 for a win, -1 for a loss, 0 for a draw and before the end."""
    return specs.BoundedArray((), np.float32, -1, 1, name="reward")

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the discount's spec: 0 at the end, else 1."""
    return specs.BoundedArray((), np.float32, 0, 1, name="discount")

  def replay(self, names: tuple[str, str] = ("player", "opponent")) -> replays.Replay:
    """Returns the replay of the current game so far.

    Args:
      names: of the user and of the opponent: at most 200 printable characters each.

    Raises:
      ValueError: no game has started, or a name has another form.
    """
    if self._live is None:
      raise ValueError("no game has started: call reset first")
    return self._live.replay(names if self._player == 0 else names[::-1])
