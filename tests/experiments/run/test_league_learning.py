"""Turns of a league's learners."""

from types import SimpleNamespace

from starleague.experiments.run import league_learning


def trainee(name: str, step: int, ready: bool):
  return SimpleNamespace(name=name, step=step, batches=SimpleNamespace(ready=ready))


def test_the_player_with_a_batch_and_the_fewest_updates_is_next():
  players = [trainee("a", 3, False), trainee("b", 9, True), trainee("c", 5, True)]
  assert league_learning.next_ready(players).name == "c"


def test_no_player_is_waited_for():
  assert league_learning.next_ready([trainee("a", 3, False)]) is None
