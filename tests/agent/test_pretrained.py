"""Pretrained weights: their files, refusals, and those that ship."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from starleague import agent
from starleague.agent import pretrained
from starleague.common import manifests

ORIGIN = pretrained.Origin(
  command="train", commit="abc", date="2026-01-02", seed=3, updates=5, tier="mini", mmr=6000,
  games=200, scores=(pretrained.Score("rusher", 0.75, 0.6875, 0.8125),))


@pytest.fixture()
def folder(tmp_path):
  params = {"core/lstm": {"w": np.arange(6, dtype=np.float32).reshape(2, 3),
                          "b": np.array([0.5, -0.25], np.float32)},
            "core": {"scale": np.float32([2.0])}}
  path = pretrained.save_pretrained(pretrained.Pretrained(agent.mini(), params, ORIGIN), tmp_path)
  assert path == tmp_path / "mini.json"
  return tmp_path


def edit(folder, **changes):
  """Writes a manifest with other values and a digest that fits them."""
  document = json.loads((folder / "mini.json").read_text())
  document["manifest"] |= changes
  document["sha256"] = manifests.manifest_digest(document["manifest"])
  (folder / "mini.json").write_text(json.dumps(document))


def test_weights_and_their_origin_are_kept(folder):
  assert pretrained.names(folder) == ("mini",)
  weights = agent.load_pretrained("mini", folder)
  assert weights.config == agent.mini() and weights.origin == ORIGIN
  assert pretrained.load_origin("mini", folder) == ORIGIN
  assert set(weights.params) == {"core/lstm", "core"}
  np.testing.assert_array_equal(weights.params["core/lstm"]["w"], [[0, 1, 2], [3, 4, 5]])
  np.testing.assert_array_equal(weights.params["core/lstm"]["b"], [0.5, -0.25])
  assert weights.params["core"]["scale"].dtype == np.float32
  assert sorted(path.name for path in folder.iterdir()) == ["mini.json", "mini.npz"]


def test_missing_weights(folder):
  with pytest.raises(agent.PretrainedError, match="'full' do not exist; expected one of mini$"):
    agent.load_pretrained("full", folder)


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_damaged_arrays(folder, damage):
  path = folder / "mini.npz"
  data = bytearray(path.read_bytes())
  if damage == "flip":
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
  elif damage == "truncate":
    path.write_bytes(data[:100])
  else:
    path.unlink()
  with pytest.raises(agent.PretrainedError, match=r"mini\.npz is (damaged: expected|missing)"):
    agent.load_pretrained("mini", folder)


def test_damaged_manifest(folder):
  path = folder / "mini.json"
  path.write_text(path.read_text().replace("rusher", "ruther"))
  with pytest.raises(agent.PretrainedError, match=r"mini\.json is damaged: expected SHA-256"):
    agent.load_pretrained("mini", folder)


def test_weights_of_another_version(folder):
  edit(folder, vocabulary="0")
  with pytest.raises(agent.PretrainedError, match="vocabulary: expected .*, found 0; they belong"):
    agent.load_pretrained("mini", folder)


def test_weights_of_another_size(folder):
  config = dataclasses.asdict(dataclasses.replace(agent.mini(), core_size=65, dtype="bfloat16"))
  edit(folder, config=config)
  with pytest.raises(agent.PretrainedError, match="core_size: expected 64, found 65"):
    agent.load_pretrained("mini", folder)


def test_origin_that_lacks_a_value(folder):
  edit(folder, origin={"command": "train"})
  with pytest.raises(agent.PretrainedError, match="'origin': expected command, commit, date"):
    agent.load_pretrained("mini", folder)


def test_mini_ships():
  assert "mini" in pretrained.names()


@pytest.mark.parametrize("name", pretrained.names())
def test_shipped_weights_fit_the_agent(name):
  weights = agent.load_pretrained(name)
  expected = jax.eval_shape(agent.make_policy(weights.config).init, jax.random.key(0))
  found = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), weights.params)
  assert found == expected
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(weights.params))
  for score in weights.origin.scores:
    assert 0 <= score.low <= score.score <= score.high <= 1
