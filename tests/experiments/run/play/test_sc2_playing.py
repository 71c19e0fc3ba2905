"""The players of a single game of StarCraft II."""

import pytest

from starleague.common.errors import UserError
from starleague.experiments import play
from starleague.experiments.run.play import sc2_playing
from tests.experiments.launch import launch


@pytest.mark.parametrize("names, ordered", [
  (("pretrained", "terran:easy"), ("pretrained", "terran:easy")),
  (("human", "agent"), ("agent", "human")), (("agent", "pretrained"), ("agent", "pretrained"))])
def test_an_agent_is_the_first_player(names, ordered):
  assert sc2_playing.order_players(names) == ordered


def test_what_cannot_play_is_refused():
  with pytest.raises(UserError, match="one of them must be agent or pretrained, found human and"):
    sc2_playing.order_players(("human", "zerg:easy"))
  with pytest.raises(UserError, match="players: expected two names, found 'pretrained' and ''"):
    sc2_playing.order_players(("pretrained", ""))
  with pytest.raises(UserError, match="name the run with --run_dir"):
    sc2_playing.find_agent("agent", None, "mini")
  with pytest.raises(UserError, match="--preset: expected one of mini, small, .*found 'full'"):
    sc2_playing.find_agent("pretrained", None, "full")


def test_play_says_how_to_install_the_game(monkeypatch, tmp_path):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  message = launch(play, "pretrained", "terran:easy")
  assert message.startswith("error: StarCraft II: expected Versions/Base")
  assert "download" in message and "SC2PATH" in message and "\n" not in message
