"""Skirmish as a `dm_env.Environment` for one player; the other is a script, an agent or a function.

  environment = SkirmishEnvironment("L5", races=("protoss", "zerg"), map_name="ramps", seed=1)
  timestep = environment.reset()
  while not timestep.last():
    timestep = environment.step(my_policy(timestep.observation))

Observations and actions are `types.Observation` and `types.Action`, nested as they are there.
"""

from collections.abc import Callable, Sequence

import dm_env
import jax
import numpy as np
from dm_env import specs

from starleague.agent import types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules import constants, maps, tables, tiers
from starleague.environments.skirmish.rules.config import GAME_CONFIGS, GameConfig

# What another player may be: a scripted player's name, a Controller, or a function of what it sees.
Opponent = str | replays.Controller | Callable[[types.Observation], types.Action]
RANDOM = "random"  # drawn anew for each game


def race_index(name: str, tier: str) -> int:
  """The index in types.RACES of a race that a tier has.

  Raises:
    ValueError: there is none of that name, or the tier does not have it.
  """
  known = playable(tier)
  if name not in known:
    raise ValueError(f"race {name!r}: expected one of {', '.join(known)} in tier {tier}")
  return types.RACES.index(name)


def playable(tier: str) -> tuple[str, ...]:
  """Names of the races of a tier."""
  if tier not in tiers.TIERS:
    raise ValueError(f"unknown tier {tier!r}: choose one of {', '.join(tiers.TIERS)}")
  rules = tables.make_rules(*GAME_CONFIGS[tier])
  return tuple(constants.RACES[race].lower() for race in rules.races)


def map_names(tier: str) -> tuple[str, ...]:
  """Names of the maps of a tier; flat tiers have one."""
  return maps.NAMES if tiers.TIERS[tier].field_block else maps.NAMES[:1]


def map_index(name: str, tier: str) -> int:
  """The index of a tier's map.

  Raises:
    ValueError: the tier has none of that name.
  """
  known = map_names(tier)
  if name not in known:
    raise ValueError(f"map {name!r}: expected one of {', '.join(known)} in tier {tier}")
  return known.index(name)


def draw_match_up(rng: np.random.Generator, tier: str, races: Sequence[str] = (RANDOM, RANDOM),
                  map_name: str = RANDOM, swap_sides: bool | None = None) -> base.MatchUp:
  """A match-up whose races, map and sides are as named, or drawn.

  Args:
    rng: what is not named is drawn from it.
    tier: a name of `tiers.TIERS`.
    races: player 0's and player 1's, or "random".
    map_name: one of `map_names(tier)`, or "random".
    swap_sides: player 0 starts in the second place; None: drawn.

  Raises:
    ValueError: a name that does not exist.
  """
  if len(races) != 2:
    raise ValueError(f"races: expected 2, found {len(races)}")
  # All is drawn, whatever is named: to name the map does not change the races.
  drawn = [str(rng.choice(playable(tier))) for _ in range(2)]
  place, swap = str(rng.choice(map_names(tier))), bool(rng.integers(2))
  named = [found if race == RANDOM else race for found, race in zip(drawn, races, strict=True)]
  return replays.make_match_up(
    races=(race_index(named[0], tier), race_index(named[1], tier)),
    map_index=map_index(place if map_name == RANDOM else map_name, tier),
    swap_sides=swap if swap_sides is None else swap_sides)


def action_spec(game: GameConfig) -> types.Action:
  """Specs of an action with the least and the greatest value of each argument."""
  most = types.Action(
    function=vocabulary.NUM_FUNCTIONS - 1, delay=types.NUM_DELAYS - 1, queued=1, repeat=2,
    units=game.max_entities, target_unit=game.max_entities - 1,
    location=game.location_size ** 2 - 1)
  least = types.Action(0, 1, 0, 0, 0, 0, 0)
  shapes = types.action_spec(game.max_selected)
  return types.Action(*(
    specs.BoundedArray(shape.shape, shape.dtype, low, high, name=f"action.{name}")
    for name, shape, low, high in zip(types.Action._fields, shapes, least, most, strict=True)))


def observation_spec(game: GameConfig) -> types.Observation:
  """Specs of an observation."""
  shapes = types.observation_spec(game.max_entities, game.map_size)

  def spec(path, shape):
    name = "observation" + "".join(f".{key.name}" for key in path)
    if shape.dtype == np.bool_:
      return specs.BoundedArray(shape.shape, shape.dtype, False, True, name=name)
    return specs.Array(shape.shape, shape.dtype, name=name)

  return jax.tree_util.tree_map_with_path(spec, shapes)


def check_action(action: types.Action, spec: types.Action) -> types.Action:
  """An action in the specs' dtypes.

  Raises:
    TypeError: no Action, or an argument that is no integer.
    ValueError: an argument's shape or value: names it, with what was expected and found.
  """
  if not isinstance(action, types.Action):
    raise TypeError(f"action: expected types.Action, found {type(action).__name__}")
  values = []
  for name, value, like in zip(types.Action._fields, action, spec, strict=True):
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
  """A player's games. The same arguments give the same games, to the last bit."""

  def __init__(self, opponent: Opponent = "L5", *, game: GameConfig = GAME_CONFIGS["default"],
               races: Sequence[str] = (RANDOM, RANDOM), map_name: str = RANDOM,
               player: int = 0, swap_sides: bool | None = None, seed: int = 0):
    """Makes the environment; `reset` begins a game.

    Args:
      opponent: a scripted player's name, a `replays.Controller` made for `game`, or a function of its
        observation. A function keeps its own memory; an observation at loop 0 is a new game.
      game: the sizes; see `GAME_CONFIGS`.
      races: the user's and the opponent's, or "random".
      map_name: one of `map_names(tier)`, or "random".
      player: which of the two the user is; it matters for replays only.
      swap_sides: player 0 starts in the second place; None: drawn for each game.
      seed: what games differ by: of their starts, their scripts' noise, and all that is random.

    Raises:
      ValueError: a name that does not exist, or sizes that the tier does not fit in.
    """
    tables.make_rules(*game)
    if player not in (0, 1):
      raise ValueError(f"player: expected 0 or 1, found {player}")
    draw_match_up(np.random.default_rng(0), game.tier, races, map_name)
    self._game, self._player, self._seed = game, player, seed
    self._races = tuple(races) if player == 0 else tuple(races)[::-1]
    self._map, self._swap = map_name, swap_sides
    if isinstance(opponent, str):
      opponent = replays.scripted_player(opponent, game)
    self._other = opponent if isinstance(opponent, replays.Controller) else None
    self._seat = live.Seat(self._other, game) if self._other else None
    self._function = None if self._seat else opponent
    self._actions, self._observations = action_spec(game), observation_spec(game)
    self._games = 0
    self._live: live.LiveGame | None = None
    self._over = True

  def reset(self) -> dm_env.TimeStep:
    """Begins the next game."""
    rng = np.random.default_rng([self._seed, self._games])
    self._games += 1
    match_up = draw_match_up(rng, self._game.tier, self._races, self._map, self._swap)
    sides = (None, self._other) if self._player == 0 else (self._other, None)
    self._live = live.LiveGame(
      self._game, live.seated(match_up, sides), int(rng.integers(2 ** 31)))
    if self._seat:
      self._seat.reset()
    self._over = False
    return dm_env.restart(live.observe(self._live, self._player))

  def step(self, action: types.Action) -> dm_env.TimeStep:
    """Acts, and lets the game go on until the user is due again, or it is over.

    Raises:
      TypeError: no action of integers.
      ValueError: an argument out of its range or of another shape.
    """
    if self._over or self._live is None:
      return self.reset()
    game, mine, other = self._live, self._player, 1 - self._player
    checked = check_action(action, self._actions)
    while True:
      actions = {mine: checked} if game.due[mine] else {}
      if game.due[other]:
        actions[other] = self._other_action(game, other)
      game.step(actions)
      if game.winner >= 0 or game.due[mine]:
        break
    observation = live.observe(game, mine)
    if game.winner < 0:
      return dm_env.transition(np.float32(0), observation, np.float32(1))
    self._over = True
    reward = 0 if game.winner > 1 else (1 if game.winner == mine else -1)
    return dm_env.TimeStep(
      dm_env.StepType.LAST, np.float32(reward), np.float32(0), observation)

  def _other_action(self, game: live.LiveGame, other: int) -> types.Action:
    if self._seat:
      return self._seat.act(game, other)
    try:
      return check_action(self._function(live.observe(game, other)), self._actions)
    except (TypeError, ValueError) as error:
      raise type(error)(f"the opponent's {error}") from error

  def observation_spec(self) -> types.Observation:
    """Specs of `types.Observation`."""
    return self._observations

  def action_spec(self) -> types.Action:
    """Bounded specs of `types.Action`."""
    return self._actions

  def reward_spec(self) -> specs.BoundedArray:
    """+1 for a win, -1 for a loss, 0 for a draw; 0 before the end."""
    return specs.BoundedArray((), np.float32, -1, 1, name="reward")

  def discount_spec(self) -> specs.BoundedArray:
    """0 at the end, else 1."""
    return specs.BoundedArray((), np.float32, 0, 1, name="discount")

  def replay(self, names: tuple[str, str] = ("player", "opponent")) -> replays.Replay:
    """The current game up to now, to be saved or watched.

    Args:
      names: the user's and the opponent's.

    Raises:
      ValueError: no game has begun.
    """
    if self._live is None:
      raise ValueError("no game has begun: call reset first")
    return self._live.replay(names if self._player == 0 else names[::-1])
