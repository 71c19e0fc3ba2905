"""The table of counts: growth, both directions, remembered columns."""

import threading

import hypothesis
import numpy as np
from hypothesis import strategies as st

from starleague.league.counts import NO_GAMES, Counts, CountTable


def test_both_directions_of_a_pair():
  table = CountTable()
  table.put({("a", "b"): Counts(4, 2, 1, 1)})
  assert table.get("a", "b") == (4, 2, 1, 1) and table.get("b", "a") == (4, 1, 1, 2)
  assert table.get("a", "c") == table.get("nobody", "a") == NO_GAMES
  assert table.scores("a", ["a", "b", "c"]).tolist() == [.5, .625, .5]
  assert table.scores("b", ("a",)).tolist() == [.375]
  assert (table.score("b", "a"), table.score("a", "c"), table.score("x", "a")) == (.375, .5, .5)
  np.testing.assert_array_equal(table.score_matrix(["a", "c"], ["b"]), [[.625], [.5]])
  np.testing.assert_array_equal(table.count_matrix(["b"], ["a", "c"]), [[[4, 1, 1, 2], [0] * 4]])


def test_a_hundred_players_equal_a_dict():
  """Rows are added while the arrays grow from their first size."""
  rng = np.random.default_rng(0)
  table, twin = CountTable(), {}
  for _ in range(2000):
    i, j = rng.choice(100, 2, replace=False)
    wins, draws, losses = (float(x) for x in rng.integers(0, 9, 3))
    counts = Counts(wins + draws + losses, wins, draws, losses)
    table.put({(f"p{i}", f"p{j}"): counts})
    twin[i, j], twin[j, i] = counts, Counts(counts.games, losses, draws, wins)
  names = tuple(f"p{i}" for i in range(100))
  for i in range(100):
    expected = [twin.get((i, j), NO_GAMES) for j in range(100)]
    np.testing.assert_allclose(table.scores(f"p{i}", names), [c.score for c in expected])
    np.testing.assert_array_equal(table.count_matrix([f"p{i}"], names)[0], expected)


def test_a_filled_table_equals_one_of_single_changes():
  pairs = {("a", "b"): Counts(2, 1, 0, 1), ("a", "c"): Counts(1.5, .5, 1, 0)}
  single, filled = CountTable(), CountTable()
  single.put(pairs)
  filled.fill(["a", "a"], ["b", "c"], np.array(list(pairs.values())), np.zeros(2))
  for home in "abc":
    np.testing.assert_array_equal(single.count_matrix(home, "abc"),
                                  filled.count_matrix(home, "abc"))
    np.testing.assert_allclose(single.scores(home, "abc"), filled.scores(home, "abc"))


def test_a_cleared_player_has_no_counts():
  table = CountTable()
  table.put({("a", "b"): Counts(1, 1, 0, 0), ("b", "c"): Counts(1, 1, 0, 0),
             ("a", "c"): Counts(1, 1, 0, 0)})
  table.clear("b")
  assert table.scores("a", "abc").tolist() == [.5, .5, 1]
  assert table.get("c", "b") == NO_GAMES and table.get("c", "a") == (1, 0, 0, 1)


def test_a_remembered_group_follows_later_changes():
  table, group = CountTable(), ("b", "c")
  assert table.scores("a", group).tolist() == [.5, .5]
  table.put({("a", "c"): Counts(1, 1, 0, 0)})
  for i in range(40):  # the arrays grow
    table.put({("x", f"y{i}"): Counts(1, 0, 0, 1)})
  assert table.scores("a", group).tolist() == [.5, 1]


def test_ages_count_from_the_last_change(monkeypatch):
  seconds = 100.0
  monkeypatch.setattr("time.monotonic", lambda: seconds)
  table = CountTable()
  table.put({("a", "b"): Counts(1, 1, 0, 0)})
  seconds = 130.0
  table.put({("c", "a"): Counts(1, 1, 0, 0)})
  seconds = 131.0
  table.fill(["b"], ["c"], np.array([Counts(1, 0, 1, 0)]), np.array([40.0]))
  seconds = 131.5
  a, b, c = table.numbers("abc")
  _, ages = table.of_pairs(np.array([a, a, b, c]), np.array([b, c, a, b]))
  assert ages.tolist() == [31.5, 1.5, 31.5, 40.5]


def test_threads_add_players_and_counts():
  table = CountTable()
  def work(number):
    for i in range(60):
      table.put({(f"{number}-{i}", "all"): Counts(1, 1, 0, 0)})
  threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(60)
  names = [f"{number}-{i}" for number in range(4) for i in range(60)]
  assert table.scores("all", names).tolist() == [0] * 240


def test_a_row_follows_changes_growth_and_clearing():
  table = CountTable()
  table.put({("a", "b"): Counts(4, 2, 1, 1)})
  row, (a, b) = table.row("a"), table.numbers(["a", "b"])
  assert row.scores[b] == .625 and row.scores[a] == .5 and table.row("a") is row
  changes = row.changes
  table.put({("b", "c"): Counts(1, 1, 0, 0)})  # of other players
  assert row.changes == changes and len(row.scores) == 3
  for i in range(40):  # the arrays grow
    table.put({(f"y{i}", "a"): Counts(1, 1, 0, 0)})
  assert row.changes == changes + 40
  names = ["b", "c", *(f"y{i}" for i in range(40))]
  assert [row.scores[number] for number in table.numbers(names)] == [.625, .5] + 40 * [0]
  table.fill(["c", "b"], ["a", "y0"], np.array([Counts(2, 2, 0, 0), Counts(1, 0, 0, 1)]),
             np.zeros(2))
  assert row.scores[table.numbers(["c"])[0]] == 0 and row.changes > changes + 40
  assert row.scores.tolist() == table.scores("a", list(table._number)).tolist()
  table.clear("a")
  assert set(row.scores) == {.5}


@hypothesis.given(st.lists(st.tuples(
  st.sampled_from(["put", "fill", "clear", "join", "weights"]), st.integers(0, 9),
  st.integers(0, 9), st.integers(0, 4)), max_size=40))
@hypothesis.settings(max_examples=60)
def test_weights_follow_scores(events):
  """Whenever they are first asked for, and whatever changes afterwards."""
  def squared(score):
    return (1 - score) ** 2

  def equal(score):
    del score
    return 1.0

  table, followed = CountTable(), []
  for event, i, j, wins in events:
    counts = Counts(4, wins, 0, 4 - wins)
    if event == "put" and i != j:
      table.put({(f"p{i}", f"p{j}"): counts})
    elif event == "fill" and i != j:
      table.fill([f"p{i}"], [f"p{j}"], np.array([counts]), np.zeros(1))
    elif event == "clear":
      table.clear(f"p{i}")
    elif event == "join":
      table.numbers([f"p{10 + i}"])
    else:
      weight = (squared, equal)[j % 2]
      followed.append((f"p{i}", weight, table.row(f"p{i}").weights(weight)))
  for name, weight, weights in followed:
    scores = table.scores(name, list(table._number)).tolist()
    assert table.row(name).scores.tolist() == scores
    assert weights.tolist() == [weight(score) for score in scores]


def test_changed_pairs_are_taken_once():
  table = CountTable()
  table.put({("a", "b"): Counts(1, 1, 0, 0)})
  assert table.take_changes() == set()  # the first call begins to collect
  table.put({("a", "b"): Counts(2, 2, 0, 0), ("c", "a"): Counts(1, 1, 0, 0)})
  a, b, c = table.numbers("abc")
  assert table.take_changes() == {(a, b), (c, a)}
  assert table.take_changes() == set()
  table.fill(["b"], ["c"], np.array([Counts(1, 0, 1, 0)]), np.zeros(1))
  table.clear("a")
  assert table.take_changes() == {(b, c), (a, b), (a, c)}


def test_counts_and_ages_of_pairs(monkeypatch):
  monkeypatch.setattr("time.monotonic", lambda: 10.0)
  table = CountTable()
  table.put({("a", "b"): Counts(4, 2, 1, 1)})
  monkeypatch.setattr("time.monotonic", lambda: 12.0)
  a, b = table.numbers("ab")
  counts, ages = table.of_pairs(np.array([b, a]), np.array([a, b]))
  assert counts.tolist() == [[4, 1, 1, 2], [4, 2, 1, 1]] and ages.tolist() == [2, 2]
