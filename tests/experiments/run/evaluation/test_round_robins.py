"""Games of a round robin, and its resumption."""

import contextlib

import numpy as np

from starleague.environments.skirmish.bots import scripts, tournament
from starleague.experiments.run.evaluation import round_robins


def pairs(**arguments):
  names = ["L0", "L1", "L2", "L3"]
  given = {"cross": False, "apart": None, "focus": None, **arguments}
  games = round_robins.make("default", names, 1, **given)
  return len(games.fixtures.map_index), {
    (names[i], names[j]) for i, j in games.fixtures.players}


def test_all_pairs_play_eighteen_mirror_matches():
  count, found = pairs()
  assert count == 6 * 3 * 3 * 2 and len(found) == 6


def test_pairs_of_the_focus_alone_play():
  assert pairs(focus=["L2"]) == (3 * 18, {("L0", "L2"), ("L1", "L2"), ("L2", "L3")})
  assert pairs(focus=["L2"], apart=1) == (2 * 18, {("L1", "L2"), ("L2", "L3")})
  assert pairs(apart=3, cross=True) == (6 * 6, {("L0", "L3")})


def test_a_flat_tier_has_one_map():
  games = round_robins.make("mini", ["rusher", "builder"], 1, cross=False, apart=None, focus=None)
  np.testing.assert_array_equal(games.fixtures.map_index, [0, 0])


def test_games_that_were_saved_are_not_played_again(tmp_path, monkeypatch):
  path, calls = tmp_path / "games.csv", []

  def play(fixtures, seed, *, tier, played, report):
    calls.append((seed, tier, (played.winner == tournament.UNDER_WAY).sum()))
    np.testing.assert_array_equal(
      np.unique(fixtures.players), scripts.indices_of(["L1", "L2"], "default"))
    found = played._replace(winner=played.winner.copy())
    found.winner[:len(calls) * 5] = 1
    monkeypatch.setattr(round_robins, "_SAVE_INTERVAL_SECONDS", -1.0)
    assert report(found) == (len(calls) < 2)
    if len(calls) == 1:
      raise KeyboardInterrupt
    return found

  monkeypatch.setattr(tournament, "play", play)
  games = round_robins.make("default", ["L1", "L2"], 1, cross=False, apart=None, focus=None)
  with contextlib.suppress(KeyboardInterrupt):
    round_robins.play(games, 4, path)
  fixtures, outcomes = round_robins.play(games, 4, path, seconds=0.0)
  assert calls == [(4, "default", 18), (4, "default", 13)]
  np.testing.assert_array_equal(outcomes.winner, [1] * 10)  # the games that are over
  np.testing.assert_array_equal(fixtures.map_index, games.fixtures.map_index[:10])
  assert path.read_text().count(",-1,0,") == 8
