"""The peer of Catch acts as the example does: raw keys, one step a call."""

import numpy as np

from benchmarks.peers import catch


def test_each_step_has_a_raw_key_of_its_own(monkeypatch):
  peer = catch.Peer(actors=1, unroll_length=2, batch_size=1)
  keys, trajectories, act = [], [], catch._act

  def acting(key, params, observation):
    keys.append(np.asarray(key))  # a typed key has no such form
    return act(key, params, observation)

  def put(target, item):
    trajectories.append(item)
    peer._stop.set()

  monkeypatch.setattr(catch, "_act", acting)
  monkeypatch.setattr(peer, "_put", put)
  peer._play(seed=0)
  assert [(key.dtype, key.shape) for key in keys] == [(np.uint32, (2,))] * 3
  assert len({tuple(key) for key in keys}) == 3
  assert trajectories[0].action.shape == (3,) and len(trajectories) == 1
