"""The page and its requests."""

import contextlib
import http.client
import json
import re
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


@pytest.mark.parametrize("length", ["-1", "\xb2", "9" * 5000])
def test_lengths_that_are_no_numbers_are_refused(served, length):
  """isdigit() accepts a superscript 2, and int() has a limit of digits."""
  with contextlib.closing(http.client.HTTPConnection(*served[1].address)) as connection:
    connection.putrequest("POST", "/control")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", length.encode("latin-1"))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413 and b"expected a body of at most 65536 bytes" in answer.read()


@pytest.mark.slow
@needs_browser
def test_browser_shows_the_game(served, tmp_path):
  """The page draws frames and its scripts raise no error before the game ends."""
  played, client = served
  threading.Timer(6.0, played.leave).start()
  dom = dump(f"http://127.0.0.1:{client.address[1]}/", tmp_path / "profile", budget=30_000)
  assert "You left the game" in dom and "select units to see their orders" in dom


# Taps on the own town hall, then on minerals with taps as commands; into the title: the selection,
# whether the buttons of touch screens are shown, and whether the order's target is the minerals.
_TAPS = """<script>
const sent = [], send = window.fetch;
window.fetch = (path, options) => {
  if (path === "/order") sent.push(JSON.parse(options.body));
  return send(path, options);
};
function tap({x, y}) {
  const box = $("map").getBoundingClientRect();
  for (const kind of ["pointerdown", "pointerup"])
    $("map").dispatchEvent(new PointerEvent(kind, {
      pointerType: "touch", pointerId: 1, button: 0, bubbles: true,
      clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
}
const waiting = setInterval(() => {
  if (!frame) return;
  clearInterval(waiting);
  const hall = own().find(row => typeOf(row).structure);
  const apart = row => Math.hypot(row.x - hall.x, row.y - hall.y);
  const patch = frame.rows.filter(row => row.type === MINERALS)
    .reduce((a, b) => apart(a) > apart(b) ? a : b);  // far from workers, which a tap would hit
  const hidden = [$("touch").hidden];
  tap(hall);
  hidden.push($("touch").hidden);
  const chosen = selected.slice();
  tap(patch);
  const none = selected.length;  // a tap that selects, on nothing of one's own
  tap(hall);
  $("tap").children[1].click();
  tap(patch);
  document.title = "found=" + JSON.stringify([
    hidden, chosen.map(tag => tag === hall.tag), none, selected.length,
    sent.map(({target}) => target === patch.tag)]);
  post("/control", {leave: true});  // else the page would wait for frames
}, 50);
</script></body>"""


@pytest.mark.slow
@needs_browser
def test_taps_select_and_command(served, tmp_path):
  _, client = served
  client.server.page = client.server.page.replace(b"</body>", _TAPS.encode())
  dom = dump(f"http://127.0.0.1:{client.address[1]}/", tmp_path / "profile", budget=30_000)
  found = json.loads(re.search(r"<title>found=(.*?)</title>", dom)[1])
  assert found == [[True, False], [True], 0, 1, [True]]


# Two units of a control group die, and a new one gets the tag of the first; into the title: the
# units that the group's key selects before, between and after.
_GROUPS = """<script>
take(FRAME);
const {rows} = frame, [one, two, three] = own();
const key = ctrlKey => pressedKey({key: "1", code: "Digit1", ctrlKey, preventDefault() {}});
function recall(rows) {
  take({...frame, rows});
  select([]);
  key(false);
  return selected.map(tag => [one, two, three].findIndex(row => row.tag === tag));
}
const others = rows.filter(({tag}) => tag !== one.tag && tag !== two.tag);
select([one.tag, two.tag, three.tag]);
key(true);
document.title = "found=" + JSON.stringify([
  recall(rows), recall(others), recall([...others, one])]);
</script></body>"""


def found_by(script, begun, folder):
  """Returns what a script, which takes the game's first frame as FRAME, writes into the title."""
  frame = view.page_frame(RULES, begun[1]) | {
    "index": 0, "over": None, "paused": False, "speed": 1, "message": ""}
  page = server.render_page(view.page_setup(RULES, begun[1], ("me", "L5")))
  path = folder / "page.html"
  path.write_text(page.replace("</body>", script.replace("FRAME", json.dumps(frame))))
  dom = dump(path.as_uri(), folder / "profile")
  return json.loads(re.search(r"<title>found=(.*?)</title>", dom)[1])


@pytest.mark.slow
@needs_browser
def test_the_dead_leave_their_control_groups(begun, tmp_path):
  """The tag of a dead unit may be that of a new one."""
  assert found_by(_GROUPS, begun, tmp_path) == [[0, 1, 2], [2], [2]]


# Presses a key at a speed; into the title: the speeds that the page asks for.
_SPEEDS = """<script>
take(FRAME);
const sent = [];
window.fetch = async (path, {body}) => { sent.push(JSON.parse(body).speed); return {ok: true}; };
for (const [speed, key] of [[8, "+"], [8, "-"], [0.25, "-"], [3, "="], [1, "-"]]) {
  frame.speed = speed;
  pressedKey({key, code: "", preventDefault() {}});
}
document.title = "found=" + JSON.stringify(sent);
</script></body>"""


@pytest.mark.slow
@needs_browser
def test_keys_go_to_the_next_speed_also_from_one_without_a_button(begun, tmp_path):
  assert found_by(_SPEEDS, begun, tmp_path) == [4, 4, 0.5]


def test_page_has_a_route_for_fingers(begun):
  page = server.render_page(view.page_setup(RULES, begun[1], ("me", "L5")))
  assert re.search(r"#map \{ touch-action: none;", page)  # a drag selects, it does not scroll
  for control in ("tap", "army", "workers", "cancel"):
    assert f'id="{control}"' in page
