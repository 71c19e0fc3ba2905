"""A session's end and its replay."""

import json

import jax
import numpy as np

from starleague.environments.skirmish.games import replays


def test_game_ends_and_its_replay_equals_it(make_session, tmp_path, monkeypatch):
  """Played without waiting: the human player does nothing and loses to a rush."""
  played = make_session(seed=1)
  with monkeypatch.context() as patch:
    patch.setattr(played, "_wait", lambda begun: "step")
    played.run()
  assert played.result() == "You lost" and json.loads(played.frame(-1))["over"] == "You lost"
  replay = replays.load(replays.save(tmp_path / "game.npz", played.replay()))
  assert replay.players == ("human", "rusher") and replay.winner == 1
  assert np.sum(replay.player == 0) == replay.steps  # the human player acts at each step
  states = replays.resimulate(replay)
  assert replays.state_hash(jax.tree.map(lambda x: x[-1], states)) == replays.state_hash(
    played._game.state)
