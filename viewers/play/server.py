"""A game between a person and a player of Skirmish: its clock, and the HTTP server of its page.

Only this machine can reach it. The page asks for the next picture and waits for it, and posts
orders; what it gets is the person's observation (`play_orders.page_frame`).
"""

import http.server
import json
import pathlib
import re
import threading
import time
import urllib.parse
from collections import deque
from typing import Any

from starleague.agent import types
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules import constants, tables
from starleague.viewers import watch
from starleague.viewers.play import orders as play_orders

HOST = "127.0.0.1"
MOST_ORDERS = 32  # that wait for their step
SPEEDS = (0.25, 8.0)
POLL_SECONDS = 5.0  # how long a request waits for a picture
ABSENT_SECONDS = 12.0  # without a request for so long the game waits for the page
_MOST_BYTES = 1 << 16  # of a request's body
_SECONDS_PER_STEP = constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND


class Session:
  """One game. `run` plays it in the caller's thread; all else may be called from others."""

  def __init__(self, game: live.LiveGame, opponent: live.Seat, name: str = "person",
               speed: float = 1.0, player: int = 0):
    """Shows the first picture.

    Args:
      game: at its start.
      opponent: whoever plays the other side.
      name: the person's, in the replay.
      speed: times real time.
      player: which one the person is.
    """
    self.rules = tables.make_rules(*game.game)
    self._game, self._opponent, self._name, self._me = game, opponent, name, player
    self._changed = threading.Condition()
    self._orders: deque[dict[str, Any]] = deque()
    self._speed, self._paused, self._left, self._message = speed, False, False, ""
    self._seen_at = float("-inf")  # when the page last asked
    self._index, self._frame, self.finished = -1, b"", False
    self._told = threading.Event()  # the page has got the last picture
    observation = live.observe(game, player)
    self.setup = play_orders.page_setup(
      self.rules, observation, (name, opponent.name))
    self._observation = observation
    self._publish()

  def _publish(self) -> None:
    frame = play_orders.page_frame(self.rules, self._observation)
    with self._changed:
      self._index += 1
      frame.update(index=self._index, paused=self._paused, speed=self._speed,
                   message=self._message, waiting=len(self._orders),
                   over=self.result() if self.finished else None)
      self._message = ""
      self._frame = json.dumps(frame, separators=(",", ":")).encode()
      self._changed.notify_all()

  def result(self) -> str:
    """How the game ended for the person, in words."""
    winner = self._game.winner
    if winner < 0:
      return "You left the game"
    return "A draw" if winner == 2 else "You won" if winner == self._me else "You lost"

  def frame(self, after: int) -> bytes | None:
    """The newest picture once there is one after that index, None if there is none for long."""
    with self._changed:
      self._seen_at = time.monotonic()
      self._changed.notify_all()
      if not self._changed.wait_for(lambda: self._index > after, POLL_SECONDS):
        return None
      if self.finished:
        self._told.set()
      return self._frame

  def order(self, order: Any) -> None:
    """Takes an order; it is carried out at the next step that is free.

    Raises:
      ValueError: it is none, or too many wait.
    """
    order = play_orders.check_order(order, self.rules)
    with self._changed:
      if len(self._orders) >= MOST_ORDERS:
        raise ValueError(f"{MOST_ORDERS} orders are waiting already")
      self._orders.append(order)

  def control(self, wanted: Any) -> None:
    """Pauses, goes on, changes the speed, drops the waiting orders or leaves.

    Raises:
      ValueError: an unknown key or an impossible value.
    """
    if not isinstance(wanted, dict):
      raise ValueError(f"control: expected an object, found {type(wanted).__name__}")
    kinds = {"paused": (bool,), "speed": (int, float), "leave": (bool,), "drop": (bool,)}
    for key, value in wanted.items():
      if key not in kinds:
        raise ValueError(f"control: unknown key {key!r}; expected {', '.join(kinds)}")
      if type(value) not in kinds[key]:
        raise ValueError(f"control.{key}: found {value!r}")
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
    """Ends the game as it stands."""
    self.control({"leave": True})

  def _wait(self, begun: float) -> str:
    """Waits until a step that began then is over, or the page is to show something else.

    Returns:
      "step", "show" or, where the person has left, "".
    """
    with self._changed:
      shown = self._paused, self._speed
      while not self._left:
        now = time.monotonic()
        if (self._paused, self._speed) != shown:
          return "show"
        if self._paused or now - self._seen_at > ABSENT_SECONDS:
          self._changed.wait(1.0)
          continue
        left = begun + _SECONDS_PER_STEP / self._speed - now
        if left <= 0:
          return "step"
        self._changed.wait(left)
      return ""

  def run(self) -> None:
    """Plays to the end, or until the person leaves."""
    try:
      begun = time.monotonic()
      while self._game.winner < 0 and (does := self._wait(begun)):
        if does == "step":
          begun = time.monotonic()
          self.step()
        self._publish()
    finally:
      self.finished = True
      self._publish()

  def step(self) -> None:
    """Plays one environment step; the person is due at each."""
    game, other = self._game, 1 - self._me
    actions = {self._me: self._next_action()}
    if game.due[other]:
      actions[other] = self._opponent.act(game, other)
    game.step(actions)
    self._observation = live.observe(game, self._me)
    self._message = play_orders.told(self._observation) or self._message

  def _next_action(self) -> types.Action:
    """The first order that waits and can be carried out."""
    while True:
      with self._changed:
        order = self._orders.popleft() if self._orders else None
      try:
        return play_orders.to_action(self.rules, self._observation, order)
      except play_orders.OrderError as error:
        self._message = str(error)

  def replay(self) -> replays.Replay:
    """The game up to now. Only when `run` is over, or never began."""
    names = (self._name, self._opponent.name)
    return self._game.replay(names if self._me == 0 else names[::-1])

  def wait_until_told(self, seconds: float) -> None:
    """Waits until the page has the last picture, or for so long."""
    self._told.wait(seconds)


def render_page(setup: dict[str, Any]) -> str:
  """The page as HTML."""
  here, shared = pathlib.Path(__file__).parent, pathlib.Path(watch.__file__).parent
  parts = {
    "SETUP": json.dumps(setup, ensure_ascii=False).replace("<", "\\u003c"),
    "SHAPES": (shared / "watch_shapes.json").read_text(encoding="utf-8").replace("\n", ""),
    "MAP": (shared / "watch_map.js").read_text(encoding="utf-8"),
    "SCRIPT": (here / "play.js").read_text(encoding="utf-8")}
  return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]],
                (here / "play.html").read_text(encoding="utf-8"))


class _Handler(http.server.BaseHTTPRequestHandler):
  """GET / and /frame?after=N; POST /order and /control, JSON."""

  server: "Server"
  protocol_version = "HTTP/1.1"
  timeout = 30  # seconds that a silent connection is kept

  def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
    self.send_response(status)
    self.send_header("Content-Type", kind)
    self.send_header("Content-Length", str(len(body)))
    self.send_header("Cache-Control", "no-store")
    self.send_header("X-Content-Type-Options", "nosniff")
    self.end_headers()
    self.wfile.write(body)

  def _refuse(self, status: int, message: str) -> None:
    self.close_connection = True
    self._answer(status, json.dumps({"error": message}).encode())

  def _is_ours(self) -> bool:
    """Whether the page itself asks: another site's page may know the address too."""
    port = self.server.server_address[1]
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origin = self.headers.get("Origin")
    if self.headers.get("Host") in hosts and origin in {
        None, *(f"http://{host}" for host in hosts)}:
      return True
    self._refuse(403, "this server answers its own page only")
    return False

  def do_GET(self) -> None:
    if not self._is_ours():
      return
    url = urllib.parse.urlsplit(self.path)
    if url.path == "/":
      self._answer(200, self.server.page, "text/html; charset=utf-8")
    elif url.path == "/favicon.ico":  # browsers ask for it by themselves
      self._answer(204, b"")
    elif url.path == "/frame":
      after = urllib.parse.parse_qs(url.query).get("after", ["-1"])[0]
      if not re.fullmatch(r"-?\d{1,9}", after):
        self._refuse(400, f"after: expected an integer, found {after!r}")
        return
      frame = self.server.session.frame(int(after))
      self._answer(204 if frame is None else 200, frame or b"")
    else:
      self._refuse(404, f"nothing is at {url.path}")

  def do_POST(self) -> None:
    if not self._is_ours():
      return
    does = {"/order": self.server.session.order, "/control": self.server.session.control}
    length = self.headers.get("Content-Length", "")
    if self.path not in does:
      self._refuse(404, f"nothing is at {self.path}")
    elif self.headers.get("Content-Type") != "application/json":
      self._refuse(415, "expected application/json")
    elif not length.isdigit() or int(length) > _MOST_BYTES:
      self._refuse(413, f"expected a body of at most {_MOST_BYTES} bytes")
    else:
      try:
        does[self.path](json.loads(self.rfile.read(int(length))))
      except (ValueError, RecursionError) as error:
        self._refuse(400, str(error))
        return
      self._answer(200, b"{}")

  def log_message(self, *args) -> None:
    """Says nothing: several requests a second."""


class Server(http.server.ThreadingHTTPServer):
  """Serves a session's page on this machine alone."""

  daemon_threads = True

  def __init__(self, session: Session, port: int = 0):
    """Binds the port; `serve_forever` answers.

    Raises:
      OSError: the port is taken.
    """
    super().__init__((HOST, port), _Handler)
    self.session = session
    self.page = render_page(session.setup).encode()

  @property
  def url(self) -> str:
    """Where the page is."""
    return f"http://{HOST}:{self.server_address[1]}/"

  def handle_error(self, request, client_address) -> None:
    """A page that was closed while it waited is nothing to tell."""
    import sys
    if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
      super().handle_error(request, client_address)
