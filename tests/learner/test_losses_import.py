"""rlax and TensorFlow in one process: either order works, and losses load no TensorFlow."""

import importlib.util
import os
import subprocess
import sys

import pytest

from starleague.learner.losses import _rlax

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


def test_losses_load_no_tensorflow():
  loaded = run(f"""
import sys
from starleague.learner import losses
{USE}
print(*(name for name in sys.modules if name.split(".")[0] in ("tensorflow", "reverb")), "end")
""")
  assert loaded == ["end"]


@needs_tensorflow
@pytest.mark.slow
def test_losses_before_tensorflow():
  assert run(f"""
from starleague.learner import losses
import tensorflow as tf
{USE}
print(int(tf.constant(2) + 3))
""") == ["5"]


@needs_tensorflow
@pytest.mark.slow
def test_losses_after_tensorflow():
  assert run(f"""
import sys
import tensorflow as tf
before = {{n: m for n, m in sys.modules.items() if n.split(".")[0] == "tensorflow"}}
from starleague.learner import losses
{USE}
after = {{n: m for n, m in sys.modules.items() if n.split(".")[0] == "tensorflow"}}
assert before.keys() <= after.keys() and all(after[n] is m for n, m in before.items())
assert None not in after.values()
print(int(tf.constant(2) + 3))
""") == ["5"]


def test_hiding_is_undone(monkeypatch):
  fake = type(sys)("tensorflow")
  monkeypatch.setitem(sys.modules, "tensorflow", fake)
  monkeypatch.setitem(sys.modules, "tensorflow.python", fake)
  with pytest.raises(RuntimeError), _rlax._tensorflow_hidden():
    for name in ("tensorflow", "tensorflow.python"):
      with pytest.raises(ImportError):
        importlib.import_module(name)
    raise RuntimeError  # an import that fails
  assert sys.modules["tensorflow"] is fake and sys.modules["tensorflow.python"] is fake


def test_hiding_leaves_no_trace_where_there_was_nothing(monkeypatch):
  for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
    monkeypatch.delitem(sys.modules, name)
  with _rlax._tensorflow_hidden():
    assert sys.modules["tensorflow"] is None
  assert "tensorflow" not in sys.modules
