"""Losses load neither rlax nor TensorFlow; rlax and TensorFlow import in either order."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.learner import rlax_without_tensorflow

needs_tensorflow = pytest.mark.skipif(
  importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")


def run(program):
  environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
  result = subprocess.run(
    [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
  assert result.returncode == 0, result.stderr
  return result.stdout.split()


USE = """
import jax.numpy as jnp
x = jnp.ones(2)
assert losses.vtrace_advantages(x, x, x, x, x).tolist() == [2.0, 1.0]
"""


def test_losses_load_neither_rlax_nor_tensorflow():
  loaded = run(f"""
import sys
from starleague.learner import losses
{USE}
heavy = "tensorflow", "reverb", "rlax"
print(*(name for name in sys.modules if name.split(".")[0] in heavy), "end")
""")
  assert loaded == ["end"]


@needs_tensorflow
@pytest.mark.slow
def test_rlax_before_tensorflow():
  assert run(f"""
from tests.learner.rlax_without_tensorflow import rlax
from starleague.learner import losses
import tensorflow as tf
{USE}
print(int(tf.constant(2) + 3))
""") == ["5"]


@needs_tensorflow
@pytest.mark.slow
def test_rlax_after_tensorflow():
  assert run(f"""
import sys
import tensorflow as tf
before = {{n: m for n, m in sys.modules.items() if n.split(".")[0] == "tensorflow"}}
from tests.learner.rlax_without_tensorflow import rlax
from starleague.learner import losses
{USE}
after = {{n: m for n, m in sys.modules.items() if n.split(".")[0] == "tensorflow"}}
assert before.keys() <= after.keys() and all(after[n] is m for n, m in before.items())
assert None not in after.values()
print(int(tf.constant(2) + 3))
""") == ["5"]


def test_tensorflow_is_visible_again_after_the_block(monkeypatch):
  fake = type(sys)("tensorflow")
  monkeypatch.setitem(sys.modules, "tensorflow", fake)
  monkeypatch.setitem(sys.modules, "tensorflow.python", fake)
  with pytest.raises(RuntimeError), rlax_without_tensorflow.tensorflow_hidden():
    for name in ("tensorflow", "tensorflow.python"):
      with pytest.raises(ImportError):
        importlib.import_module(name)
    raise RuntimeError  # as an import that fails
  assert sys.modules["tensorflow"] is fake and sys.modules["tensorflow.python"] is fake


def test_hiding_without_tensorflow_leaves_sys_modules_unchanged(monkeypatch):
  for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
    monkeypatch.delitem(sys.modules, name)
  with rlax_without_tensorflow.tensorflow_hidden():
    assert sys.modules["tensorflow"] is None
  assert "tensorflow" not in sys.modules
