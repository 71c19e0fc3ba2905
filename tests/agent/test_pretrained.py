"""Pretrained weights: their files, refusals, and those that ship."""

import dataclasses
import json
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import pretrained
from starleague.common import manifests
from tests.common import damage

ORIGIN = pretrained.Origin(
  command="train", commit="abc", date="2026-01-02", seed=3, updates=5, tier="mini", mmr=6000,
  games=200, scores=(pretrained.Score("rusher", 0.75, 0.6875, 0.8125),))


NAME = "baselines/build_order_block_0/linear_0|b"  # a parameter of 32 numbers


def make_params():
  """Returns parameters of `mini` with the numbers 0 to 1 in each array."""
  shapes = jax.eval_shape(agent.make_policy(agent.mini()).init, jax.random.key(0))
  return jax.tree.map(
    lambda x: np.linspace(0, 1, x.size, dtype=x.dtype).reshape(x.shape), shapes)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
  folder = tmp_path_factory.mktemp("weights")
  path = pretrained.save_pretrained(
    pretrained.Pretrained(agent.mini(), make_params(), ORIGIN), folder)
  assert path == folder / "mini.json"
  return folder


@pytest.fixture()
def folder(saved, tmp_path):
  return shutil.copytree(saved, tmp_path / "weights")


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
  expected = make_params()
  assert jax.tree.structure(weights.params) == jax.tree.structure(expected)
  for found, array in zip(jax.tree.leaves(weights.params), jax.tree.leaves(expected), strict=True):
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, array)
  assert sorted(path.name for path in folder.iterdir()) == ["mini.json", "mini.npz"]


def test_the_temperatures_of_the_evaluation_are_kept(tmp_path):
  config = agent_config.tempered(agent.mini(), 0.5)
  pretrained.save_pretrained(pretrained.Pretrained(config, make_params(), ORIGIN), tmp_path)
  found = agent.load_pretrained("mini", tmp_path).config
  assert (found.temperature, found.delay_temperature) == (0.4, 0.5)
  assert found == config


@pytest.mark.parametrize("value", [0.0, -0.8, "0.8", None, True, float("inf")])
def test_impossible_temperatures(folder, value):
  edit(folder, config=dataclasses.asdict(agent.mini()) | {"temperature": value})
  with pytest.raises(agent.PretrainedError, match="'config.temperature': expected a number"):
    agent.load_pretrained("mini", folder)


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


def reseal(folder):
  """Writes the digest of the arrays as they are into the manifest."""
  edit(folder, files={"mini.npz": manifests.file_digest(folder / "mini.npz")})


@pytest.mark.parametrize("kind", [kind for kind in damage.KINDS if kind != "folder"])
def test_every_kind_of_damage_under_a_right_digest_is_one_line(folder, kind):
  damage.KINDS[kind](folder / "mini.npz", NAME)
  reseal(folder)
  with pytest.raises(agent.PretrainedError) as error:
    agent.load_pretrained("mini", folder)
  text, start = str(error.value), "pretrained weights 'mini': "
  assert text.startswith(start)
  damage.check_message(text.removeprefix(start), folder / "mini.npz",
                       NAME if kind in damage.OF_ARRAYS else "")


@pytest.mark.parametrize(("change", "message"), [
  (lambda array: array.at[3].set(np.nan), r"\[3\]: expected finite numbers, found nan"),
  (lambda array: array.at[0].set(-np.inf), r"\[0\]: expected finite numbers, found -inf"),
  (lambda array: array[:-1], r": expected float32\[32\], found float32\[31\]"),
  (lambda array: array[None], r": expected float32\[32\], found float32\[1, 32\]"),
  (lambda array: array.astype(np.float16), r": expected float32\[32\], found float16\[32\]"),
])
def test_arrays_of_another_agent(folder, change, message):
  damage.of_array(lambda array: np.asarray(change(jnp.asarray(array))))(folder / "mini.npz", NAME)
  reseal(folder)
  with pytest.raises(agent.PretrainedError, match=(
      rf"^pretrained weights 'mini': .*mini\.npz: {re.escape(NAME)}{message}$")):
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
