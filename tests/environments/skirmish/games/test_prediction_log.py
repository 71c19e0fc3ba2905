"""Predictions of a game: batches of one size, in the order of the actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent.predictions import Predictions
from starleague.environments.skirmish.games.prediction_log import BATCH, PredictionLog, Recorded


@pytest.fixture
def calls():
  return []


@pytest.fixture
def completes(calls):
  """Two players' programs: the value is the record's byte, negative for the second player."""
  def make(sign):
    def complete(records):
      calls.append(records if isinstance(records, jax.core.Tracer) else records.copy())
      rows = jnp.asarray(records)
      choices = jnp.tile(rows[:, :1], (1, 5))
      return Predictions(sign * rows[:, 0].astype(jnp.int16), *[choices] * 9)
    return complete
  return make(1), make(-1)


def fill(log, completes, players):
  """Adds a decision of each of `players`; its record is its number, and so is its action."""
  for action, player in enumerate(players):
    log.add(action, player, Recorded(np.array([action % 256, 7], np.uint8), completes[player]))


@pytest.mark.parametrize("count", [1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 5])
def test_any_number_of_decisions_is_completed_in_batches_of_one_size(count, calls, completes):
  log = PredictionLog()
  fill(log, completes, [0] * count)
  assert len(calls) == count // BATCH  # the others wait
  made = log.predicted()
  assert made.action.tolist() == list(range(count)) and made.action.dtype == np.int32
  assert made.predictions.value.tolist() == [i % 256 for i in range(count)]
  assert made.predictions.cells.shape == (count, 5)
  assert {call.shape for call in calls} == {(BATCH, 2)} and len(calls) == -(-count // BATCH)
  assert not calls[-1][count % BATCH or BATCH:].any()  # padding


def test_decisions_of_both_players_are_in_the_order_of_the_actions(completes):
  players = np.random.default_rng(0).integers(0, 2, 200).tolist()
  log = PredictionLog()
  fill(log, completes, players)
  made = log.predicted()
  assert made.action.tolist() == list(range(200))
  assert made.predictions.value.tolist() == [
    -i if player else i for i, player in enumerate(players)]


def test_predictions_may_be_read_during_a_game(completes):
  log = PredictionLog()
  assert log.predicted() is None
  fill(log, completes, [0] * 3)
  first, again = log.predicted(), log.predicted()
  assert first.action.tolist() == again.action.tolist() == [0, 1, 2]
  fill(log, completes, [0] * BATCH)
  assert len(log.predicted().action) == BATCH + 3


def test_a_program_compiles_once_for_all_numbers_of_decisions(calls, completes):
  program = jax.jit(completes[0])
  for count in (1, 2, BATCH, BATCH + 3):
    log = PredictionLog()
    fill(log, (program, program), [0] * count)
    assert log.predicted().predictions.value[-1] == (count - 1) % 256
  assert len(calls) == 1 and isinstance(calls[0], jax.core.Tracer) and BATCH == 64
