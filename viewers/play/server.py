"""The HTTP server of a game's page, for this machine only.

The page requests the next frame, which the server holds back until there is one, and posts orders.
It gets the human player's observation and nothing else (`view.page_frame`).
"""

import http.server
import json
import pathlib
import re
import sys
import urllib.parse
from typing import Any

from starleague.viewers import pages
from starleague.viewers.play.session import Session

HOST = "127.0.0.1"
TEMPLATE = pathlib.Path(__file__).with_name("play.html")
_MAX_BYTES = 1 << 16  # of a request's body


def render_page(setup: dict[str, Any]) -> str:
  """Returns the page as HTML; `setup` is that of `view.page_setup`."""
  return pages.fill(TEMPLATE, {"SETUP": pages.json_element(setup)})


class _Handler(http.server.BaseHTTPRequestHandler):
  """GET / and /frame?after=INDEX; POST /order and /control with JSON."""

  server: "Server"
  protocol_version = "HTTP/1.1"
  timeout = 30  # seconds after which a silent connection is closed

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

  def _is_own_page(self) -> bool:
    """Whether the request comes from the server's own page; refuses other sites' pages."""
    port = self.server.server_address[1]
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origin = self.headers.get("Origin")
    if self.headers.get("Host") in hosts and origin in {
        None, *(f"http://{host}" for host in hosts)}:
      return True
    self._refuse(403, "this server answers only its own page")
    return False

  def do_GET(self) -> None:
    if not self._is_own_page():
      return
    url = urllib.parse.urlsplit(self.path)
    if url.path == "/":
      self._answer(200, self.server.page, "text/html; charset=utf-8")
    elif url.path == "/favicon.ico":  # browsers request it unasked
      self._answer(204, b"")
    elif url.path == "/frame":
      after = urllib.parse.parse_qs(url.query).get("after", ["-1"])[0]
      if not re.fullmatch(r"-?\d{1,9}", after):
        self._refuse(400, f"after: expected an integer, found {after!r}")
        return
      frame = self.server.session.frame(int(after))
      self._answer(204 if frame is None else 200, frame or b"")
    else:
      self._refuse(404, f"no page at {url.path}")

  def do_POST(self) -> None:
    if not self._is_own_page():
      return
    does = {"/order": self.server.session.order, "/control": self.server.session.control}
    length = self.headers.get("Content-Length", "")
    if self.path not in does:
      self._refuse(404, f"no page at {self.path}")
    elif self.headers.get("Content-Type") != "application/json":
      self._refuse(415, "expected application/json")
    elif not re.fullmatch("[0-9]{1,9}", length) or int(length) > _MAX_BYTES:
      self._refuse(413, f"expected a body of at most {_MAX_BYTES} bytes")
    else:
      try:
        does[self.path](json.loads(self.rfile.read(int(length))))
      except (ValueError, RecursionError) as error:
        self._refuse(400, str(error))
        return
      self._answer(200, b"{}")

  def log_message(self, format: str, *args: Any) -> None:
    """Logs nothing: the page sends several requests a second."""


class Server(http.server.ThreadingHTTPServer):
  """Serves a session's page on this machine."""

  daemon_threads = True

  def __init__(self, session: Session, port: int = 0):
    """Binds the port, 0 for any free one; `serve_forever` answers requests.

    Raises:
      OSError: the port is in use.
    """
    super().__init__((HOST, port), _Handler)
    self.session = session
    self.page = render_page(session.setup).encode()

  @property
  def url(self) -> str:
    """The page's address."""
    return f"http://{HOST}:{self.server_address[1]}/"

  def handle_error(self, request: Any, client_address: Any) -> None:
    """Reports an error, unless the page was closed during a request."""
    if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
      super().handle_error(request, client_address)
