"""A game between a human player and another controller, in real time."""

import json
import threading
import time
from collections import deque
from typing import Any

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GameConfig
from starleague.viewers import catalog
from starleague.viewers.play import orders as play_orders
from starleague.viewers.play import view
from starleague.viewers.play.orders import Order, OrderError

MAX_ORDERS = 32  # orders that wait for their step
SPEEDS = (0.25, 8.0)  # lowest and highest, factors of real time
POLL_SECONDS = 5.0  # limit of a request's wait for a frame
ABSENT_SECONDS = 12.0  # without a request for so long the game waits for the page
NAME = "human"  # of the human player, in the replay


def make_session(game: GameConfig, match_up: base.MatchUp, seed: int,
                 opponent: live.Controller, speed: float = 1.0) -> "Session":
  """Returns a session whose programs are compiled, so that its first seconds run at full speed.

  Args:
    game: sizes of the game.
    match_up: of numpy arrays; the human player is the first player.
    seed: of the game, 0 to 2^31 - 1.
    opponent: controller of the second player.
    speed: factor of real time.
  """
  match_up = live.with_controllers(match_up, (None, opponent))
  seat = live.LivePlayer(opponent, game, predictions=True)
  rehearsal = live.LiveGame(game, match_up, seed)
  nothing = play_orders.no_action(tables.make_rules(*game))
  for _ in range(2):
    live.observe(rehearsal, 0)
    rehearsal.step({0: nothing, **({1: seat.act(rehearsal, 1)} if rehearsal.due[1] else {})},
                   {1: seat.predictions})
  rehearsal.replay((NAME, seat.name))  # computes its predictions, which needs a program of its own
  seat.reset()
  return Session(live.LiveGame(game, match_up, seed), seat, speed=speed)


class Session:
  """One game. `run` plays it in the caller's thread; other threads may call the other methods."""

  def __init__(self, game: live.LiveGame, opponent: live.LivePlayer, name: str = NAME,
               speed: float = 1.0, player: int = 0):
    """Publishes the first frame.

    Args:
      game: at its start.
      opponent: the other side's controller.
      name: of the human player, for the replay.
      speed: factor of real time.
      player: index of the human player.
    """
    self.rules = tables.make_rules(*game.game)
    self._game, self._opponent, self._name, self._me = game, opponent, name, player
    self._changed = threading.Condition()
    self._orders: deque[Order] = deque()
    self._speed, self._paused, self._left, self._message = speed, False, False, ""
    self._asked_at = float("-inf")  # time of the page's last request
    self._index, self._frame, self._finished = -1, b"", False
    self._delivered = threading.Event()  # the page has received the last frame
    self._observation = live.observe(game, player)
    self.setup = view.page_setup(self.rules, self._observation, (name, opponent.name))
    self._publish()

  def _publish(self, last: bool = False) -> None:
    frame = view.page_frame(self.rules, self._observation)
    with self._changed:
      self._finished = last  # with the frame: a request before it does not deliver the last one
      self._index += 1
      frame.update(index=self._index, paused=self._paused, speed=self._speed,
                   message=self._message, waiting=len(self._orders),
                   over=self.result() if last else None)
      self._message = ""
      self._frame = json.dumps(frame, separators=(",", ":")).encode()
      self._changed.notify_all()

  def result(self) -> str:
    """Returns how the game ended for the human player."""
    winner = self._game.winner
    if winner < 0:
      return "You left the game"
    return "Draw" if winner == 2 else "You won" if winner == self._me else "You lost"

  def frame(self, after: int) -> bytes | None:
    """Waits for a frame newer than index `after`; None if there is none for POLL_SECONDS."""
    with self._changed:
      self._asked_at = time.monotonic()
      self._changed.notify_all()
      if not self._changed.wait_for(lambda: self._index > after, POLL_SECONDS):
        return None
      if self._finished:
        self._delivered.set()
      return self._frame

  def order(self, order: Any) -> None:
    """Queues an order, which is executed at the next free step.

    Raises:
      ValueError: not an order, or MAX_ORDERS wait already.
    """
    checked = play_orders.check_order(order, self.rules)
    with self._changed:
      if len(self._orders) >= MAX_ORDERS:
        raise ValueError(f"{MAX_ORDERS} orders are waiting already")
      self._orders.append(checked)

  def control(self, wanted: Any) -> None:
    """Pauses, resumes, changes the speed, drops the waiting orders or leaves.

    Raises:
      ValueError: an unknown key, or a value of the wrong type or out of range.
    """
    if not isinstance(wanted, dict):
      raise ValueError(f"control: expected an object, found {type(wanted).__name__}")
    kinds = {"paused": (bool,), "speed": (int, float), "leave": (bool,), "drop": (bool,)}
    for key, value in wanted.items():
      if key not in kinds:
        raise ValueError(f"control: unknown key {key!r}; expected {', '.join(kinds)}")
      if type(value) not in kinds[key]:
        raise ValueError(f"control.{key}: expected {kinds[key][0].__name__}, found {value!r}")
    if not SPEEDS[0] <= wanted.get("speed", 1) <= SPEEDS[1]:
      raise ValueError(f"control.speed: expected {SPEEDS[0]} to {SPEEDS[1]}, "
                       f"found {wanted['speed']}")
    with self._changed:
      self._paused = wanted.get("paused", self._paused)
      self._speed = float(wanted.get("speed", self._speed))
      self._left = self._left or wanted.get("leave", False)
      if wanted.get("drop"):
        self._orders.clear()
      self._changed.notify_all()

  def leave(self) -> None:
    """Ends the game."""
    self.control({"leave": True})

  def _wait(self, begun: float) -> str:
    """Waits until the step that began at `begun` is over, or until pause or speed change.

    Returns:
      "step", "show", or "" when the human player has left.
    """
    with self._changed:
      shown = self._paused, self._speed
      while not self._left:
        now = time.monotonic()
        if (self._paused, self._speed) != shown:
          return "show"
        if self._paused or now - self._asked_at > ABSENT_SECONDS:
          self._changed.wait(1.0)
          continue
        left = begun + catalog.SECONDS_PER_STEP / self._speed - now
        if left <= 0:
          return "step"
        self._changed.wait(left)
      return ""

  def run(self) -> None:
    """Plays until the game ends or the human player leaves."""
    try:
      begun = time.monotonic()
      while self._game.winner < 0 and (does := self._wait(begun)):
        if does == "step":
          begun = time.monotonic()
          self.step()
        self._publish()
    finally:
      self._publish(last=True)

  def step(self) -> None:
    """Plays one environment step; the human player acts at each."""
    game, other = self._game, 1 - self._me
    actions = {self._me: self._next_action()}
    if game.due[other]:
      actions[other] = self._opponent.act(game, other)
    game.step(actions, {other: self._opponent.predictions})
    self._observation = live.observe(game, self._me)
    self._message = play_orders.refusal_text(self._observation) or self._message

  def _next_action(self) -> types.Action:
    """Returns the first waiting order that can be executed; the others only set the message."""
    while True:
      with self._changed:
        order = self._orders.popleft() if self._orders else None
      if order is None:
        return play_orders.no_action(self.rules)
      try:
        return play_orders.to_action(self.rules, self._observation, order)
      except OrderError as error:
        self._message = str(error)

  def replay(self) -> replays.Replay:
    """Returns the game so far. Call it only while `run` is not running."""
    names = (self._name, self._opponent.name)
    return self._game.replay(names if self._me == 0 else names[::-1])

  def wait_until_delivered(self, seconds: float) -> None:
    """Waits until the page has received the last frame, or for `seconds`."""
    self._delivered.wait(seconds)
