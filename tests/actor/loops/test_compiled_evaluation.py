"""Evaluation games inside the compiled program: counts by opponent, programs of matches."""

import numpy as np
import pytest

from starleague.actor import evaluation
from starleague.actor.loops import compiled_evaluation
from starleague.common.errors import UserError
from tests.actor.loops.clockwork_parts import HOSTED, PARTS


def test_games_are_counted_by_the_names_of_their_opponents():
  play = compiled_evaluation.make_evaluation(PARTS, [1], 4, seed=3)
  finished = []
  # Player 0 wins all games of the clockwork, from both sides.
  found = evaluation.count_by_name(play(np.float32(1), finished.append), PARTS.opponents)
  assert found == {"slower": evaluation.Counts(4, 0, 0)}
  assert finished[-1] == 4 and (np.diff(finished) >= 0).all()


def test_programs_play_the_games_that_are_asked_for():
  found = compiled_evaluation.make_evaluator(PARTS, [1, 0], 4)
  np.testing.assert_array_equal(found.opponents, [2, 2, 2, 2, 1, 1, 1, 1])  # 0 is self-play
  np.testing.assert_array_equal(compiled_evaluation.make_match(PARTS, 6).opponents, [0] * 6)


@pytest.mark.parametrize("games", [3, 0, -2])
def test_games_are_split_between_both_sides(games):
  for make in (lambda: compiled_evaluation.make_evaluation(PARTS, [0], games, seed=0),
               lambda: compiled_evaluation.make_match(PARTS, games)):
    with pytest.raises(ValueError, match=f"games must be even.*found {games}"):
      make()


def test_hosted_games_are_refused():
  with pytest.raises(UserError, match="played outside JAX"):
    compiled_evaluation.make_evaluation(HOSTED, [0], 4, seed=0)
  with pytest.raises(UserError, match="played outside JAX"):
    compiled_evaluation.make_match(HOSTED, 4)


@pytest.mark.parametrize("incomes, expected", [
  ((100, 150), [[100, 100], [100, 100], [100, 150]]), ((), None)])
def test_opponents_that_cheat_are_paid_more(monkeypatch, incomes, expected):
  seen = []

  def play(evaluator, params, key, conditioning, on_games):
    seen.append(conditioning.income)

  monkeypatch.setattr(evaluation, "play", play)
  parts = PARTS._replace(compiled=PARTS.compiled._replace(incomes=incomes))
  compiled_evaluation.make_evaluation(parts, [0], 2, seed=3)(np.float32(1))
  assert (None if seen[0] is None else seen[0].tolist()) == expected


@pytest.mark.parametrize("races, agents, opponents", [
  ((2, -1), {2}, {1, 2, 3}), ((-1, 3), {1, 2, 3}, {3}), ((3, 1), {3}, {1}),
  (compiled_evaluation.DRAWN, {1, 2, 3}, {1, 2, 3})])
def test_races_are_fixed_or_drawn(races, agents, opponents):
  parts = PARTS._replace(races=(1, 2, 3))
  found = compiled_evaluation.make_evaluation(parts, [0, 1], 12, seed=3, races=races)(np.float32(1))
  assert {i: counts.games for i, counts in evaluation.count(found).items()} == {0: 12, 1: 12}
  assert [set(column) for column in found.race.T] == [agents, opponents]
