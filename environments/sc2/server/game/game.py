"""A game on the server: its state, its pending commands, its scripted players, its frames."""

import asyncio
import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent import futures
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.sc2.server.game import debugging, engine, world
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.engine import Report
from starleague.environments.sc2.server.game.roster import Roster
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.rules.state.state import Commands, State
from starleague.environments.skirmish.rules.tables.constants import LOOPS_PER_STEP, RACES

DRAW = 2  # `State.winner`
Deaths = tuple[frozenset[int], frozenset[int]]  # tags that each player saw die
_MARINES_PLACE = 0.5  # of the way from the middle of the map to the workers
_MOVED = 0.01  # map units a step; below it, a unit keeps its facing


class ScriptedBot(NamedTuple):
  """A scripted player."""

  script: int  # of `scripts.names_of(tier)`
  mmr: int = base.AGENT_MMR
  income: int = 100  # percent


class Frame(NamedTuple):
  """A state on the host, with its report, tags and facing."""

  loop: int
  steps: int  # environment steps played
  state: State
  report: Report
  tags: np.ndarray  # [2, n] int64: of the players' slots, 0 where empty
  known_tags: np.ndarray  # [2, n] int64: of the opponent's slots as each player knows them
  facing: np.ndarray  # [2, n] float32, radians, counter-clockwise from the x axis of the world


class Changes(NamedTuple):
  """The changes of k consecutive environment steps."""

  loops: tuple[int, ...]  # [k]: after each step
  before: engine.Track  # [k, ...]
  after: engine.Track
  dead: tuple[Deaths, ...]  # [k]
  born: np.ndarray  # [k, 2, n] bool


class Game:
  """One game. Environment steps have 8 game loops; commands take effect in the next one."""

  def __init__(self, battlefield: Battlefield, races: tuple[int, int], seed: int,
               bots: Mapping[int, ScriptedBot] | None = None):
    """Starts a game. An odd seed starts player 0 in the second position.

    Args:
      battlefield: tier and map.
      races: indices of types.RACES; those that the tier lacks become its first.
      seed: 0 to 2^31 - 1, as of `games.live.LiveGame`.
      bots: scripted players by player; the others take commands.
    """
    self.battlefield, self.bots, self.seed = battlefield, dict(bots or {}), seed
    self.rules = engine.rules_of(battlefield.tier)
    self.world = world.make_world(
      self.rules, battlefield.map_index, battlefield.realistic)
    self._programs = engine.make_programs(battlefield.tier)
    agent = ScriptedBot(0)
    seats = [self.bots.get(player, agent) for player in range(2)]
    self.match_up = base.make_match_up(
      races, battlefield.map_index, bool(seed % 2), mmr=[seat.mmr for seat in seats],
      income=[seat.income for seat in seats])
    start, noise = exact.keys_of(seed)
    self._advance = functools.partial(
      engine.make_advance(battlefield.tier, bool(self.bots)), engine.Bots(np.array(
        [self.bots[player].script if player in self.bots else -1 for player in range(2)],
        np.int32), noise))
    self.steps = 0
    self._state = self._programs.reset(start, self.match_up)
    self._host: State | None = None
    self._last = self._track()
    self._roster = Roster(self.rules)
    self.tags = self.known_tags = np.zeros(self._last.kind.shape, np.int64)  # as in Frame
    self._note_tags(self._last, self._last.seen)
    self._facing = np.full(self._last.kind.shape, 1.5 * np.pi, np.float32)
    self._frame: Frame | None = None
    self._commanded = False  # whether there are commands that the frame does not show
    # The program of scripted players is the longest to compile, and the first observation does not
    # need it: a thread begins.
    self._noted, self._begun = self._state, _in_background(self._with_bots) if self.bots else None

  @property
  def _pending(self) -> State:
    """The state that the next step starts from, with the commands so far."""
    if self._begun is not None:
      self._noted, self._begun = self._begun.result(), None
    return self._noted

  @_pending.setter
  def _pending(self, state: State) -> None:
    self._noted, self._begun = state, None

  async def prepare(self) -> None:
    """Waits until the scripted players' program is compiled.

    Without it the first step or command waits and blocks the event loop: pings go unanswered.
    """
    if self._begun is not None:
      await asyncio.shield(asyncio.wrap_future(self._begun))

  @property
  def loop(self) -> int:
    """Game loops played."""
    return self.steps * LOOPS_PER_STEP

  @property
  def state(self) -> State:
    """The state that observations show, on the host."""
    if self._host is None:
      self._host = engine.to_host(self._state)
    return self._host

  @property
  def races(self) -> tuple[int, int]:
    """Indices of types.RACES that are played."""
    first, second = (types.RACES.index(RACES[race].lower()) for race in self.state.race)
    return first, second

  @property
  def winner(self) -> int:
    """Player 0 or 1, DRAW, or -1 during the game."""
    return int(self._last.winner)

  def frame(self) -> Frame:
    """Returns the frame of the state that observations show."""
    if self._frame is None:
      report = engine.to_host(self._programs.report(self._state))
      self._frame = Frame(
        self.loop, self.steps, self.state, report, self.tags, self.known_tags, self._facing)
    return self._frame

  def command(self, player: int, given: Commands) -> int:
    """Executes a command of a player and returns its action result, 0 if it has an effect.

    Args:
      player: 0 or 1.
      given: [2, ...], with function 0 for the other player.
    """
    if self.winner >= 0:
      return 0
    self._pending, self._commanded = self._programs.command(self._pending, given), True
    self._roster.update(np.asarray(self._pending.kind))
    return int(np.asarray(self._pending.refused)[player])

  def show_commands(self) -> Deaths:
    """Shows the commands since the last step: orders, production, money and what they cancelled.

    Clients that look at a game more often than it steps would repeat commands that they do not see.
    Returns the tags that each player saw die.
    """
    if self.winner >= 0 or not self._commanded:
      return frozenset(), frozenset()
    self._commanded, self._state = False, self._pending
    self._host = self._frame = None
    seen, self._last = self._last.seen, self._track()
    return self._note_tags(self._last, seen)

  def play(self, steps: int) -> Iterator[Changes]:
    """Plays environment steps, or to the end of the game; yields their changes."""
    while steps > 0 and self.winner < 0:
      changes = self._run(min(steps, engine.STEPS))
      steps -= len(changes.loops)
      yield changes

  def _run(self, count: int) -> Changes:
    """Plays steps, at most `engine.STEPS`; fewer if the game ends."""
    self._state, self._pending, track = self._advance(
      self._pending, np.int32(self.steps), np.int32(count))
    self._host, self._frame, self._commanded = None, None, False
    track = engine.to_host(track)
    over = np.flatnonzero(track.winner[:count] >= 0)  # the state does not change any more
    count = int(over[0]) + 1 if over.size else count
    after: engine.Track = jax.tree.map(lambda x: x[:count], track)
    before = jax.tree.map(
      lambda last, x: np.concatenate([last[None], x[:-1]]), self._last, after)
    dead, born = [], np.zeros(after.kind.shape, bool)
    for i in range(count):
      old, now = self.tags, jax.tree.map(lambda x, i=i: x[i], after)
      dead.append(self._note_tags(now, before.seen[i]))
      born[i] = (self.tags > 0) & (self.tags != old)
    self._turn(before, after)
    first = self.steps + 1
    self.steps += count
    self._last = jax.tree.map(lambda x: x[-1], after)
    loops = tuple(LOOPS_PER_STEP * step for step in range(first, self.steps + 1))
    return Changes(loops, before, after, tuple(dead), born)

  def grant(self, player: int, minerals: int = 0, vespene: int = 0) -> None:
    """Gives a player money, at once."""
    share = np.arange(2) == player

    def paid(state: State) -> State:
      return state._replace(minerals=state.minerals + share.astype(np.int32) * minerals,
                            vespene=state.vespene + share.astype(np.int32) * vespene)

    self._state, self._pending = paid(self._state), paid(self._pending)
    self._host = self._frame = None

  def create(self, player: int, kind: int, place: tuple[float, float], count: int) -> None:
    """Gives a player units or structures of a local type."""
    self._change(lambda state: debugging.create(self.rules, state, player, kind, *place, count))

  def kill(self, tags: Collection[int]) -> Deaths:
    """Kills units and structures of any player; returns the tags that each player saw die."""
    gone = np.isin(self.tags, list(tags)) & (self.tags > 0)
    return self._change(lambda state: debugging.kill(self.rules, state, gone))

  def set_value(self, tag: int, name: str, value: float) -> None:
    """Sets the `health`, `shield` or `energy` of a unit or structure of any player."""
    where = (self.tags == tag) & (self.tags > 0)
    self._change(lambda state: debugging.set_value(self.rules, state, where, name, value))

  def _change(self, change: Callable[[State], State]) -> Deaths:
    """Changes the state; returns the tags that each player saw die.

    The change shows at once. If commands have changed which slots are in use, it shows after the
    next step, because a unit must keep its slot.
    """
    if self.winner >= 0:
      return frozenset(), frozenset()
    shown, pending = (np.asarray(state.kind) > 0 for state in (self._state, self._pending))
    same = np.array_equal(shown, pending)
    self._pending = change(self._pending)
    if not same:
      self._roster.update(np.asarray(self._pending.kind))
      return frozenset(), frozenset()
    seen, self._state = self._last.seen, change(self._state)
    self._host = self._frame = None
    self._last = self._track()
    return self._note_tags(self._last, seen)

  def reinforce(self, player: int, marines: int) -> None:
    """Gives a player Marines half-way to its workers, before the first step."""
    worker = self.rules.tier.structures + int(
      np.flatnonzero(self._last.kind[player, self.rules.tier.structures:])[0])
    x, y = (_MARINES_PLACE * float(values[player, worker])
            for values in (self._last.x, self._last.y))
    self.create(player, self.rules.types.local("Marine"), (x, y), marines)

  def placeable(self, player: int, places: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Returns whether structures fit on the ground that a player knows.

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

  def _track(self) -> engine.Track:
    """Returns the tracked values of the current state, on the host."""
    track: engine.Track = engine.to_host(engine.track_of(self._state))
    return track

  def _note_tags(self, now: engine.Track, seen: np.ndarray) -> Deaths:
    """Notes the tags of a state; returns those that each player saw die since the last one.

    Args:
      now: of the state.
      seen: [2, n] bool, the opponent's slots in sight in the state before.
    """
    tags, known = self.tags, self.known_tags
    self._roster.update(now.kind)
    self._roster.remember(now.seen)
    self.tags = self._roster.tags()
    self.known_tags = self._roster.known_tags(now.seen, now.remembered)
    gone = (tags > 0) & (tags != self.tags)
    if not gone.any():
      return frozenset(), frozenset()
    first, second = (
      frozenset([*tags[player][gone[player]].tolist(),
                 *known[player][gone[1 - player] & seen[player]].tolist()])
      for player in range(2))
    return first, second

  def _with_bots(self) -> State:
    """Returns the first state with the scripted players' commands noted."""
    return self._advance(self._state, np.int32(0), np.int32(0))[1]

  def _turn(self, before: engine.Track, after: engine.Track) -> None:
    """Turns units in the direction of their last movement."""
    dx, dy = after.x - before.x, before.y - after.y
    moved = (np.hypot(dx, dy) > _MOVED) & (before.kind > 0) & (after.kind > 0)
    last = len(moved) - 1 - np.argmax(moved[::-1], axis=0)
    dx, dy = (np.take_along_axis(values, last[None], axis=0)[0] for values in (dx, dy))
    self._facing = np.where(
      moved.any(axis=0), np.arctan2(dy, dx) % (2 * np.pi), self._facing).astype(np.float32)


def _in_background(function: Callable[[], State]) -> futures.Future[State]:
  """Calls a function in a thread that does not outlive the process."""
  found: futures.Future[State] = futures.Future()

  def run() -> None:
    try:
      found.set_result(function())
    except BaseException as error:  # raised where the result is read
      found.set_exception(error)

  threading.Thread(target=run, daemon=True).start()
  return found
