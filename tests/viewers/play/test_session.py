"""A session's end and its replay."""

import json

import jax
import numpy as np

from starleague.agent.predictions import predictions_spec
from starleague.environments.skirmish.games import live, prediction_log, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.viewers.play import session, view


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


def test_programs_of_predictions_are_compiled_before_the_game():
  """Those of an agent's decisions are completed while a human plays."""
  batches, game = [], GAME_CONFIGS["mini"]
  scripted = replays.scripted_player("rusher", game)

  def decide(*arguments):
    return *scripted.decide(*arguments), jax.numpy.uint8([7])

  def complete(params, records):
    batches.append(records)
    return jax.tree.map(lambda x: np.zeros((len(records), *x.shape), x.dtype), predictions_spec())

  opponent = scripted._replace(predictor=live.Predictor(decide, complete))
  played = session.make_session(game, replays.make_match_up(), 2, opponent)
  (rehearsed,) = batches
  assert rehearsed.shape == (prediction_log.BATCH, 1) and 1 <= np.sum(rehearsed == 7) <= 2
  assert played.replay().predicted is None  # nothing of the rehearsal
  played.step()
  assert played.replay().predicted.action.tolist() == [1] and len(batches) == 2


def test_a_page_that_lags_still_receives_the_last_frame(make_session, monkeypatch):
  """Its request while the last frame is drawn is answered with the one before."""
  played, draw, answers = make_session(seed=1), view.page_frame, []

  def asked_meanwhile(*arguments):
    answers.append(json.loads(played.frame(-1))["over"])
    return draw(*arguments)

  monkeypatch.setattr(view, "page_frame", asked_meanwhile)
  played.leave()
  played.run()
  assert answers == [None] and not played._delivered.is_set()
  assert json.loads(played.frame(0))["over"] == "You left the game"
  assert played._delivered.is_set()
