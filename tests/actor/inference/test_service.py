"""The service through its sockets: answers, records, several players."""

import jax
import numpy as np
import pytest

from starleague.actor.inference import ServiceError
from starleague.data import wire
from tests.actor.inference.serving import (
  CONFIG,
  SLOTS,
  connect,
  delay,
  header,
  make_step,
  serving,
)


def test_interleaved_games_get_the_actions_of_their_own_noise(model):
  with serving(model, SLOTS) as listener:
    one, two = connect(listener, 2), connect(listener, 3)
    for number in range(4):
      asked = {0: (header(10, number), make_step()), 1: (header(11, number, player=1), make_step())}
      found = one.act(asked)
      assert [int(found[i].delay) for i in (0, 1)] == [delay(10, number), delay(11, number)]
      if number % 2:
        found = two.act({2: (header(12, number // 2), make_step())})
        assert int(found[2].delay) == delay(12, number // 2)
    one.close()
    two.close()


def test_records_hold_steps_actions_and_core_states(model):
  records, players = [], []

  def take(found, whose):
    records.append(found)
    players.append(whose.tolist())

  with serving(model, SLOTS, on_records=take) as listener:
    client = connect(listener, 2)
    for number in range(3):
      client.act({0: (header(5, number, player=1), make_step(number)),
                  1: (header(6, number, recorded=False), make_step(9))})
    client.act({0: (header(5, 3, player=1, last=True), make_step(3)),
                1: (header(6, 3, recorded=False, last=True), make_step(9))})
    client.close()
  assert players == [[[1]]] * 4  # nobody learns from the second slot
  found = jax.tree.map(lambda *x: np.concatenate(x), *records)
  assert found.row.shape == (4, 1) and len(set(found.row.flat)) == 1
  np.testing.assert_array_equal(found.first[:, 0], [True, False, False, False])
  np.testing.assert_array_equal(found.last[:, 0], [False, False, False, True])
  np.testing.assert_array_equal(found.core_state.hidden[:, 0, 0, 0], [0, 100, 200, 0])
  steps = jax.tree.map(np.asarray, wire.unpack_steps(found.step, CONFIG))
  np.testing.assert_array_equal(steps.observation.player[:, 0, 0], [0, 1, 2, 3])
  np.testing.assert_array_equal(steps.reward[:, 0, 4], [0, 1, 2, 3])
  np.testing.assert_array_equal(
    steps.action.delay[:, 0], [delay(5, number) for number in range(3)] + [0])


def test_a_player_without_parameters_is_refused(model):
  with serving(model, SLOTS) as listener:
    client = connect(listener, 1)
    with pytest.raises(ServiceError, match="ended or disconnected"):
      client.act({0: (header(player=2), make_step())})
