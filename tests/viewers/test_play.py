"""A person's game in the browser: what is shown, what is ordered, the server, and the replay."""

import http.client
import json
import os
import signal
import threading

import jax
import numpy as np
import pytest
from absl import app, flags
from absl.testing import flagsaver

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules import action_results, tables
from starleague.environments.skirmish.rules.config import GAME_CONFIGS
from starleague.experiments import play_skirmish
from starleague.viewers.play import orders as play_orders
from starleague.viewers.play import server as play_server
from tests.viewers.pages import Resources

RULES = tables.make_rules(*GAME_CONFIGS["mini"])
WHOLE = tables.make_rules(*GAME_CONFIGS["default"])
LOCAL = {name: i for i, name in enumerate(RULES.functions.names)}


@pytest.fixture(scope="module")
def begun():
  """A game at its start, and what the person sees of it."""
  game = live.LiveGame(GAME_CONFIGS["mini"], replays.make_match_up(), 2)
  return game, live.observe(game, 0)


def session(seed=2, opponent="rusher"):
  game = GAME_CONFIGS["mini"]
  seat = live.Seat(replays.scripted_player(opponent, game), game)
  return play_server.Session(live.LiveGame(game, replays.make_match_up(), seed), seat, speed=8.0)


class Client:
  """A page without a browser."""

  def __init__(self, server):
    self._address = server.server_address
    self.frame = None

  def ask(self, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(*self._address, timeout=30)
    try:
      if body is not None:
        headers = {"Content-Type": "application/json", **headers}
      connection.request(method, path, body if body is None or isinstance(body, bytes)
                         else json.dumps(body), headers)
      answer = connection.getresponse()
      return answer.status, answer.read()
    finally:
      connection.close()

  def look(self):
    """The next picture."""
    status, body = self.ask("GET", f"/frame?after={self.frame['index'] if self.frame else -1}")
    if status == 200:
      self.frame = json.loads(body)
    return self.frame

  def mine(self, name):
    """Tags of own units of a type."""
    kind = RULES.types.names.index(name)
    return [row["tag"] for row in self.frame["rows"] if row["type"] == kind and row["side"] == 1]


@pytest.fixture
def served():
  """A session whose page is served and which is being played."""
  played = session()
  server = play_server.Server(played)
  threads = [threading.Thread(target=target, daemon=True)
             for target in (server.serve_forever, played.run)]
  for thread in threads:
    thread.start()
  yield played, Client(server)
  played.leave()
  threads[1].join(30)
  server.shutdown()
  server.server_close()


@pytest.mark.parametrize("rules", [RULES, WHOLE], ids=["mini", "default"])
def test_every_type_has_hot_keys_that_differ(rules):
  commands = play_orders.commands(rules)
  for kind, name in enumerate(rules.types.names):
    keys = [command.key for command in commands if kind in command.capable and command.key]
    assert len(keys) == len(set(keys)), name
    assert not set(keys) & set("qwz"), name
  functions = [i for command in commands for i in command.functions.values()]
  assert sorted(functions) == list(range(1, len(rules.functions.names)))
  assert [command.label for command in commands if not command.key] == ["Smart"]


def test_the_page_stands_alone_and_has_what_it_draws(begun):
  page = play_server.render_page(play_orders.page_setup(RULES, begun[1], ("me</script>", "L5")))
  parser = Resources()
  parser.feed(page)
  assert parser.loaded == [] and parser.open == []
  assert "://" not in page and "{{" not in page and "me</script>" not in page
  assert len(page) < 60_000


def test_only_what_the_observation_shows_is_sent(begun):
  game, seen = begun
  frame = play_orders.page_frame(RULES, seen)
  assert len(frame["rows"]) == seen.entity_count
  assert {row["side"] for row in frame["rows"]} == {types.ALLIANCE_SELF, types.ALLIANCE_NEUTRAL}
  assert frame["player"]["minerals"] == 50 and frame["clock"] == "0:00"
  town = next(row for row in frame["rows"] if row["type"] == RULES.types.names.index(
    "CommandCenter"))
  assert (town["health"], town["ratio"], town["built"]) == (1500, 255, 100)
  x, y = (game.state.x[0, 0] / 24 + 0.5, game.state.y[0, 0] / 24 + 0.5)
  np.testing.assert_allclose([town["x"], town["y"]], [x, y], atol=1 / 256)
  assert [list(map(int, row)) for row in frame["visibility"]] == seen.minimap[1].tolist()
  can = {RULES.functions.names[i] for i in frame["can"]}
  assert "Train_SCV_quick" in can and "Train_Marine_quick" not in can


def test_orders_become_actions(begun):
  _, seen = begun
  tags = seen.entities[:, types.COLUMN["tag"]]
  scvs = tags[seen.entities[:, types.COLUMN["unit_type"]] == vocabulary.UNIT_TYPES.index("SCV")]
  order = play_orders.check_order({
    "function": LOCAL["Smart_pt"], "units": [int(scvs[1]), int(scvs[0])], "x": 0.5, "y": 0.999,
    "queued": True}, RULES)
  action = play_orders.to_action(RULES, seen, order)
  assert action.function == vocabulary.FUNCTIONS.index("Smart_pt")
  assert tags[action.units[:2]].tolist() == [scvs[1], scvs[0]] and np.all(action.units[2:] == 64)
  assert (action.location, action.queued, action.delay) == (31 * 32 + 16, 1, 1)
  patch = int(tags[seen.entities[:, types.COLUMN["mineral_contents"]] > 0][0])
  order = play_orders.check_order({
    "function": LOCAL["Smart_unit"], "units": [int(scvs[0])], "target": patch}, RULES)
  assert tags[play_orders.to_action(RULES, seen, order).target_unit] == patch
  assert play_orders.to_action(RULES, seen, None).function == 0


@pytest.mark.parametrize(("order", "message"), [
  ({"function": LOCAL["Train_Marine_quick"], "units": [1]}, "Train Marine: not possible now"),
  ({"function": LOCAL["Build_Barracks_pt"], "units": [1]}, "Build Barracks: costs 150 minerals"),
  ({"function": LOCAL["Train_SCV_quick"], "units": [999]}, "nobody selected can do that"),
  ({"function": LOCAL["Harvest_Gather_unit"], "units": [7], "target": 999}, "is out of sight")])
def test_what_cannot_be_carried_out_is_told(begun, order, message):
  with pytest.raises(play_orders.OrderError, match=message):
    play_orders.to_action(RULES, begun[1], play_orders.check_order(order, RULES))


def test_what_the_game_refuses_is_told(begun):
  seen = begun[1]
  assert play_orders.told(seen) == ""
  refused = seen._replace(
    action_result=np.uint8(action_results.CANT_BUILD_LOCATION_INVALID),
    last_function=np.int16(vocabulary.FUNCTIONS.index("Build_Barracks_pt")))
  assert play_orders.told(refused) == "Build Barracks: cannot be built there"


@pytest.mark.parametrize(("order", "message"), [
  ([], "order: expected an object, found list"),
  ({"function": 0, "units": [1]}, "order.function: expected an integer from 1 to"),
  ({"function": True, "units": [1]}, "order.function: expected an integer"),
  ({"function": 1, "units": []}, "order.units: expected 1 to 8 tags, found 0"),
  ({"function": 1, "units": [1] * 9}, "order.units: expected 1 to 8 tags, found 9"),
  ({"function": 1, "units": ["a"]}, "order.units: expected a list of tags"),
  ({"function": 1, "units": [1], "x": 1.5}, "order.x: expected a number from 0 to 1, found 1.5"),
  ({"function": 1, "units": [1], "queued": 1}, "order.queued: expected true or false, found 1"),
  ({"function": 1, "units": [1], "repeat": 4}, "order.repeat: expected an integer from 1 to 3"),
  ({"function": 1, "units": [1], "cheat": 1}, "order: unknown key 'cheat'")])
def test_bad_orders_are_refused(order, message):
  with pytest.raises(ValueError, match=message):
    play_orders.check_order(order, RULES)


def test_a_person_plays_through_the_server(served):
  played, client = served
  status, page = client.ask("GET", "/")
  assert status == 200 and b"<canvas" in page
  client.look()
  hall, = client.mine("CommandCenter")
  before = len(client.mine("SCV"))
  assert client.ask("POST", "/order", {
    "function": LOCAL["Train_SCV_quick"], "units": [hall]})[0] == 200
  for _ in range(60):
    client.look()
    if len(client.mine("SCV")) > before:
      break
  assert len(client.mine("SCV")) == before + 1
  assert client.ask("POST", "/order", {
    "function": LOCAL["Build_Factory_pt"], "units": client.mine("SCV")[:1]})[0] == 200
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
  played.wait_until_told(5)


def test_the_game_ends_and_its_replay_is_the_game(tmp_path, monkeypatch):
  """Without a clock: the person does nothing and loses to a rush."""
  played = session(seed=1)
  with monkeypatch.context() as patch:
    patch.setattr(played, "_wait", lambda begun: "step")
    played.run()
  assert played.result() == "You lost" and json.loads(played.frame(-1))["over"] == "You lost"
  replay = replays.load(replays.save(tmp_path / "game.npz", played.replay()))
  assert replay.players == ("person", "rusher") and replay.winner == 1
  assert np.sum(replay.player == 0) == replay.steps  # the person is asked at each step
  states = replays.resimulate(replay)
  assert replays.state_hash(jax.tree.map(lambda x: x[-1], states)) == replays.state_hash(
    played._game.state)


def test_other_sites_pages_are_refused(served):
  _, client = served
  assert client.ask("GET", "/", Host="evil.example")[0] == 403
  port = client._address[1]
  assert client.ask("GET", "/frame", Host=f"127.0.0.1:{port}", Origin="http://evil.example")[0] == 403
  assert client.ask("POST", "/control", {"leave": True}, Origin="http://evil.example")[0] == 403
  assert client.ask("POST", "/control", b"{}", **{"Content-Type": "text/plain"})[0] == 415
  assert client.look()["over"] is None


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), [
  ("GET", "/none", None, 404, "nothing is at /none"),
  ("GET", "/frame?after=x", None, 400, "after: expected an integer, found 'x'"),
  ("POST", "/none", {}, 404, "nothing is at /none"),
  ("POST", "/order", b"{", 400, "Expecting"),
  ("POST", "/order", {"function": 1}, 400, "order.units: expected 1 to 8 tags, found 0"),
  ("POST", "/order", b" " * 70_000, 413, "a body of at most 65536 bytes"),
  ("POST", "/control", {"speed": 100}, 400, "control.speed: expected 0.25 to 8.0, found 100"),
  ("POST", "/control", {"paused": 1}, 400, "control.paused: found 1"),
  ("POST", "/control", {"win": True}, 400, "control: unknown key 'win'")])
def test_bad_requests_are_answered(served, method, path, body, status, message):
  found, answer = served[1].ask(method, path, body)
  assert found == status and message in json.loads(answer)["error"]


def command(arguments):
  with flagsaver.flagsaver():
    play_skirmish.main(flags.FLAGS(["play_skirmish", *arguments]))


def test_command_saves_the_replay(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(play_server.Session, "run", lambda self: [self.step() for _ in range(9)])
  monkeypatch.setattr(play_skirmish, "_TOLD_SECONDS", 0.0)
  monkeypatch.chdir(tmp_path)
  command(["--opponent", "rusher", "--seed", "3"])
  said = capsys.readouterr().out
  assert "url=http://127.0.0.1:" in said and "race=terran opponent=rusher" in said
  assert "replay=play-rusher-3.npz" in said
  replay = replays.load(tmp_path / "play-rusher-3.npz")
  assert replay.steps == 9 and replay.winner == -1
  assert replays.resimulate(replay).loop[-1] == 72


def test_a_stopped_game_is_kept(tmp_path, monkeypatch, capsys):
  """Nobody opens the page, and the system says stop."""
  monkeypatch.setattr(play_skirmish, "_TOLD_SECONDS", 0.0)
  path = tmp_path / "game.npz"
  timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
  run = play_server.Session.run
  monkeypatch.setattr(
    play_server.Session, "run", lambda self: (timer.start(), self.step(), run(self)))
  command(["--opponent", "rusher", "--save_replay", str(path)])
  assert replays.load(path).steps == 1
  assert "result='broken off at 0:00'" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "message"), [
  (["--opponent", "nobody"], "play_skirmish: player 'nobody' does not exist in tier default"),
  (["--opponent", "agent"], "play_skirmish: 'agent' is the newest weights of a run: name it"),
  (["--opponent", "rusher", "--races", "zerg,zerg"], "race 'zerg': expected one of terran in"),
  (["--opponent", "rusher", "--save_replay", "no/game.npz"], "folder no does not exist"),
  (["--opponent", "rusher", "--seed", "-1"], "seed must be in")])
def test_what_cannot_be_is_refused(arguments, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as raised:
    command(arguments)
  assert message in raised.value.code and "\n" not in raised.value.code
  assert list(tmp_path.iterdir()) == []


def test_arguments_are_flags():
  with pytest.raises(app.UsageError, match="unexpected arguments"):
    command(["L5"])
