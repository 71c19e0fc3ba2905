"""The players of a single game of StarCraft II, and its end."""

import numpy as np
import pytest

from starleague.agent import types
from starleague.common.errors import UserError
from starleague.environments import base
from starleague.environments.sc2 import environment
from starleague.environments.sc2.client import installation
from starleague.experiments import play
from starleague.experiments.run.play import sc2_playing
from tests.experiments.launch import launch


@pytest.mark.parametrize("names, ordered", [
  (("pretrained", "terran:easy"), ("pretrained", "terran:easy")),
  (("human", "agent"), ("agent", "human")), (("agent", "pretrained"), ("agent", "pretrained"))])
def test_an_agent_is_the_first_player_and_keeps_its_race(names, ordered):
  races = ("zerg", "terran") if names == ordered else ("terran", "zerg")
  assert sc2_playing.order_players(names, races) == (ordered, ("zerg", "terran"))


def test_what_cannot_play_is_refused():
  with pytest.raises(UserError, match="one of them must be agent or pretrained, found human and"):
    sc2_playing.order_players(("human", "zerg:easy"), ("random", "random"))
  with pytest.raises(UserError, match="players: expected two names, found 'pretrained' and ''"):
    sc2_playing.order_players(("pretrained", ""), ("random", "random"))
  with pytest.raises(UserError, match="--races: expected two, found zerg$"):
    sc2_playing.order_players(("pretrained", "human"), ("zerg",))
  with pytest.raises(UserError, match="name the run with --run_dir"):
    sc2_playing.find_agent("agent", None, "mini")
  with pytest.raises(UserError, match="--preset: expected one of mini, small, .*found 'full'"):
    sc2_playing.find_agent("pretrained", None, "full")


def test_play_says_how_to_install_the_game(monkeypatch, tmp_path):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  message = launch(play, "pretrained", "terran:easy")
  assert message.startswith("error: StarCraft II: expected Versions/Base")
  assert "download" in message and "SC2PATH" in message and "\n" not in message


@pytest.mark.parametrize("names, races, mmr", [
  (("human", "agent"), ("zerg", "terran"), [5000, 5000]),
  (("agent", "pretrained"), ("terran", "zerg"), [5000, 6200])])
def test_each_player_has_its_own_race_and_mmr(monkeypatch, tmp_path, capsys, names, races, mmr):
  hosted, played = [], []

  class Host:
    def __init__(self, *arguments, **options):
      hosted.append(options["names"])

    def environment(self):
      return None

    def close(self):
      pass

  def find_agent(name, run_dir, preset):
    return sc2_playing.Agent("config", name, {"agent": 5000, "pretrained": 6200}[name])

  def end_at_once(environment, agents, match_up, seed, replay):
    played.append(match_up)
    return sc2_playing.Ended(1, 700)

  monkeypatch.setattr(environment, "GameHost", Host)
  monkeypatch.setattr(installation, "find", lambda: None)
  monkeypatch.setattr(sc2_playing, "find_agent", find_agent)
  monkeypatch.setattr(sc2_playing, "play", end_at_once)
  (tmp_path / "config.json").write_text("{}")
  assert launch(play, *names, "--races", "terran,zerg", "--run_dir", tmp_path) is None
  (match_up,) = played
  assert tuple(types.RACES[race] for race in match_up.races) == races
  assert match_up.mmr.tolist() == mmr
  assert hosted == [names if names[0] == "agent" else names[::-1]]
  assert "result='agent wins' loops=700" in capsys.readouterr().out


class Game:
  """A state whose replay can be saved, or not."""

  def __init__(self, error=None):
    self.error, self.saved = error, []

  def save_replay(self, path):
    if self.error is not None:
      raise self.error
    self.saved.append(path)


def play_out(game, over, on_due, tmp_path):
  def due(state):
    raise on_due

  outcome = base.Outcome(np.asarray(over), np.array([-1, 1], np.float32))
  observation = types.zeros(types.observation_spec(3, 4))._replace(game_loop=np.int32(700))
  made = base.Environment(
    reset=lambda seed, match_up: game, observe=lambda state, player: (observation, None),
    act=None, advance=None, due=due, outcome=lambda state: outcome)
  return sc2_playing.play(made, {}, base.make_match_up(), 0, tmp_path / "game")


def test_a_game_at_its_end_is_saved(tmp_path):
  game = Game()
  assert play_out(game, True, None, tmp_path) == sc2_playing.Ended(-1, 700)
  assert game.saved == [tmp_path / "game"]
  with pytest.raises(UserError, match="^the disk is full$"):
    play_out(Game(UserError("the disk is full")), True, None, tmp_path)


def test_an_interrupted_game_is_saved(tmp_path):
  game = Game()
  with pytest.raises(KeyboardInterrupt):
    play_out(game, False, KeyboardInterrupt(), tmp_path)
  assert game.saved == [tmp_path / "game"]


def test_the_error_of_a_failed_game_is_the_one_that_the_user_sees(tmp_path):
  game = Game(UserError("saving the replay: the game is not running"))
  with pytest.raises(UserError, match="^stepping: the game hangs$"):
    play_out(game, False, UserError("stepping: the game hangs"), tmp_path)
