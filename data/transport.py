"""What both ends of the data server share: names of tables, errors, patience.

Reverb, and TensorFlow with it, is imported when it is first needed.
"""

import contextlib
import importlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from starleague.common.errors import UserError


class ServerUnavailableError(UserError, ConnectionError):
  """The data server cannot be reached."""


class StarvedError(UserError, TimeoutError):
  """The data server answers, but a table gives or takes nothing within the deadline."""


class SignatureMismatchError(UserError, ValueError):
  """A table holds items of another shape than was asked for."""


def parameters_table(player: str) -> str:
  """The name of the table that holds a player's newest parameters."""
  return f"parameters/{player}"


@contextlib.contextmanager
def quiet_imports():
  """Reverb and TensorFlow are imported inside it without the noise of either.

  TensorFlow 2.15 asks a newer protobuf for a method that it never calls, and warns of a missing
  TensorBoard that is left out on purpose.
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
    root.handlers[:] = handlers  # a warning would have left one behind


def load_reverb() -> Any:
  """Reverb's module, imported (with TensorFlow: seconds, 0.5 GB) when it is first needed."""
  with quiet_imports():
    import reverb
  return reverb


def retry(call: Callable[[], Any], *, errors, deadline_s: float, what: str,
          first_wait_s: float = 0.2, longest_wait_s: float = 10.0,
          clock: Callable[[], float] = time.monotonic,
          sleep: Callable[[float], None] = time.sleep) -> Any:
  """Calls until it succeeds, with waits that double.

  Args:
    call: what to do.
    errors: exceptions that are worth another attempt; others pass.
    deadline_s: seconds after which no further attempt is begun.
    what: for the error: what could not be done and what to do about it.
    first_wait_s: seconds before the second attempt.
    longest_wait_s: at most so long between attempts.
    clock: seconds that never go back.
    sleep: waits so many seconds.

  Raises:
    ServerUnavailableError: the last attempt failed; names `what`, the attempts and the last error.
  """
  start, wait, attempts = clock(), first_wait_s, 0
  while True:
    attempts += 1
    try:
      return call()
    except errors as error:
      if clock() - start + wait > deadline_s:
        raise ServerUnavailableError(
          f"{what} ({attempts} attempts in {clock() - start:.1f} s; the last error: "
          f"{error})") from error
    sleep(wait)
    wait = min(2 * wait, longest_wait_s)


def server_info(reverb, client, timeout_s: int = 2) -> dict[str, Any] | None:
  """TableInfo by table; None where the server does not answer within `timeout_s` whole seconds."""
  try:
    return client.server_info(timeout=timeout_s)
  except (reverb.errors.ReverbError, RuntimeError):
    return None


def unreachable(address: str) -> str:
  """What to tell a user whose server is not there."""
  return (f"The data server at {address} does not answer: check the address and that the server "
          "runs, and start it again")


def connect(reverb, address: str, deadline_s: float) -> tuple[Any, dict[str, Any]]:
  """A client of the server and what its tables are.

  Args:
    reverb: the module.
    address: host:port.
    deadline_s: seconds to keep trying for.

  Raises:
    ServerUnavailableError: the server did not answer by then.
  """
  client = reverb.Client(address)
  timeout = max(1, min(2, int(deadline_s)))
  info = retry(lambda: client.server_info(timeout=timeout), deadline_s=deadline_s,
               errors=(reverb.errors.ReverbError, RuntimeError), what=unreachable(address))
  return client, info


def check_signature(info: Mapping[str, Any], table: str, address: str,
                    expected: Mapping[str, Any]) -> None:
  """Checks that a table exists and holds items of the expected fields.

  Args:
    info: TableInfo by table, of `connect`.
    table: its name.
    address: of the server, for the error.
    expected: a spec with shape and dtype by field.

  Raises:
    SignatureMismatchError: names the first field that differs, what it is and what was expected.
  """
  where = f"table {table!r} of {address}"
  if table not in info:
    raise SignatureMismatchError(
      f"there is no {where}; it has {sorted(info)}: check the player's name, or start the server "
      "with this player's table.")
  signature = info[table].signature
  found = {name: (tuple(spec.shape.as_list()), spec.dtype.name)
           for name, spec in (signature or {}).items()}
  for name in dict.fromkeys([*expected, *found]):
    wanted = None
    if name in expected:
      wanted = (tuple(expected[name].shape), np.dtype(expected[name].dtype).name)
    if found.get(name) != wanted:
      raise SignatureMismatchError(
        f"field {name!r} of {where}: found {_describe(found.get(name))}, expected "
        f"{_describe(wanted)}; the server was started for another agent or unroll length: use "
        "its settings here or restart it with these.")


def _describe(field: tuple[tuple[int, ...], str] | None) -> str:
  return "no such field" if field is None else f"{field[1]}{list(field[0])}"


def parameters_spec() -> dict[str, jax.ShapeDtypeStruct]:
  """The fields of an item of a parameters table; None marks sizes that are the player's own."""
  s = jax.ShapeDtypeStruct
  unknown: Any = (None, None)  # cells, bytes of a cell
  return {"cells": s(unknown, np.uint8), "hash": s((32,), np.uint8), "size": s((), np.int64),
          "step": s((), np.int64)}
