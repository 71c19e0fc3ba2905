"""rlax, imported without loading TensorFlow and without failing where it is already loaded.

rlax imports TensorFlow Probability's JAX substrate, which looks for TensorFlow only to copy its
docstrings. An installed TensorFlow costs seconds and hundreds of megabytes; an older version than
expected, imported before rlax, is an error. Hidden during the import, either order works.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator


def _is_tensorflow(name: str) -> bool:
  return name == "tensorflow" or name.startswith("tensorflow.")


@contextlib.contextmanager
def tensorflow_hidden() -> Iterator[None]:
  """Makes `import tensorflow` raise ImportError inside the block; restores all modules after it."""
  hidden = {name: module for name, module in sys.modules.items() if _is_tensorflow(name)}
  # None makes the import system raise. Submodules are hidden one by one: those already loaded are
  # found without their parent.
  sys.modules.update(dict.fromkeys(("tensorflow", *hidden)))  # type: ignore[arg-type]
  try:
    yield
  finally:
    sys.modules.pop("tensorflow", None)
    sys.modules.update(hidden)


with tensorflow_hidden():
  rlax = importlib.import_module("rlax")

__all__ = ["rlax", "tensorflow_hidden"]
