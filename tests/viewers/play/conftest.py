"""A game of mini at its start, and a served session."""

import http.client
import json
import threading

import pytest

from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.viewers.play import server, session
from tests.viewers.games import KIND


@pytest.fixture(scope="session")
def begun():
  """A game at its start, and the human player's observation."""
  game = live.LiveGame(GAME_CONFIGS["mini"], replays.make_match_up(), 2)
  return game, live.observe(game, 0)


@pytest.fixture
def make_session():
  """Makes a session against a scripted player."""
  def make(seed=2, opponent="rusher"):
    game = GAME_CONFIGS["mini"]
    seat = live.LivePlayer(replays.scripted_player(opponent, game), game)
    return session.Session(live.LiveGame(game, replays.make_match_up(), seed), seat, speed=8.0)

  return make


class Client:
  """The page's requests, without a browser."""

  def __init__(self, served):
    self.server, self.address = served, served.server_address
    self.frame = None

  def ask(self, method, path, body=None, **headers):
    """Returns the status and the body of an answer."""
    connection = http.client.HTTPConnection(*self.address, timeout=30)
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
    """Returns the next frame."""
    status, body = self.ask("GET", f"/frame?after={self.frame['index'] if self.frame else -1}")
    if status == 200:
      self.frame = json.loads(body)
    return self.frame

  def own(self, name):
    """Returns the tags of own units of a type."""
    return [row["tag"] for row in self.frame["rows"]
            if row["type"] == KIND[name] and row["side"] == 1]


@pytest.fixture
def served(make_session):
  """A session that is played, and a client of its page."""
  played = make_session()
  serving = server.Server(played)
  threads = [threading.Thread(target=target, daemon=True)
             for target in (serving.serve_forever, played.run)]
  for thread in threads:
    thread.start()
  yield played, Client(serving)
  played.leave()
  threads[1].join(30)
  serving.shutdown()
  serving.server_close()
