"""Players by name and the tier of their game."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common.errors import UserError
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary
from starleague.environments.skirmish.rules.tables.tables import (
  DEFAULT_GAME_CONFIG,
  GAME_CONFIGS,
  game_config,
)
from starleague.experiments.configs import small
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.play import choose_players


def test_agent_plays_with_the_runs_newest_weights(tmp_path, monkeypatch):
  """Checks the weights and the environment; the policy itself is not run."""
  run_dir = tmp_path / "mini"
  config = choose_players.settings.complete({})
  choose_players.settings.save(config, run_dir)
  with pytest.raises(UserError, match="has no weights 'trained': expected them in .*checkpoints"):
    choose_players.choose(("agent", "rusher"), run_dir=run_dir)
  (run_dir / "checkpoints").mkdir()
  with pytest.raises(UserError, match=f"^{run_dir} has no checkpoint yet: expected one in .*ts$"):
    choose_players.choose(("agent", "rusher"), run_dir=run_dir)
  (run_dir / "checkpoints" / f"{1:012d}").mkdir()
  monkeypatch.setattr(saved_agents.checkpoints, "load_params_and_step",
                      lambda path, config: ((path, config.name), 1))
  game, (agent, script) = choose_players.choose(("agent", "rusher"), run_dir=run_dir)
  assert game == DEFAULT_GAME_CONFIG
  assert agent.name == "agent mini" and agent.params == (run_dir / "checkpoints", "mini")
  assert script.name == "rusher"
  assert jax.tree.leaves(agent.memory)[0].shape
  with pytest.raises(UserError, match=f"--tier is large, but {run_dir} plays at mini"):
    choose_players.choose(("agent", "rusher"), run_dir=run_dir, tier="large")


def test_the_agent_of_a_league_is_its_first_main_agent_with_its_race(tmp_path, monkeypatch):
  config = small.get_config().to_dict()
  choose_players.settings.save(choose_players.settings.complete(
    config, {"league.composition": "zerg:1:0:0,protoss:1:0:0"}), tmp_path)
  for player in ("protoss-main-0", "zerg-main-0"):
    (tmp_path / "learners" / player / "checkpoints" / f"{1:012d}").mkdir(parents=True)
  monkeypatch.setattr(
    saved_agents.checkpoints, "load_params_and_step", lambda path, config: (path, 1))
  _, (agent, _) = choose_players.choose(("agent", "L7"), run_dir=tmp_path)
  assert agent.params == tmp_path / "learners" / "zerg-main-0" / "checkpoints"
  for names, races, expected in (
      (("agent", "L7"), ("random", "random"), ["zerg", "random"]),
      (("L7", "agent"), ("terran", "random"), ["terran", "zerg"]),
      (("agent", "agent"), ("protoss", "random"), ["protoss", "zerg"])):
    assert choose_players.own_races(names, races, tmp_path) == expected
  assert choose_players.own_races(("L7", "L8"), ("random", "zerg"), None) == ["random", "zerg"]


def test_players_of_a_league_are_chosen_by_name(tmp_path, monkeypatch):
  """Learning players, and snapshots: the first one is stored once for all players."""
  config = small.get_config().to_dict()
  choose_players.settings.save(choose_players.settings.complete(
    config, {"league.composition": "zerg:0:0:1:1,protoss:0:1:0:0"}), tmp_path)
  folders = ("learners/zerg-league_exploiter-0/checkpoints/000000000001", "initial",
             "players/protoss-main_exploiter-0-0001")
  for folder in folders:
    (tmp_path / folder).mkdir(parents=True)
  monkeypatch.setattr(
    saved_agents.checkpoints, "load_params_and_step", lambda path, config: (path, 1))
  names = ("zerg-league_exploiter-0", "zerg-main-0-0000", "protoss-main_exploiter-0-0001", "L7")
  _, found = choose_players.choose(names, run_dir=tmp_path)
  assert [player.name for player in found] == list(names)
  assert [player.params for player in found[:3]] == [
    tmp_path / "learners/zerg-league_exploiter-0/checkpoints", tmp_path / "initial",
    tmp_path / folders[2]]
  assert choose_players.own_races(names, ("random",) * 4, tmp_path) == [
    "zerg", "zerg", "protoss", "random"]
  assert choose_players.own_races(names[:2], ("random", "terran"), tmp_path) == ["zerg", "terran"]
  with pytest.raises(UserError, match="player 'zerg-main-1-0000': expected one of L0, "):
    choose_players.choose(("zerg-main-0-0000", "zerg-main-1-0000"), run_dir=tmp_path)
  with pytest.raises(UserError, match="none of L7 L8 is 'agent' or a player of its league"):
    choose_players.choose(("L7", "L8"), run_dir=tmp_path)


def test_tier_is_one_that_has_the_players():
  assert choose_players.choose(("L7", "macro"))[0].tier == "default"
  assert choose_players.choose(("rusher", "builder"))[0].tier == "mini"
  assert choose_players.choose(("L7", "macro"), tier="large")[0] == GAME_CONFIGS["large"]


def test_pretrained_weights_decide_the_tier(tmp_path, monkeypatch):
  origin = {"mini": SimpleNamespace(tier="mini", mmr=6000)}
  weights = SimpleNamespace(config=agent_config.mini(), params="weights", origin=origin["mini"])
  monkeypatch.setattr(choose_players.pretrained, "names", lambda: tuple(origin))
  monkeypatch.setattr(choose_players.pretrained, "load_origin", origin.__getitem__)
  monkeypatch.setattr(choose_players.pretrained, "load_pretrained", lambda name: weights)
  for names in (("pretrained",), ("pretrained", "rusher"), ("rusher", "pretrained")):
    game, players = choose_players.choose(names)
    assert game == DEFAULT_GAME_CONFIG
    player = players[names.index("pretrained")]
    assert (player.name, player.params, player.mmr) == ("pretrained mini", "weights", 6000)
  for preset in (agent_config.full(), agent_config.small()):  # the smallest of the tier plays
    origin[preset.name] = SimpleNamespace(tier="default", mmr=5000)
    monkeypatch.setattr(
      choose_players.pretrained, "load_pretrained", lambda name: SimpleNamespace(
        config=agent_config.preset(name), params=name, origin=origin[name]))
    game, players = choose_players.choose(("pretrained", "L7"))
    assert game == game_config("default", preset)
    assert (players[0].name, players[0].params) == (f"pretrained {preset.name}", preset.name)
  # Beside the agent of a run those play that play its game.
  settings = choose_players.settings
  settings.save(settings.complete(small.get_config().to_dict(), {"preset": "full"}),
                tmp_path / "run")
  (tmp_path / "run" / "checkpoints" / f"{1:012d}").mkdir(parents=True)
  monkeypatch.setattr(
    saved_agents.checkpoints, "load_params_and_step", lambda path, config: (None, 1))
  both = ("agent", "pretrained")
  game, players = choose_players.choose(both, run_dir=tmp_path / "run")
  assert game == game_config("default", agent_config.full()) and players[1].params == "full"
  del origin["full"]
  with pytest.raises(UserError, match="weights play with .*max_entities=96.*, the run with .*512"):
    choose_players.choose(both, run_dir=tmp_path / "run")
  with pytest.raises(UserError, match="tier large has no pretrained weights; expected one of "
                     "default, mini"):
    choose_players.choose(("pretrained", "L7"), tier="large")


@pytest.mark.parametrize("races, found", [
  (["terran"], "terran"), (["terran", "zerg", "zerg"], "terran,zerg,zerg"), ([], "")])
def test_a_game_has_two_races(races, found):
  with pytest.raises(UserError, match=f"^--races: expected two, found {found}$"):
    choose_players.make_setting(GAME_CONFIGS["mini"], 5, races, "open", False)


def test_players_get_the_z_of_a_game_like_theirs(tmp_path):
  """Player 1 starts on side 1: its z is that of side 1, its opponent's that of side 0."""
  terran, games = types.RACES.index("terran"), []
  for side in range(2):
    executed = types.zeros(types.statistics_spec())
    executed.units[[3 + side]] = True
    games.append(PlayedGame("open", terran, terran, side, executed))
  path = tmp_path / "z.npz"
  StatisticsLibrary.from_games(games).save(path)
  setting = choose_players.make_setting(GAME_CONFIGS["mini"], 5, ("random", "random"), "open", True)
  z = choose_players.with_z(setting, path).match_up.z
  assert [np.flatnonzero(row).tolist() for row in z.units] == [[4], [3]]
  StatisticsLibrary.from_games(games[:1]).save(path)
  with pytest.raises(UserError, match=r"z\.npz: No z for map open, terran against terran, side 1"):
    choose_players.with_z(setting, path)
