"""The page and its requests."""

import json
import threading

import pytest

from starleague.viewers.play import server, view
from tests.viewers.browser import dump, needs_browser
from tests.viewers.games import FUNCTION, RULES
from tests.viewers.pages import check_self_contained


def test_page_is_self_contained(begun):
  page = server.render_page(view.page_setup(RULES, begun[1], ("me</script>", "L5")))
  check_self_contained(page)
  assert "://" not in page and "{{" not in page and "me</script>" not in page
  assert len(page) < 60_000


def test_game_is_played_through_the_server(served):
  played, client = served
  status, page = client.ask("GET", "/")
  assert status == 200 and b"<canvas" in page
  client.look()
  hall, = client.own("CommandCenter")
  before = len(client.own("SCV"))
  assert client.ask("POST", "/order", {
    "function": FUNCTION["Train_SCV_quick"], "units": [hall]})[0] == 200
  for _ in range(60):
    client.look()
    if len(client.own("SCV")) > before:
      break
  assert len(client.own("SCV")) == before + 1
  assert client.ask("POST", "/order", {
    "function": FUNCTION["Build_Factory_pt"], "units": client.own("SCV")[:1]})[0] == 200
  assert any(client.look()["message"].startswith("Build Factory: ") for _ in range(4))

  assert client.ask("POST", "/control", {"paused": True, "speed": 4})[0] == 200
  while not client.frame["paused"]:
    client.look()
  assert client.frame["speed"] == 4
  steps = played._game.steps
  client.ask("POST", "/control", {"paused": False, "leave": True})
  while client.frame["over"] is None:
    client.look()
  assert client.frame["over"] == "You left the game" and played._game.steps <= steps + 2
  played.wait_until_delivered(5)


def test_pages_of_other_sites_are_refused(served):
  _, client = served
  assert client.ask("GET", "/", Host="evil.example")[0] == 403
  port = client.address[1]
  own_host = f"127.0.0.1:{port}"
  assert client.ask("GET", "/frame", Host=own_host, Origin="http://evil.example")[0] == 403
  assert client.ask("POST", "/control", {"leave": True}, Origin="http://evil.example")[0] == 403
  assert client.ask("POST", "/control", b"{}", **{"Content-Type": "text/plain"})[0] == 415
  assert client.look()["over"] is None


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), [
  ("GET", "/none", None, 404, "no page at /none"),
  ("GET", "/frame?after=x", None, 400, "after: expected an integer, found 'x'"),
  ("POST", "/none", {}, 404, "no page at /none"),
  ("POST", "/order", b"{", 400, "Expecting"),
  ("POST", "/order", {"function": 1}, 400, "order.units: expected 1 to 8 tags, found 0"),
  ("POST", "/order", b" " * 70_000, 413, "a body of at most 65536 bytes"),
  ("POST", "/control", {"speed": 100}, 400, "control.speed: expected 0.25 to 8.0, found 100"),
  ("POST", "/control", {"paused": 1}, 400, "control.paused: expected bool, found 1"),
  ("POST", "/control", {"win": True}, 400, "control: unknown key 'win'")])
def test_bad_requests_are_refused(served, method, path, body, status, message):
  found, answer = served[1].ask(method, path, body)
  assert found == status and message in json.loads(answer)["error"]


@pytest.mark.slow
@needs_browser
def test_browser_shows_the_game(served, tmp_path):
  """The page draws frames and its scripts raise no error before the game ends."""
  played, client = served
  threading.Timer(6.0, played.leave).start()
  dom = dump(f"http://127.0.0.1:{client.address[1]}/", tmp_path / "profile", budget=30_000)
  assert "You left the game" in dom and "select units to see their orders" in dom
