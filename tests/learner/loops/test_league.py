"""Turns of a league's learners."""

import threading
import time
from types import SimpleNamespace

from starleague.learner.loops import league
from tests.learner.loops.options import reinforcement_options


def player_of(name: str, step: int, ready: bool):
  return SimpleNamespace(name=name, step=step, batches=SimpleNamespace(ready=ready))


def test_the_player_with_a_batch_and_the_fewest_updates_is_next():
  players = [player_of("a", 3, False), player_of("b", 9, True), player_of("c", 5, True)]
  assert league.next_ready(players).name == "c"


def test_no_player_is_waited_for():
  assert league.next_ready([player_of("a", 3, False)]) is None


def test_turns_end_at_the_updates_of_all_players_together(tmp_path):
  """Resumed at 5 and 3 updates; the player with fewer goes first."""
  class Player(SimpleNamespace):
    def advance(self):
      self.step += 1
      return True

  players = [Player(step=step, steps=0, trained=0.0, batches=SimpleNamespace(ready=True))
             for step in (5, 3)]
  options = reinforcement_options(updates=12)
  league._take_turns(players, None, options, tmp_path, threading.Event(), None)
  assert [player.step for player in players] == [6, 6]


def test_turns_end_when_the_data_do(tmp_path):
  """A stop ends the data first: a player is ready, and has no batch."""
  player = SimpleNamespace(step=3, steps=0, trained=0.0, batches=SimpleNamespace(ready=True),
                           advance=lambda: False)
  league._take_turns(
    [player], None, reinforcement_options(), tmp_path, threading.Event(), None)
  ended = SimpleNamespace(batches=iter(()))
  assert league.PlayerLearner.advance(ended) is False


def test_a_player_without_batches_publishes_its_parameters_again():
  """A data server that was restarted has none, and actors would wait for them."""
  calls = []
  player = SimpleNamespace(
    name="main", steps=64, step=2, learner=SimpleNamespace(state="state"),
    _duties=SimpleNamespace(publish=lambda state, step: calls.append((state, step))))
  client = SimpleNamespace(set_steps=lambda name, steps: calls.append((name, steps)),
                           orders=lambda name: [])
  league.PlayerLearner.execute_orders(player, client)
  assert calls == [("main", 64), ("state", 2)]


def test_the_time_of_a_league_counts_from_its_first_update(tmp_path, monkeypatch):
  """The first batch comes 100 s after the start, and the league has 50 s."""
  now = [0.0]
  monkeypatch.setattr(time, "monotonic", lambda: now[0])
  stop = SimpleNamespace(is_set=lambda: False,
                         wait=lambda seconds: now.__setitem__(0, now[0] + 10.0))

  class Player(SimpleNamespace):
    @property
    def batches(self):
      return SimpleNamespace(ready=now[0] >= 100.0)

    def advance(self):
      now[0] += 10.0
      return True

    def execute_orders(self, client):
      pass

  player = Player(step=0, steps=0, trained=0.0)
  options = reinforcement_options(league_seconds=50.0)
  league._take_turns([player], None, options, tmp_path, stop, None)
  assert now[0] == 150.0 and player.trained == 50.0


def test_the_batches_of_all_players_end_before_any_is_waited_for(tmp_path, monkeypatch):
  """Each wait for a thread inside Reverb takes its whole deadline."""
  log = []

  class Player:
    def __init__(self, name, *rest):
      self.name, self.learner = name, None

    def open(self, stack, stop):
      stack.callback(log.append, f"closed {self.name}")

    def end_batches(self):
      log.append(f"ended {self.name}")

    def close(self):
      log.append(f"saved {self.name}")

  monkeypatch.setattr(league, "PlayerLearner", Player)
  monkeypatch.setattr(league, "_share_initial", lambda agent, run: None)
  monkeypatch.setattr(league, "_take_turns", lambda *arguments: log.append("turns"))
  monkeypatch.setattr(league.reinforcement_setup, "compile_ahead", lambda *arguments: None)
  monkeypatch.setattr(league.stopping, "end_at_once", lambda: None)
  monkeypatch.setattr(league.stopping, "stop_event", threading.Event)
  client = SimpleNamespace(close=lambda: log.append("client"))
  process = SimpleNamespace(run_dir=tmp_path)
  assert league.learn(None, reinforcement_options(), process, client, ["a", "b"])
  assert log == ["turns", "ended a", "ended b", "closed b", "closed a", "saved a", "saved b",
                 "client"]
