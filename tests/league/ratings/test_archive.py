"""The archive of behaviours: cells, elites, coverage and QD score over time."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starleague.league.ratings import archive
from starleague.league.ratings.archive import NEVER, Behaviour, Cell, CellCount

NAMES = ("main", "main-0001", "old", "unrated")
QUALITIES = (0.75, 0.5, 0.25, float("nan"))


@pytest.mark.parametrize("behaviour, expected", [
  ((0.0, 0.0, NEVER), (0, 0, 7)),  # nothing built
  ((0.1, 1.0, 1008), (0, 1, 0)),  # 45 s: edges belong to the lower bin
  ((0.2, 1.01, 1009), (1, 2, 1)),
  ((2 / 10, 1.5, 1344), (1, 2, 1)), ((0.25, 2.0, 2016), (2, 3, 2)),
  ((0.5, 2.1, 2688), (3, 4, 3)), ((0.6, 6.0, 4032), (4, 4, 4)),
  ((1.0, 0.5, 6720), (4, 1, 5)), ((1.0, 0.5, 6721), (4, 1, 6)), ((0.3, 0.0, 0), (2, 0, 0)),
])
def test_cells_of_behaviours(behaviour, expected):
  assert archive.cell(Behaviour(*behaviour)) == expected


def test_the_grid_has_a_label_for_each_bin():
  assert archive.SHAPE == (5, 5, 8) and archive.EMPTY.quality.size == 200
  for axis, extra in zip(archive.AXES, (1, 1, 2), strict=True):
    assert len(axis.labels) == len(axis.edges) + extra
    assert list(axis.edges) == sorted(set(axis.edges))
  assert [round(float(label.split()[1]) * 22.4) for label in archive.ATTACK.labels[:-2]] == list(
    archive.ATTACK.edges)


def test_the_better_player_holds_a_cell_and_the_first_of_two_equal_ones():
  found = archive.EMPTY
  for where, quality, player in (((1, 2, 3), 0.5, 0), ((1, 2, 3), 0.25, 1), ((1, 2, 3), 0.5, 2),
                                 ((0, 0, 7), 0.0, 3)):
    found = archive.add(found, Cell(*where), quality, player)
  assert found.quality[1, 2, 3] == 0.5 and found.holder[1, 2, 3] == 0
  assert found.quality[0, 0, 7] == 0.0 and found.holder[0, 0, 7] == 3
  assert archive.coverage(found) == 2 / 200 and archive.qd_score(found) == 0.5
  better = archive.add(found, Cell(1, 2, 3), 0.75, 4)
  assert (better.holder[1, 2, 3], archive.qd_score(better)) == (4, 0.75)
  assert found.holder[1, 2, 3] == 0  # unchanged
  assert archive.coverage(archive.EMPTY) == archive.qd_score(archive.EMPTY) == 0.0
  for quality in (-0.1, float("nan"), float("inf")):
    with pytest.raises(ValueError, match="expected a number from 0"):
      archive.add(found, Cell(0, 0, 0), quality, 1)


def count(player, snapshots, where, games, steps):
  return CellCount(player, snapshots, Cell(*where), games, steps)


def test_a_league_by_hand():
  """A cell needs three games; a player without a quality holds none."""
  found, points = archive.fill([
    count("old", 0, (0, 1, 1), 3, 0),  # 0.25
    count("main", 0, (0, 1, 1), 9, 100),  # before the first snapshot: that of main-0001, 0.5
    count("main", 0, (1, 1, 1), 2, 100),
    count("main", 1, (1, 1, 1), 4, 300),  # after it: main's own, 0.75
    count("main-0001", 0, (1, 1, 1), 5, 400),
    count("main-0001", 0, (2, 2, 2), 5, 300),
    count("unrated", 0, (3, 3, 3), 50, 50), count("gone", 0, (3, 3, 3), 50, 50),
  ], NAMES, QUALITIES)
  assert [(point.steps, round(200 * point.coverage), point.qd_score) for point in points] == [
    (0, 1, 0.25), (100, 1, 0.5), (300, 3, 1.75)]
  held = {tuple(map(int, where)): NAMES[found.holder[tuple(where)]]
          for where in np.argwhere(found.holder != archive.NOBODY)}
  assert held == {(0, 1, 1): "main-0001", (1, 1, 1): "main", (2, 2, 2): "main-0001"}
  assert archive.fill([], NAMES, QUALITIES)[1] == []


@pytest.mark.parametrize("live, frozen, steps", [
  ((2, 100), (1, 300), [300]), ((1, 100), (2, 300), [300]), ((2, 500), (4, 300), [300]),
  ((3, 100), (4, 300), [100]), ((1, 100), (1, 300), [])])
def test_games_of_a_policy_before_and_after_its_snapshot_add_up(live, frozen, steps):
  found, points = archive.fill([
    count("main-0001", 0, (1, 1, 1), *frozen), count("main", 0, (1, 1, 1), *live),
    count("main", 1, (1, 1, 1), 2, 900)], NAMES, QUALITIES)  # another policy
  assert [(point.steps, point.qd_score) for point in points] == [(each, 0.5) for each in steps]
  assert found.holder[1, 1, 1] == (NAMES.index("main-0001") if steps else archive.NOBODY)


@pytest.mark.parametrize("names, qualities, held, score", [
  (("main",), (0.75,), "main", 1.5),
  (("main", "main-0001"), (0.75, np.nan), "main-0001", 1.5),
  (("main", "main-0001"), (0.75, 0.5), "main-0001", 1.0),
  (("main", "main-0001"), (np.nan, np.nan), None, 0.0), (("main-0001",), (np.nan,), None, 0.0)])
def test_a_new_snapshot_keeps_the_cells_of_its_parent(names, qualities, held, score):
  """Until it is rated, its quality is that of the policy which it copied."""
  found, points = archive.fill([count("main", 0, (1, 2, 3), 5, 100),
                                count("main", 0, (2, 2, 3), 9, 200)], names, qualities)
  holders = {names[i] for i in found.holder[found.holder != archive.NOBODY]}
  assert holders == ({held} if held else set())
  assert (archive.qd_score(found), archive.coverage(found)) == (score, 2 / 200 if held else 0.0)
  assert [point.steps for point in points] == ([100, 200] if held else [])


def test_games_of_a_learner_are_those_of_its_next_snapshot():
  names = {"main": 0, "main-0001": 1, "main-0002": 2, "main-0001-x": 3}
  assert [archive.policy(count("main", n, (0, 0, 0), 3, 0), names) for n in range(4)] == [
    1, 2, 0, 0]
  assert archive.policy(count("main-0001", 0, (0, 0, 0), 3, 0), names) == 1
  assert archive.policy(count("nobody", 0, (0, 0, 0), 3, 0), names) is None


GAMES = st.tuples(
  st.sampled_from(NAMES), st.builds(
    Behaviour, st.sampled_from([0.0, 0.15, 0.4]), st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([NEVER, 900, 1200])))


def of_games(games):
  """The archive of games in order, as the coordinator counts them."""
  counts = {}
  for number, (player, behaviour) in enumerate(games):
    key = player, archive.cell(behaviour)
    before = counts.get(key, count(player, 0, key[1], 0, 0))
    counts[key] = before._replace(
      games=before.games + 1,
      steps=number if before.games < archive.FEWEST_GAMES else before.steps)
  return archive.fill(counts.values(), NAMES, QUALITIES)


@settings(max_examples=60, deadline=None)
@given(st.lists(GAMES, max_size=40), GAMES)
def test_one_more_game_lowers_neither_coverage_nor_qd_score(games, more):
  (before, points), (after, _) = of_games(games), of_games([*games, more])
  assert archive.coverage(after) >= archive.coverage(before)
  assert archive.qd_score(after) >= archive.qd_score(before) - 1e-12
  for earlier, later in zip(points, points[1:], strict=False):
    assert later.steps > earlier.steps and later.coverage >= earlier.coverage
    assert later.qd_score > earlier.qd_score
  # The best policy with three games in a cell holds it.
  best = collections.defaultdict(float)
  names = {name: i for i, name in enumerate(NAMES)}
  policies = [(archive.policy(count(player, 0, where, 1, 0), names), where)
              for player, where in ((name, archive.cell(behaviour)) for name, behaviour in games)]
  for (player, where), number in collections.Counter(policies).items():
    if number >= archive.FEWEST_GAMES and QUALITIES[player] == QUALITIES[player]:
      best[where] = max(best[where], QUALITIES[player])
  assert archive.qd_score(before) == pytest.approx(sum(best.values()))
  assert round(200 * archive.coverage(before)) == len(best)


@pytest.mark.parametrize("quality, held", [(np.nan, None), (0.5, "main-0001")])
def test_a_new_snapshot_does_not_keep_the_cells_of_a_parent_that_was_reset(quality, held):
  """The parent has other weights, and so another quality, until the snapshot has its own."""
  names = ("main", "main-0001")
  counts = [count("main", 0, (1, 2, 3), 5, 100), count("main", 1, (2, 2, 3), 5, 200)]
  found, points = archive.fill(counts, names, (0.75, quality), former={"main-0001"})
  assert found.holder[1, 2, 3] == (archive.NOBODY if held is None else names.index(held))
  assert np.isnan(found.quality[1, 2, 3]) if held is None else found.quality[1, 2, 3] == 0.5
  assert found.quality[2, 2, 3] == 0.75  # the reset player's own
  assert [point.steps for point in points] == ([200] if held is None else [100, 200])


def test_games_before_and_after_the_order_of_a_snapshot_are_those_of_two_policies():
  """Also while it is not saved yet; before, one more game moved the held cell to its own steps."""
  for later, steps in ((1, []), (2, []), (3, [300])):
    _, points = archive.fill([count("main", 0, (1, 1, 1), 2, 100),
                              count("main", 1, (1, 1, 1), later, 300)], ("main",), (0.5,))
    assert [point.steps for point in points] == steps
