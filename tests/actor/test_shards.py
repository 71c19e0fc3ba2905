"""Shards of a program of rollouts on the clockwork environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import rollouts, shards
from starleague.data.z.conditioning import unconditional
from tests.actor.clockwork import clockwork, counting_policy, scripted

NO_Z = unconditional(maps=1, mmr=6200)
PROBABILITIES = jnp.array([0.5, 0.25, 0.25])
OPPONENTS = np.array([[0, 1, 2], [2, 2, 0]], np.int32)
PROGRAM = rollouts.make_rollouts(
  clockwork(), counting_policy(), rollouts.RolloutConfig(3, 4, 32, max_advances=8), scripted)


def played(program, key, opponents):
  """Returns the records and results of two calls."""
  state = program.init(key, opponents, NO_Z)
  outputs = []
  for _ in range(2):
    state, *found = program.run(jnp.ones(()), state, PROBABILITIES, NO_Z)
    outputs.append(found)
  return outputs


@pytest.mark.parametrize("devices", [1, 2])
def test_shards_play_the_games_of_their_keys_on_any_number_of_devices(devices, monkeypatch):
  local = jax.local_devices()[:devices]
  assert len(local) == devices
  monkeypatch.setattr(jax, "local_devices", lambda: local)
  key = jax.random.key(5)
  calls = [shards.to_host(found) for found in
           played(shards.make_shards(PROGRAM, 2), key, OPPONENTS)]
  for shard, own_key in enumerate(jax.random.split(key, 2)):
    alone = played(PROGRAM, own_key, OPPONENTS[shard])
    assert sum(int(results.over.sum()) for _, results in alone) > 3
    for call, expected in zip(calls, alone, strict=True):
      for a, b in zip(jax.tree.leaves(call[shard]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_odd_number_of_shards_does_not_need_as_many_devices(monkeypatch):
  local = jax.local_devices()[:2]
  monkeypatch.setattr(jax, "local_devices", lambda: local)
  opponents = np.zeros((3, 3), np.int32)
  found = shards.to_host(played(shards.make_shards(PROGRAM, 3), jax.random.key(0), opponents)[0])
  assert [records.row.shape for records, _ in found] == [(32, 4)] * 3
