"""Suppresses Reverb and TensorFlow logs."""

import contextlib
import importlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator

_REVERB_LINE = b"[reverb/cc/"
_STDERR = 2
_stderr_lock = threading.RLock()


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
  """Imports of Reverb and TensorFlow print nothing inside this context.

  TensorFlow 2.15 looks up a method that newer protobuf versions lack and never calls it. It also
  warns of a missing TensorBoard, which is not installed on purpose.
  """
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  factory = importlib.import_module("google.protobuf.message_factory")
  if not hasattr(factory.MessageFactory, "GetPrototype"):
    factory.MessageFactory.GetPrototype = lambda _, descriptor: factory.GetMessageClass(descriptor)
  root = logging.getLogger()
  handlers, level = root.handlers[:], logging.root.manager.disable
  logging.disable(logging.WARNING)
  try:
    yield
  finally:
    logging.disable(level)
    root.handlers[:] = handlers  # a warning adds a handler


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Drops the lines that Reverb's C++ code writes to stderr inside this context.

  No setting switches them off. Everything else that the process writes to stderr inside the
  context is written when it ends.
  """
  with _stderr_lock, contextlib.ExitStack() as stack:
    captured = stack.enter_context(tempfile.TemporaryFile())
    try:
      saved = os.dup(_STDERR)
    except OSError:  # the process has no stderr
      yield
      return
    stack.callback(os.close, saved)
    _flush()
    os.dup2(captured.fileno(), _STDERR)
    try:
      yield
    finally:
      _flush()
      os.dup2(saved, _STDERR)
      captured.seek(0)
      for line in captured:
        if not line.startswith(_REVERB_LINE):
          os.write(_STDERR, line)


def _flush() -> None:
  if sys.stderr is not None:
    sys.stderr.flush()
