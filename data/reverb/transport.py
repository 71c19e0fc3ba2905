"""What clients of the data server share: loading Reverb, table names, errors, deadlines.

Reverb, and TensorFlow with it, is imported when it is first needed.
"""

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import numpy as np

from starleague.common.errors import UserError
from starleague.data.reverb import quiet

Answer = TypeVar("Answer")

# Reverb's own calls cannot be interrupted: a wait is a series of calls of at most this length.
FLUSH_S = 0.5
INFO_S = 1  # whole seconds only


class ServerUnavailableError(UserError, ConnectionError):
  """The data server does not answer."""


class StarvedError(UserError, TimeoutError):
  """The data server answers, but a table gives or takes nothing within the deadline."""


class SignatureMismatchError(UserError, ValueError):
  """A table holds items of other fields, shapes or dtypes than expected."""


class StoppedError(Exception):
  """A wait ended because its `stop` event was set."""


def parameters_table(player: str) -> str:
  """Returns the name of the table that holds a player's newest parameters."""
  return f"parameters/{player}"


def load_reverb() -> Any:
  """Returns the reverb module, imported on first use (with TensorFlow: seconds, 0.5 GB)."""
  with quiet.quiet_imports():
    import reverb
  return reverb


def sleep_until(stop: threading.Event, seconds: float) -> None:
  """Sleeps; raises StoppedError as soon as `stop` is set."""
  if stop.wait(seconds):
    raise StoppedError


def retry(call: Callable[[], Answer], *, errors: type[Exception] | tuple[type[Exception], ...],
          deadline_s: float, what: str, first_wait_s: float = 0.2, longest_wait_s: float = 10.0,
          stop: threading.Event | None = None, clock: Callable[[], float] = time.monotonic,
          sleep: Callable[[float], None] | None = None) -> Answer:
  """Calls a function until it succeeds, with waits that double.

  Args:
    call: the function.
    errors: exceptions that lead to another attempt; others are raised.
    deadline_s: seconds after which no further attempt starts.
    what: for the error message: what failed and how to fix it.
    first_wait_s: seconds before the second attempt.
    longest_wait_s: maximum seconds between attempts.
    stop: ends the wait when set.
    clock: monotonic seconds.
    sleep: takes seconds; None: sleeps, but only until `stop` is set.

  Raises:
    ServerUnavailableError: the last attempt failed; names `what`, the attempts and the last error.
    StoppedError: `stop` was set before an attempt succeeded.
  """
  pause = sleep or functools.partial(sleep_until, stop or threading.Event())
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
    pause(wait)
    wait = min(2 * wait, longest_wait_s)


def server_info(client: Any) -> dict[str, Any] | None:
  """Returns TableInfo by table, or None if the server does not answer within `INFO_S`."""
  try:
    return client.server_info(timeout=INFO_S)
  except (load_reverb().errors.ReverbError, RuntimeError):
    return None


def await_info(client: Any, deadline_s: float, what: str,
               stop: threading.Event | None = None) -> dict[str, Any]:
  """Returns TableInfo by table as soon as the server answers.

  Args:
    client: a reverb.Client.
    deadline_s: seconds to keep trying.
    what: for the error message: what failed and how to fix it.
    stop: ends the wait when set.

  Raises:
    ServerUnavailableError: the server did not answer within the deadline.
    StoppedError: `stop` was set.
  """
  return retry(lambda: client.server_info(timeout=INFO_S), deadline_s=deadline_s, what=what,
               errors=(load_reverb().errors.ReverbError, RuntimeError), stop=stop)


def unreachable(address: str) -> str:
  """Returns the message for a server that does not answer."""
  return (f"The data server at {address} does not answer: check the address and that the server "
          "runs, and start it again")


def connect(address: str, deadline_s: float,
            stop: threading.Event | None = None) -> tuple[Any, dict[str, Any]]:
  """Returns a reverb.Client of a server and TableInfo by table.

  Args:
    address: host:port.
    deadline_s: seconds to keep trying.
    stop: ends the wait when set.

  Raises:
    ServerUnavailableError: the server did not answer within the deadline.
    StoppedError: `stop` was set.
  """
  client = load_reverb().Client(address)
  return client, await_info(client, deadline_s, unreachable(address), stop)


def flush(writer: Any, in_flight: int, timeout_s: float, stop: threading.Event) -> bool:
  """Waits until at most `in_flight` items of a writer are unconfirmed.

  Reverb's client reconnects to a restarted server by itself and sends unconfirmed items again.

  Args:
    writer: a reverb.TrajectoryWriter.
    in_flight: number of items that may stay unconfirmed.
    timeout_s: seconds to wait.
    stop: ends the wait when set.

  Returns:
    Whether they were confirmed in time.

  Raises:
    StoppedError: `stop` was set.
    RuntimeError: Reverb refuses the items.
  """
  deadline_exceeded = load_reverb().errors.DeadlineExceededError
  end = time.monotonic() + timeout_s
  while True:
    if stop.is_set():
      raise StoppedError
    left = end - time.monotonic()
    try:
      writer.flush(in_flight, timeout_ms=max(1, int(1000 * min(FLUSH_S, left))))
      return True
    except deadline_exceeded:
      if time.monotonic() >= end:
        return False


def new_sampler(client: Any, table: str, max_samples: int, in_flight: int) -> Any:
  """Returns Reverb's C++ sampler of a table, which needs no TensorFlow iterator around it.

  Args:
    client: a reverb.Client.
    table: its name.
    max_samples: samples in all; -1 for no limit.
    in_flight: samples requested ahead.
  """
  with quiet.quiet_stderr():
    return client._client.NewSampler(table, max_samples, in_flight)


def check_signature(info: Mapping[str, Any], table: str, address: str,
                    expected: Mapping[str, Any]) -> None:
  """Checks that a table exists and holds items of the expected fields.

  Args:
    info: TableInfo by table, from `connect`.
    table: its name.
    address: of the server, for the error message.
    expected: a spec with shape and dtype for each field.

  Raises:
    SignatureMismatchError: names the first field that differs, the found and the expected one.
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
  """Returns the fields of an item of a parameters table; None marks sizes that differ by player."""
  s = jax.ShapeDtypeStruct
  unknown: Any = (None, None)  # cells, bytes of a cell
  return {"cells": s(unknown, np.uint8), "hash": s((32,), np.uint8), "size": s((), np.int64),
          "step": s((), np.int64)}
