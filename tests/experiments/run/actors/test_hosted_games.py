"""Orders, results and sizes of games in StarCraft II; the weights and players of a single game."""

import numpy as np
import pytest

from starleague.actor import games
from starleague.actor.game_processes import Finished
from starleague.common.errors import UserError
from starleague.data.z.conditioning import unconditional
from starleague.experiments import play
from starleague.experiments.run.actors import compiled_single, hosted_games
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import wiring
from starleague.experiments.run.play import sc2_playing
from tests.experiments.launch import launch


def parts():
  return wiring.make_parts(settings.complete({}, {
    "environment.name": "sc2", "environment.opponents": "terran:veryeasy,zerg:hard",
    "sc2.maps": "Flat32,Simple64", "sc2.races": "terran,protoss"}))


@pytest.mark.parametrize("largest, sizes", [
  (1, [1]), (2, [1, 2]), (4, [1, 4]), (6, [1, 4, 6]), (64, [1, 4, 16, 64])])
def test_sizes_of_batches(largest, sizes):
  assert hosted_games.batch_sizes(largest) == sizes


def test_orders_are_drawn_from_the_config():
  rng, given = np.random.default_rng(0), parts()
  told = unconditional(2, 6200)
  orders = [hosted_games.draw_order(given, rng, bot, told)
            for bot in ("", "terran:veryeasy", "zerg:hard") * 60]
  assert {(order.targets, order.active) for order in orders} == {
    (((0, 0), (0, 0)), ((False,) * 4,) * 2)}
  assert [order.opponent for order in orders[:3]] == ["", "terran:veryeasy", "zerg:hard"]
  assert {race for order in orders for race in order.races} == {1, 3}
  assert {order.map_index for order in orders} == {0, 1}
  assert {order.swap_sides for order in orders} == {False, True}
  assert len({order.seed for order in orders}) == 180
  assert hosted_games.draw_order(given, rng, "", told, (3, 1)).races == (3, 1)


def test_z_is_drawn_for_the_match_up_and_both_sides():
  """Rows are 100 map + 10 home race + away race, and 1000 for the second side."""
  rng, given = np.random.default_rng(0), parts()
  maps, home, away, side, _ = np.indices((2, 5, 5, 2, 3))
  told = unconditional(2, 6200)._replace(
    rows=100 * maps + 10 * home + away + 1000 * side, active=np.array([1.0, 0.5, 0.0, 1.0]))
  seen = np.zeros(4)
  for bot in ("", "terran:veryeasy", "zerg:hard") * 60:
    order = hosted_games.draw_order(given, rng, bot, told)
    mine, other = order.races[0], {"": order.races[1], "terran:veryeasy": 1, "zerg:hard": 2}[
      order.opponent]
    row = 100 * order.map_index + 10 * mine + other
    assert order.targets[0] == (row, row + 1000)
    if not order.opponent:
      row = 100 * order.map_index + 10 * other + mine
      assert order.targets[1] == (row, row + 1000)
    assert not bot or order.active[1] == (False,) * 4
    assert games.decode(games.Order, games.encode(order)) == order
    seen += order.active[0]
  assert seen[0] == seen[3] == 180 and seen[2] == 0 and 60 < seen[1] < 120


def test_results_count_for_the_opponent_and_void_matches_do_not():
  given = parts()
  finished = [Finished(games.Order("zerg:hard"), games.Report(1)),
              Finished(games.Order(""), games.Report(-1)),
              Finished(games.Order("terran:veryeasy"), games.Report(None, reason="it hangs")),
              Finished(games.Order("terran:veryeasy"), games.Report(0))]
  found = hosted_games.results_of(given, finished)
  np.testing.assert_array_equal(found.opponent, [[2, 0, 1]])
  np.testing.assert_array_equal(found.reward, [[[1, -1], [-1, 1], [0, 0]]])
  counted = compiled_single.game_results(found, given.opponents, now=5.0)
  assert [(result.away, result.result) for result in counted] == [
    ("zerg:hard", 1), ("terran:veryeasy", 0)]
  none = hosted_games.results_of(given, [])
  assert compiled_single.game_results(none, given.opponents, 5.0) == []


@pytest.mark.parametrize("names, ordered", [
  (("pretrained", "terran:easy"), ("pretrained", "terran:easy")),
  (("human", "agent"), ("agent", "human")), (("agent", "pretrained"), ("agent", "pretrained"))])
def test_an_agent_is_the_first_player(names, ordered):
  assert sc2_playing.order_players(names) == ordered


def test_what_cannot_play_is_refused():
  with pytest.raises(UserError, match="one of them must be agent or pretrained, found human and"):
    sc2_playing.order_players(("human", "zerg:easy"))
  with pytest.raises(UserError, match="name the run with --run_dir"):
    sc2_playing.find_agent("agent", None, "mini")
  with pytest.raises(UserError, match="--preset: expected one of medium, mini, .*found 'full'"):
    sc2_playing.find_agent("pretrained", None, "full")


def test_play_says_how_to_install_the_game(monkeypatch, tmp_path):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  message = launch(play, "pretrained", "terran:easy")
  assert message.startswith("error: StarCraft II: expected Versions/Base")
  assert "download" in message and "SC2PATH" in message and "\n" not in message
