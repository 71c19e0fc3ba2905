"""The matches of an actor: places, slots, games counted by their start."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.actor import players
from starleague.actor.loops import match_slots
from starleague.league.leases import Assignment

SIZES = players.Sizes(slots=6, matches=4, scripts=2, chunk=1)
SCRIPTS = {"rusher": 0, "builder": 1}


def make(games: int = 4) -> match_slots.MatchSlots:
  return match_slots.MatchSlots(SIZES, games, ("main", "rival"), SCRIPTS)


def assignment(number: int, home: str, away: str, games: int = 2,
               both_learn: bool = False) -> Assignment:
  return Assignment(f"1-{number}", home, away, "pfsp", both_learn, games)


def test_places_and_slots():
  """Matches 0 to 3 are of two policies; 4 + 2 * slot + script are those against scripts."""
  matches = make()
  assert matches.wanted() == {"main": 1, "rival": 1} and matches.free == 4
  assert matches.add(assignment(1, "main", "old-1"))
  assert matches.add(assignment(2, "rival", "builder"))
  assert matches.add(assignment(3, "main", "rival", both_learn=True))
  assert matches.slots == ("main", "rival", "old-1", None, None, None)
  np.testing.assert_array_equal(matches.pairs, [[0, 2], [0, 1], [0, 0], [0, 0]])
  np.testing.assert_allclose(
    matches.probabilities(), [0.25, 0.25, 0, 0, 0, 0, 0, 0.5, *[0] * 8])
  assert matches.wanted() == {"main": 0, "rival": 0} and matches.free == 2


def test_no_place_is_left():
  matches = make()
  for number in range(4):
    assert matches.add(assignment(number, "main", f"old-{number}"))
  assert not matches.add(assignment(5, "rival", "main"))
  assert matches.add(assignment(6, "rival", "rusher"))
  assert matches.slots == ("main", "rival", "old-0", "old-1", "old-2", "old-3")


def test_games_are_numbered_by_their_start_and_surplus_ones_told_apart():
  """The second game ends first and starts game 4, which is surplus; later game 5 is, too."""
  matches = make(games=4)
  matches.add(assignment(1, "main", "old-1", games=4))
  matches.probabilities()
  matches.begin(np.zeros(4, int))
  over = np.zeros((3, 4), bool)
  over[0, 1] = over[2, 0] = over[2, 1] = True
  reward = np.zeros((3, 4, 2), np.float32)
  reward[0, 1], reward[2, 0] = (1, -1), (-1, 1)
  ended = matches.follow(over, np.zeros((3, 4), int), reward, np.zeros(4, int))
  assert [(game.game, game.reward) for game in ended] == [(1, 1.0), (0, -1.0), (4, 0.0)]
  assert all(game.assignment.id == "1-1" for game in ended)


def test_the_next_assignment_of_a_pair_gets_the_games_that_start_next():
  matches = make(games=3)
  matches.add(assignment(1, "main", "rusher", games=2))
  matches.begin(np.full(3, 4))
  assert matches.wanted()["main"] == 1
  assert matches.add(assignment(2, "main", "rusher", games=5))
  assert matches.wanted()["main"] == 0  # one with games that have not started
  over = np.ones((1, 3), bool)
  ended = matches.follow(over, np.full((1, 3), 4), np.zeros((1, 3, 2)), np.full(3, 4))
  found = [(game.assignment.id, game.game) for game in ended]
  assert found == [("1-1", 0), ("1-1", 1), ("1-1", 2)]  # the third is surplus
  ended = matches.follow(over, np.full((1, 3), 4), np.zeros((1, 3, 2)), np.full(3, 4))
  assert [(game.assignment.id, game.game) for game in ended] == [("1-2", i) for i in range(3)]
  assert [each.id for each in matches.assignments] == ["1-2"]


def test_match_is_retired_when_its_last_game_has_ended():
  matches = make(games=2)
  matches.add(assignment(1, "main", "old-1", games=2))
  matches.probabilities()  # call 1
  matches.begin(np.zeros(2, int))
  assert matches.wanted() == {"main": 1, "rival": 1}  # all games of the match have started
  matches.add(assignment(2, "main", "old-2"))
  assert matches.probabilities()[0] == 0  # call 2 starts no game of it
  over, none = np.array([[True, False]]), np.zeros((1, 2, 2), np.float32)
  matches.follow(over, np.array([[0, 0]]), none, np.array([1, 0]))
  matches.retire(2)
  assert matches.free == 2  # game slot 1 still runs
  matches.follow(~over, np.array([[1, 0]]), none, np.array([1, 1]))
  matches.retire(1)
  assert matches.free == 2  # call 2 may still have started one
  matches.retire(2)
  assert matches.free == 3 and [each.id for each in matches.assignments] == ["1-2"]
  for number, name in ((3, "old-3"), (4, "old-4"), (5, "old-5")):
    matches.add(assignment(number, "rival", name))
  assert matches.slots == ("main", "rival", "old-5", "old-2", "old-3", "old-4")
  np.testing.assert_array_equal(matches.pairs, [[1, 4], [0, 3], [1, 5], [1, 2]])


def test_matches_share_by_the_games_that_have_not_started():
  matches = make(games=2)
  matches.add(assignment(1, "main", "old-1", games=4))
  matches.add(assignment(2, "main", "old-2", games=3))
  matches.add(assignment(3, "main", "old-1", games=4))
  matches.begin(np.array([0, 0]))
  np.testing.assert_allclose(matches.probabilities()[:3], [6 / 9, 3 / 9, 0], rtol=1e-6)


def test_newest_match_of_a_player_goes_on_without_another():
  matches = make(games=2)
  matches.add(assignment(1, "main", "old-1", games=1))
  matches.add(assignment(2, "main", "old-2", games=1))
  matches.begin(np.array([0, 1]))
  np.testing.assert_allclose(matches.probabilities()[:3], [0, 1, 0])


def test_games_of_a_dropped_assignment_that_run_count_and_later_ones_do_not():
  matches = make(games=2)
  lost = assignment(1, "main", "old-1", games=4)
  matches.add(lost)
  matches.begin(np.array([0, 0]))
  for _ in range(2):  # the coordinator says so at every report
    matches.drop([lost])
  assert matches.assignments == [lost] and matches.wanted()["main"] == 1
  over = np.ones((2, 2), bool)
  ended = matches.follow(over, np.zeros((2, 2), int), np.zeros((2, 2, 2)), np.zeros(2, int))
  assert [each.game for each in ended] == [0, 1, 4, 4]
  assert matches.assignments == []
  other = assignment(2, "main", "old-1", games=2)  # numbered after the six that have started
  matches.add(other)
  assert matches.assignments == [other] and matches.wanted()["main"] == 0
  ended = matches.follow(over[:1], np.zeros((1, 2), int), np.zeros((1, 2, 2)), np.zeros(2, int))
  assert [(each.assignment.id, each.game) for each in ended] == [("1-1", 4), ("1-1", 5)]
  ended = matches.follow(over[:1], np.zeros((1, 2), int), np.zeros((1, 2, 2)), np.zeros(2, int))
  assert [(each.assignment.id, each.game) for each in ended] == [("1-2", 0), ("1-2", 1)]
  assert matches.assignments == []


def end_all(matches, games, opponent=0):
  """Ends the running games of all places once; returns (assignment, game) of each."""
  over = np.ones((1, games), bool)
  ended = matches.follow(over, np.full((1, games), opponent), np.zeros((1, games, 2)),
                         np.full(games, opponent))
  return [(each.assignment.id, each.game) for each in ended]


def test_an_assignment_that_is_given_again_is_held_once():
  """The coordinator gives it again to its holder when the lease has lapsed."""
  matches = make(games=2)
  held = assignment(1, "main", "old-1", games=3)
  matches.add(held)
  matches.begin(np.array([0, 0]))
  assert matches.add(held) and matches.assignments == [held]
  found = end_all(matches, 2) + end_all(matches, 2)
  assert found == [("1-1", 0), ("1-1", 1), ("1-1", 2), ("1-1", 3)]  # the last one is surplus
  assert matches.assignments == []


def test_an_assignment_that_was_dropped_continues_where_it_stopped():
  matches = make(games=2)
  lost, other = assignment(1, "main", "old-1", games=5), assignment(2, "main", "old-1", games=2)
  matches.add(lost)
  matches.begin(np.array([0, 0]))
  matches.drop([lost])
  matches.add(other)
  matches.add(lost)
  assert matches.assignments == [lost, other]
  found = [game for _ in range(4) for game in end_all(matches, 2)]
  assert found == [("1-1", 0), ("1-1", 1), ("1-2", 0), ("1-2", 1), ("1-1", 2), ("1-1", 3),
                   ("1-1", 4), ("1-1", 5)]
  assert matches.assignments == []


def test_a_match_that_never_closes_forgets_the_games_that_have_ended():
  """A hundred assignments of two games; two surplus games of the last one run at the end."""
  matches = make(games=2)
  matches.add(assignment(0, "main", "old-1"))
  matches.begin(np.array([0, 0]))
  sizes = []
  for number in range(1, 100):
    matches.add(assignment(number, "main", "old-1"))
    sizes.append(len(matches._matches[0].ranges))
    assert end_all(matches, 2) == [(f"1-{number - 1}", 0), (f"1-{number - 1}", 1)]
  assert max(sizes) == 2
  assert end_all(matches, 2) == [("1-99", 0), ("1-99", 1)]
  matches.add(assignment(100, "main", "old-1"))
  assert end_all(matches, 2) == [("1-99", 2), ("1-99", 3)]  # surplus
  assert end_all(matches, 2) == [("1-100", 0), ("1-100", 1)]


@hypothesis.given(st.lists(st.tuples(st.sampled_from(["add", "drop", "end"]), st.integers(0, 2)),
                           max_size=30))
def test_each_game_of_an_assignment_counts_once_at_the_most(events):
  """Assignments of one pair are given, lost and given again in any order while games end."""
  matches, counted = make(games=2), []
  known = [assignment(number, "main", "old-1", games=number + 1) for number in range(3)]
  matches.add(known[0])
  matches.begin(np.array([0, 0]))
  for event, number in events:
    if event == "end":
      counted += end_all(matches, 2)
    elif event == "drop":
      matches.drop([known[number]])
    elif not any(found[0] == known[number].id for found in counted):
      matches.add(known[number])
  sizes = {each.id: each.games for each in known}
  counted = [found for found in counted if found[1] < sizes[found[0]]]
  assert len(counted) == len(set(counted))


def test_steps_are_recorded_for_players_that_learn():
  matches = make()
  matches.add(assignment(1, "main", "rival", both_learn=True))
  matches.add(assignment(2, "rival", "main"))
  matches.add(assignment(3, "main", "old-1"))
  opponent = np.array([[0, 1, 2], [2, 0, 1]])
  row = np.array([[0, 1, 3, 5, -1], [1, 0, 2, 3, 4]])
  np.testing.assert_array_equal(
    matches.recorded(opponent, row), [[0, 1, -1, -1, -1], [-1, 0, 0, 1, 1]])
  np.testing.assert_array_equal(
    matches.learning(np.array([2, 0, 1, 0])), [[0, -1], [0, 1], [1, -1], [0, 1]])


def test_values_of_players_by_match():
  matches = make()
  matches.add(assignment(1, "rival", "main"))
  found = matches.by_player(
    lambda name: np.full(4, 0.25 * (name == "main")), np.zeros(4, np.float32))
  np.testing.assert_array_equal(found[0], [[0] * 4, [0.25] * 4])
  assert not found[1:].any() and found.dtype == np.float32
  numbers = matches.by_player({"rival": 3, "main": 5}.get, np.int32(-1))
  np.testing.assert_array_equal(numbers[0], [3, 5])
  assert (numbers[1:] == -1).all() and numbers.dtype == np.int32


def test_table_without_matches_or_slots():
  with pytest.raises(ValueError, match="no match to play"):
    make().probabilities()
  for small in (SIZES._replace(matches=3), SIZES._replace(slots=5)):
    with pytest.raises(ValueError, match="2 learning players needs at least 4 matches, and as"):
      match_slots.MatchSlots(small, 4, ("main", "rival"), SCRIPTS)


def test_random_leagues_keep_their_books():
  """Plays a simulated program: every game that ends belongs to the match that started it."""
  rng = np.random.default_rng(0)
  matches, games = make(games=6), 6
  number, names = 0, ["old-1", "old-2", "old-3", "rusher", "builder", "main", "rival"]
  counted, made, added, retired = {}, {}, set(), 0

  def fill():
    nonlocal number
    for name, count in matches.wanted().items():
      for _ in range(count):
        number += 1
        each = assignment(number, name, names[rng.integers(len(names))],
                          games=int(rng.integers(1, 5)))
        made[each.id] = each
        if matches.add(each):
          added.add(each.id)

  while not matches.assignments:
    fill()
  started = matches.probabilities()
  playing = rng.choice(SIZES.opponents, games, p=started)
  matches.begin(playing)
  for call in range(1, 300):
    over = rng.random((3, games)) < 0.3
    opponent = np.zeros((3, games), int)
    for iteration in range(3):
      opponent[iteration] = playing
      fresh = rng.choice(SIZES.opponents, games, p=started)
      playing = np.where(over[iteration], fresh, playing)
    for game in matches.follow(over, opponent, np.zeros((3, games, 2)), playing):
      numbers = counted.setdefault(game.assignment.id, [])
      assert game.game not in numbers
      numbers.append(game.game)
    for each in made.values():
      finished = set(range(each.games)) <= set(counted.get(each.id, ()))
      assert finished == (each not in matches.assignments) or each.id not in added
    places = matches.free
    matches.retire(call)
    retired += matches.free - places
    fill()
    started = matches.probabilities()
  assert retired > 50 and len(added) > 100
