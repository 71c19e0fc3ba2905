"""Loads gRPC when it is first needed: every process of a run imports the league."""

import os
from typing import Any


def load_grpc() -> Any:
  """Returns the grpc module."""
  # Its errors reach Python; the log of its C++ core repeats them on standard error.
  os.environ.setdefault("GRPC_VERBOSITY", "NONE")
  import grpc
  return grpc
