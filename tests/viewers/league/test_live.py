"""The live page: its first contents, updates, replays, refusals; and a browser that watches it."""

import json
import re
import threading
import urllib.error
import urllib.request

import pytest

from starleague.common.errors import UserError
from starleague.viewers.league import live, reading
from tests.viewers import browser


class League:
  """A league whose facts a test changes."""

  def __init__(self, facts):
    self.facts, self.version, self.error = facts, 1, None

  def contents(self):
    if self.error:
      raise UserError(self.error)
    return live.contents(self.facts)


def page_of(replay):
  if replay.path is None:
    raise UserError(f"Replay {replay.id}: not saved yet.")
  return f"<p>the game {replay.id}</p>"


@pytest.fixture
def served(facts):
  """A league and the address of its page."""
  shown = League(facts)
  newest = reading.Newest(shown.contents, lambda: shown.version, share=1.0)
  server = live.make_http_server(live.make_app("my <league>", newest, page_of), 0)
  thread = threading.Thread(target=server.serve_forever)
  thread.start()
  yield shown, f"http://127.0.0.1:{server.port}/"
  server.shutdown()
  thread.join(20)
  server.server_close()


def ask(address, data=None, **headers):
  """Returns the status and the text of an answer."""
  body = None if data is None else json.dumps(data).encode()
  request = urllib.request.Request(
    address, body, headers | ({"Content-Type": "application/json"} if body else {}))
  try:
    with urllib.request.urlopen(request, timeout=20) as answer:
      return answer.status, answer.read().decode()
  except urllib.error.HTTPError as error:
    return error.code, error.read().decode()


def update(address, version, polls=2):
  """Returns the answer to a poll of the page: None, or the new children by element."""
  outputs = [("all-tiles", "children"), ("first-sections", "children"),
             ("other-sections", "children"), ("all-games", "children"), ("state", "children"),
             ("version", "data"), ("poll", "interval")]
  status, text = ask(address + "_dash-update-component", {
    "output": f"..{'...'.join('.'.join(pair) for pair in outputs)}..",
    "outputs": [{"id": name, "property": prop} for name, prop in outputs],
    "inputs": [{"id": "poll", "property": "n_intervals", "value": polls}],
    "state": [{"id": "version", "property": "data", "value": version}],
    "changedPropIds": ["poll.n_intervals"]})
  assert status in (200, 204)
  return json.loads(text)["response"] if status == 200 else None


def names_of(sections):
  return [section["props"]["id"] for section in sections["children"]]


def test_the_page_begins_with_its_first_sections(served):
  _, address = served
  status, text = ask(address)
  assert status == 200 and "my &lt;league&gt;" in text
  scripts = re.findall(r'src="(.*?)"', text)  # nothing is loaded from elsewhere
  assert len(scripts) > 5 and all(script.startswith("/_dash-") for script in scripts)
  assert '"disable_version_check":true' in text
  layout = ask(address + "_dash-layout")[1]
  for part in ("protoss-main-0", "Payoff matrix", "scores", "Ratings"):
    assert part in layout
  assert "Family tree" not in layout
  assert '"data":-1' in layout.replace(" ", "")
  # Also at a later poll: the first one's answer may have been lost.
  rest = update(address, -1, polls=3)
  assert rest["poll"]["interval"] == 2000
  assert names_of(rest["other-sections"])[0] == "family" and "first-sections" not in rest
  assert "game-0" in json.dumps(rest["all-games"])


def test_updates_follow_the_league(served, facts):
  shown, address = served
  assert update(address, 1) is None
  shown.version, shown.facts = 2, facts._replace(branches=[])
  found = update(address, 1)
  assert found["version"]["data"] == 2 and found["state"]["children"] == ""
  assert names_of(found["first-sections"]) == ["matrix", "ratings"]
  assert names_of(found["other-sections"])[:3] == ["family", "learners", "learning"]
  assert update(address, 2) is None
  shown.version, shown.error = 3, "league.sqlite: damaged"
  assert update(address, 2)["state"]["children"] == "not updated: league.sqlite: damaged"
  shown.error = None
  assert update(address, 2)["state"]["children"] == ""


def test_replays_are_served_by_id(served, facts):
  shown, address = served
  assert ask(address + "replay/game-0") == (200, "<p>the game game-0</p>")
  assert ask(address + "replay/unknown")[0] == 404
  # Ids of results have a slash.
  replays = [facts.replays[0]._replace(path=None), facts.replays[1]._replace(id="m-7/3")]
  shown.version, shown.facts = 2, facts._replace(replays=replays)
  status, text = ask(address + "replay/game-0")
  assert status == 404 and "not saved yet" in text
  assert ask(address + "replay/m-7%2F3") == (200, "<p>the game m-7/3</p>")


def test_other_sites_are_refused(served):
  _, address = served
  assert ask(address, Host="evil.example:80")[0] == 403
  assert ask(address + "_dash-layout", Host="evil.example")[0] == 403


def test_a_port_in_use_is_an_error(served):
  shown, address = served
  app = live.make_app("x", reading.Newest(shown.contents, lambda: 0), page_of)
  with pytest.raises(OSError, match="in use"):
    live.make_http_server(app, int(address.rstrip("/").rpartition(":")[2]))


@browser.needs_browser
@pytest.mark.slow
def test_a_browser_draws_the_live_page(served, tmp_path):
  _, address = served
  dom = browser.dump(address, tmp_path / "profile", budget=8000)
  assert len(re.findall(r'class="[^"]*js-plotly-plot', dom)) == 13 and "data-pairs" in dom
  assert "protoss-league_exploiter-1" in dom and "data-replay=\"game-0\"" in dom
