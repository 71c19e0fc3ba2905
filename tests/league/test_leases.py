"""Leases: who holds an assignment, what ends, what is given again, clocks that jump."""

import hypothesis
import pytest
from hypothesis import strategies as st

from starleague.league.leases import EVALUATION, EVALUATION_POOL, Assignment, Leases, is_valid


class Clock:
  """A clock that the test moves."""

  def __init__(self):
    self.seconds = 1000.0

  def __call__(self):
    return self.seconds


def assignment(number, home="main", games=4, branch="pfsp"):
  return Assignment(f"1-{number}", home, "past", branch, False, games)


@pytest.fixture
def clock():
  return Clock()


@pytest.fixture
def leases(clock):
  return Leases(10.0, clock)


def names(assignments):
  return [each.id for each in assignments]


def test_a_dead_actors_assignments_are_given_again_oldest_first(leases, clock):
  for number in (1, 2, 3):
    leases.issue([assignment(number)], "dead")
    clock.seconds += 1
  leases.issue([assignment(4, "other")], "dead")
  assert leases.take("main", 5, "second") == []  # all leases run
  clock.seconds += 7.5  # 10.5, 9.5 and 8.5 seconds have passed
  assert names(leases.take("main", 5, "second")) == ["1-1"]
  clock.seconds += 2
  assert names(leases.take("main", 1, "second")) == ["1-2"]
  assert names(leases.take("main", 5, "second")) == ["1-3"]
  assert names(leases.take("other", 5, "second")) == []
  assert len(leases) == 4


def test_a_renewed_lease_goes_on(leases, clock):
  leases.issue([assignment(1)], "actor")
  for _ in range(5):
    clock.seconds += 9
    assert leases.renew(["1-1", "1-7"], "actor") == ["1-1"]
    assert leases.expire() == []
  clock.seconds += 10
  assert names(leases.expire()) == ["1-1"]
  assert leases.expire() == []


def test_an_actor_that_was_slow_keeps_its_assignment_until_another_has_it(leases, clock):
  leases.issue([assignment(1)], "slow")
  clock.seconds += 10
  leases.expire()
  assert leases.renew(["1-1"], "slow") == ["1-1"]
  assert leases.take("main", 1, "second") == []
  clock.seconds += 10
  assert names(leases.take("main", 1, "second")) == ["1-1"]
  assert leases.renew(["1-1"], "slow") == []
  assert leases.renew(["1-1"], "second") == ["1-1"]


def test_a_released_assignment_is_available_at_once(leases):
  leases.issue([assignment(1)], "actor")
  leases.release(["1-1"], "stranger")
  assert leases.take("main", 1, "second") == []
  leases.release(["1-1", "1-1", "1-9"], "actor")
  assert names(leases.take("main", 2, "second")) == ["1-1"]


def test_a_void_assignment_is_not_the_first_of_its_former_actor(leases):
  leases.issue([assignment(1), assignment(2)], "actor")
  leases.release(["1-2"], "actor")
  leases.void(["1-1"], "stranger")
  leases.void(["1-1"], "actor")
  assert names(leases.take("main", 1, "actor")) == ["1-2"]
  assert names(leases.take("main", 1, "actor")) == ["1-1"]
  for _ in range(5):  # actors that end make no game of a learner void for ever
    leases.void(["1-1"], "actor")
    assert names(leases.take("main", 1, "actor")) == ["1-1"]


def test_an_evaluators_assignment_is_void_three_times_at_most(leases):
  one = assignment(1, branch=EVALUATION)
  leases.issue([one], "evaluator")
  for left in (1, 1, 0):
    leases.void([one.id], "evaluator")
    assert leases.take(EVALUATION_POOL, 1, "evaluator") == [one] * left
  assert leases.evaluations() == [one] and leases.expire() == []
  assert leases.played(one.id, 4) and leases.evaluations() == []


def test_an_assignment_is_forgotten_with_its_last_game(leases, clock):
  leases.issue([assignment(1, games=3)], "actor")
  leases.restore(assignment(1, games=3), 1, "second")  # known: stays the actor's
  assert not leases.played("1-1", 2)
  assert leases.renew(["1-1"], "second") == [] and leases.find("1-1") == assignment(1, games=3)
  assert leases.played("1-1", 1)
  assert leases.find("1-1") is None and leases.assignments() == [] and not leases.played("1-1", 1)
  clock.seconds += 10
  assert leases.expire() == [] and leases.take("main", 1, "second") == []


def test_evaluators_have_a_pool_of_their_own(leases, clock):
  leases.issue([assignment(1, branch=EVALUATION)], "evaluator")
  clock.seconds += 10
  assert leases.take("main", 1, "actor") == []
  assert names(leases.take(EVALUATION_POOL, 1, "second")) == ["1-1"]


def test_after_a_restart_the_first_actor_that_renews_holds_it(leases):
  leases.restore(assignment(1), 1)
  assert leases.renew(["1-1"], "actor") == ["1-1"]
  assert leases.renew(["1-1"], "second") == []
  assert leases.played("1-1", 1)


@pytest.mark.parametrize("jump", [1e6, 10.5, -1e6, -0.5])
def test_a_clock_that_jumps_ends_no_lease_and_the_next_seconds_count(leases, clock, jump):
  leases.issue([assignment(1)], "actor")
  clock.seconds += 4
  leases.expire()
  clock.seconds += jump
  assert leases.expire() == []
  clock.seconds += 5.5
  assert leases.expire() == []
  clock.seconds += 0.75  # 4 + 5.5 + 0.75
  assert names(leases.expire()) == ["1-1"]


EVENTS = ["add", "renew", "played", "release", "void", "wait"]


@hypothesis.given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 5)), max_size=60))
@hypothesis.settings(max_examples=60)
def test_each_assignment_has_one_holder_or_is_available_once(events):
  """Against a plain model: a dict of the holders and the ends of their leases."""
  clock = Clock()
  leases, model = Leases(10.0, clock), {}
  for event, number in events:
    each, actor = assignment(number, games=1), f"actor-{number % 2}"
    if event == "add":
      leases.restore(each, 1, actor)
      model.setdefault(each.id, (actor, clock.seconds + 10))
    elif event == "renew":
      held = each.id in model and model[each.id][0] in ("", actor)
      assert leases.renew([each.id], actor) == [each.id] * held
      if held:
        model[each.id] = actor, clock.seconds + 10
    elif event == "played":
      assert leases.played(each.id, 1) == (each.id in model)
      model.pop(each.id, None)
    elif event in ("release", "void"):
      getattr(leases, event)([each.id], actor)
      if each.id in model and model[each.id][0] == actor:
        model[each.id] = "", 0.0
    else:
      clock.seconds += 2.0 * number
      leases.expire()
    model = {key: (holder, ends) if ends > clock.seconds else ("", 0.0)
             for key, (holder, ends) in model.items()}
    leases.expire()
  available = {key for key, (holder, _) in model.items() if not holder}
  taken = names(leases.take("main", 100, "last"))
  assert sorted(taken) == sorted(available)
  assert sorted(names(leases.assignments())) == sorted(model)


@pytest.mark.parametrize("change, valid", [
  ({}, True), ({"id": "1-x"}, False), ({"id": "1"}, False), ({"games": 0}, False),
  ({"games": 10 ** 9}, False), ({"branch": "a b"}, False), ({"branch": ""}, False),
])
def test_assignments_from_outside_are_checked(change, valid):
  assert is_valid(assignment(1)._replace(**change)) is valid


def test_games_have_their_own_ids():
  assert assignment(7, games=2).result_id(1) == "1-7/1"
  for game in (-1, 2):
    with pytest.raises(ValueError, match=f"1-7 has games 0 to 1, found game {game}"):
      assignment(7, games=2).result_id(game)


def test_a_lease_takes_time():
  with pytest.raises(ValueError, match="lease is 0 seconds"):
    Leases(0)


def test_a_lapsed_holder_gets_its_own_assignments_first_and_each_once(leases, clock):
  """Another actor's lapsed assignment is older; the caller may still play its own."""
  leases.issue([assignment(1)], "dead")
  leases.issue([assignment(2), assignment(3)], "slow")
  clock.seconds += 10
  leases.expire()
  assert leases.renew(["1-2"], "slow") == ["1-2"]
  clock.seconds += 10
  assert names(leases.take("main", 1, "slow")) == ["1-2"]
  assert names(leases.take("main", 5, "slow")) == ["1-3", "1-1"]
  assert leases.take("main", 5, "slow") == []
  assert leases.renew(["1-1", "1-2", "1-3"], "slow") == ["1-1", "1-2", "1-3"]


def test_leases_end_in_the_order_of_their_renewal(leases, clock):
  leases.issue([assignment(1), assignment(2), assignment(3)], "actor")
  clock.seconds += 4
  leases.renew(["1-2", "1-1"], "actor")
  clock.seconds += 2
  leases.issue([assignment(4)], "actor")
  clock.seconds += 4
  assert names(leases.expire()) == ["1-3"]
  clock.seconds += 4
  assert names(leases.expire()) == ["1-2", "1-1"]
  clock.seconds += 2
  assert names(leases.expire()) == ["1-4"] and leases.expire() == []
  assert names(leases.take("main", 9, "second")) == ["1-3", "1-2", "1-1", "1-4"]


def test_assignments_of_evaluators_are_listed_until_they_are_finished(leases):
  mine, other = assignment(1, branch=EVALUATION), assignment(2, branch=EVALUATION)
  leases.issue([mine, assignment(3)], "evaluator")
  leases.restore(other, 1)
  assert leases.evaluations() == [mine, other]
  leases.release([mine.id], "evaluator")
  assert leases.evaluations() == [mine, other]  # another evaluator will play it
  assert leases.played(other.id, 1) and not leases.played(mine.id, 3)
  assert leases.evaluations() == [mine]
