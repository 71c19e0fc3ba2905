"""A game on the server: its state, its pending commands, its scripted players, its frames."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.sc2.server import engine, world
from starleague.environments.sc2.server.battlefields import Battlefield
from starleague.environments.sc2.server.engine import Report
from starleague.environments.sc2.server.roster import Roster
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.rules.constants import LOOPS_PER_STEP, RACES
from starleague.environments.skirmish.rules.state import Commands, State

DRAW = 2  # `State.winner`
_MARINES_PLACE = 0.5  # of the way from the middle of the map to the workers
_MOVED = 0.01  # map units in a step, below which a unit keeps its facing


class Bot(NamedTuple):
  """A scripted player."""

  script: int  # of `scripts.names_of(tier)`
  mmr: int = base.AGENT_MMR
  income: int = 100  # percent


class Frame(NamedTuple):
  """A state on the host, with what the state itself does not say."""

  loop: int
  steps: int  # environment steps played
  state: State
  report: Report
  tags: np.ndarray  # [2, n] int64: of the players' slots, 0 where empty
  known_tags: np.ndarray  # [2, n] int64: of the opponent's slots as each player knows them
  facing: np.ndarray  # [2, n] float32, radians, counter-clockwise from the x axis of the world


class Changes(NamedTuple):
  """What a step changed."""

  before: State
  after: State
  dead: tuple[frozenset[int], frozenset[int]]  # tags that each player saw die
  born: np.ndarray  # [2, n] bool


class Game:
  """One game. `step` plays 8 game loops; commands take effect in the next step."""

  def __init__(self, battlefield: Battlefield, races: tuple[int, int], seed: int,
               bots: Mapping[int, Bot] | None = None):
    """Starts a game. An odd seed starts player 0 in the second position.

    Args:
      battlefield: tier and map.
      races: indices of types.RACES; those that the tier lacks become its first.
      seed: 0 to 2^31 - 1, as of `games.live.LiveGame`.
      bots: scripted players by player; the others take commands.
    """
    self.battlefield, self.bots, self.seed = battlefield, dict(bots or {}), seed
    self.rules = engine.rules_of(battlefield.tier)
    self.world = world.make_world(self.rules, battlefield.map_index)
    self._programs = engine.make_programs(battlefield.tier)
    agent = Bot(0)
    seats = [self.bots.get(player, agent) for player in range(2)]
    self.match_up = base.make_match_up(
      races, battlefield.map_index, bool(seed % 2), mmr=[seat.mmr for seat in seats],
      income=[seat.income for seat in seats])
    start, self._noise = exact.keys_of(seed)
    self.steps = 0
    self._state = self._programs.reset(start, self.match_up)
    self._host: State = engine.to_host(self._state)
    self._roster = Roster(self.rules)
    self.tags = self.known_tags = np.zeros(self._host.kind.shape, np.int64)  # as in Frame
    self._note_tags()
    self._facing = np.full(self._host.kind.shape, 1.5 * np.pi, np.float32)
    self._frame: Frame | None = None
    self._pending = self._with_bots()

  @property
  def loop(self) -> int:
    """Game loops played."""
    return self.steps * LOOPS_PER_STEP

  @property
  def state(self) -> State:
    """The state that observations show, on the host."""
    return self._host

  @property
  def races(self) -> tuple[int, int]:
    """Indices of types.RACES that are played."""
    first, second = (types.RACES.index(RACES[race].lower()) for race in self._host.race)
    return first, second

  @property
  def winner(self) -> int:
    """Player 0 or 1, DRAW, or -1 during the game."""
    return int(self._host.winner)

  def frame(self) -> Frame:
    """Returns the state with what observations need."""
    if self._frame is None:
      report = engine.to_host(self._programs.report(self._state))
      self._frame = Frame(
        self.loop, self.steps, self._host, report, self.tags, self.known_tags, self._facing)
    return self._frame

  def command(self, player: int, given: Commands) -> int:
    """Executes a command of a player and returns its action result, 0 if it has an effect.

    Args:
      player: 0 or 1.
      given: [2, ...], with function 0 for the other player.
    """
    if self.winner >= 0:
      return 0
    self._pending = self._programs.command(self._pending, given)
    self._roster.update(self._pending)
    return int(self._pending.refused[player])

  def step(self) -> Changes:
    """Plays one environment step of a game that is not over."""
    before, tags, known = self._host, self.tags, self.known_tags
    self._state = self._programs.advance(self._pending)
    self._host = after = engine.to_host(self._state)
    self.steps += 1
    self._note_tags()
    self._turn(before, after)
    self._frame = None
    gone, born = ((there > 0) & (there != other) for there, other in (
      (tags, self.tags), (self.tags, tags)))
    dead = tuple(
      frozenset([*tags[player][gone[player]].tolist(),
                 *known[player][gone[1 - player] & before.memory.seen[player]].tolist()])
      for player in range(2))
    self._pending = self._with_bots()
    return Changes(before, after, (dead[0], dead[1]), born)

  def grant(self, player: int, minerals: int = 0, vespene: int = 0) -> None:
    """Gives a player money, at once."""
    share = np.arange(2) == player

    def paid(state: State) -> State:
      return state._replace(minerals=state.minerals + share.astype(np.int32) * minerals,
                            vespene=state.vespene + share.astype(np.int32) * vespene)

    self._state, self._pending = paid(self._state), paid(self._pending)
    self._host, self._frame = engine.to_host(self._state), None

  def reinforce(self, player: int, marines: int) -> None:
    """Gives a player Marines beside its workers, before the first step."""
    kind, s, x, y = (np.array(values) for values in (
      self._host.kind, self.rules.tier.structures, self._host.x, self._host.y))
    free = s + np.flatnonzero(kind[player, s:] == 0)[:marines]
    worker = s + int(np.flatnonzero(kind[player, s:])[0])
    kind[player, free] = self.rules.types.local("Marine")
    x[player, free] = x[player, worker] * _MARINES_PLACE + np.arange(len(free)) % 4
    y[player, free] = y[player, worker] * _MARINES_PLACE + np.arange(len(free)) // 4
    health = self.rules.types.health[kind].astype(np.float32)
    self._state = self._state._replace(
      kind=jnp.asarray(kind), x=jnp.asarray(x), y=jnp.asarray(y), health=jnp.asarray(health))
    self._host, self._frame = engine.to_host(self._state), None
    self._note_tags()
    self._pending = self._with_bots()

  def placeable(self, player: int, places: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Whether structures fit where a player knows the ground.

    Args:
      player: 0 or 1.
      places: [k, 2] float32 x and y in Skirmish.
      products: [k] int32 local types.

    Returns:
      [k] bool.
    """
    found, size = [], engine.PLACEMENTS
    for start in range(0, len(places), size):
      part = np.zeros((size, 2), np.float32)
      kinds = np.zeros(size, np.int32)
      count = len(places[start:start + size])
      part[:count], kinds[:count] = places[start:start + size], products[start:start + size]
      found.append(np.asarray(self._programs.placeable(
        self._state, np.int32(player), part[:, 0], part[:, 1], kinds))[:count])
    return np.concatenate(found) if found else np.zeros(0, bool)

  def _note_tags(self) -> None:
    self._roster.update(self._host)
    self._roster.remember(self._host)
    self.tags, self.known_tags = self._roster.tags(), self._roster.known_tags(self._host)

  def _with_bots(self) -> State:
    """The state with the scripted players' next commands noted."""
    due = (self._host.loop >= self._host.next_loop) & (self._host.winner < 0)
    acting = [player for player in self.bots if due[player]]
    if not acting:
      return self._state
    decide = engine.make_decide(self.battlefield.tier)
    actions, acts = engine.no_actions(self.battlefield.tier)
    for player in acting:
      action = decide(np.int32(self.bots[player].script), self._noise, np.int32(self.steps),
                      self._state, np.int32(player))
      for values, value in zip(actions, action, strict=True):
        values[player] = value
      acts[player] = True
    return self._programs.act(self._state, actions, acts)

  def _turn(self, before: State, after: State) -> None:
    """Units face where they move to."""
    dx, dy = after.x - before.x, before.y - after.y
    moved = (np.hypot(dx, dy) > _MOVED) & (before.kind > 0) & (after.kind > 0)
    self._facing = np.where(moved, np.arctan2(dy, dx) % (2 * np.pi), self._facing).astype(
      np.float32)

