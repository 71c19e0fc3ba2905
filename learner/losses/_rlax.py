"""rlax, imported so that it neither loads TensorFlow nor trips over one that is loaded.

rlax reaches TensorFlow Probability's JAX substrate, which looks for TensorFlow only to copy its
docstrings: where it is installed that costs seconds and hundreds of megabytes, and an older one
than it likes, imported first, is an error. Hidden for the length of the import, either order works.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator


def _is_tensorflow(name: str) -> bool:
  return name == "tensorflow" or name.startswith("tensorflow.")


@contextlib.contextmanager
def _tensorflow_hidden() -> Iterator[None]:
  """While it lasts, `import tensorflow` raises ImportError; afterwards all is as it was."""
  hidden = {name: module for name, module in sys.modules.items() if _is_tensorflow(name)}
  # None makes the import system raise. Submodules must be hidden one by one: those already loaded
  # are found without asking for their parent.
  sys.modules.update(dict.fromkeys(("tensorflow", *hidden)))  # type: ignore[arg-type]
  try:
    yield
  finally:
    sys.modules.pop("tensorflow", None)
    sys.modules.update(hidden)


with _tensorflow_hidden():
  rlax = importlib.import_module("rlax")

__all__ = ["rlax"]
