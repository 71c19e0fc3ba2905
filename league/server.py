"""Serves a league's coordinator to other processes, with gRPC.

The messages are JSON; see `messages`. There is no authentication: every client that
reaches the port can change the league. It is therefore on localhost unless another host is given.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

from absl import logging

from starleague.common.errors import UserError
from starleague.league import messages
from starleague.league.coordinator import Coordinator
from starleague.league.service import Service

HOST = "127.0.0.1"
THREADS = 32  # most of them wait for the disk
MOST_REQUESTS = 2048  # at the same time; clients try others again
# gRPC receives a message in the thread that answers it: at most THREADS messages are in memory.
MOST_BYTES = 4 * messages.MAX_BYTES  # of the requests that are answered at the same time
FLUSH_S = 1.0
STOP_S = 0.5  # for the requests in progress when the server is stopped
JUMP_S = 1.0


class AddressError(UserError, OSError):
  """The server cannot listen on an address."""


class ClockWatch:
  """Detects jumps of the system's time, by comparison with a monotonic clock."""

  def __init__(self, system: Callable[[], float] = time.time,
               monotonic: Callable[[], float] = time.monotonic):
    """Takes the two clocks, in seconds."""
    self._system, self._monotonic = system, monotonic
    self._offset = system() - monotonic()

  def jump(self) -> float:
    """Returns the seconds by which the system's time was set since the last call; < 0: back."""
    offset = self._system() - self._monotonic()
    jump, self._offset = offset - self._offset, offset
    return jump


class ByteBudget:
  """A bound of the bytes of all requests in progress. Threads share it."""

  def __init__(self, limit: int):
    """Takes the bound, in bytes."""
    self._limit, self._used, self._lock = limit, 0, threading.Lock()

  def take(self, size: int) -> bool:
    """Reserves bytes; returns False, and reserves none, if they exceed the bound."""
    with self._lock:
      if self._used + size > self._limit:
        return False
      self._used += size
      return True

  def give_back(self, size: int) -> None:
    """Frees bytes that were reserved."""
    with self._lock:
      self._used -= size


class Server:
  """A coordinator that listens on a port."""

  def __init__(self, coordinator: Coordinator, port: int = 0, host: str = HOST):
    """Starts to serve.

    Args:
      coordinator: of the league; the caller closes it after `stop`.
      port: to listen on; 0 for a free one.
      host: to listen on.

    Raises:
      AddressError: the port is taken, or the host has another address.
    """
    self._coordinator = coordinator
    grpc = messages.load_grpc()
    self._server = grpc.server(
      futures.ThreadPoolExecutor(THREADS, "league"), maximum_concurrent_rpcs=MOST_REQUESTS,
      options=[("grpc.max_receive_message_length", messages.MAX_BYTES),
               ("grpc.max_send_message_length", messages.MAX_BYTES),
               ("grpc.so_reuseport", 0)])  # a second server on the port is an error
    service, budget = Service(coordinator), ByteBudget(MOST_BYTES)
    self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
      messages.SERVICE, {name: _handler(service, name, budget) for name in messages.METHODS})])
    try:
      self.port = self._server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
      raise AddressError(f"Cannot listen on {host}:{port}: {error}. Choose another --port or "
                         "--listen.") from error
    self.address = f"{host}:{self.port}"
    self._server.start()

  def run(self, stop: threading.Event) -> None:
    """Keeps the league's file and its leases up to date until `stop` is set; then ends.

    Requests are answered meanwhile, and those in progress at the end too.
    """
    watch = ClockWatch()
    try:
      while not stop.wait(FLUSH_S):
        self._flush()
        jump = watch.jump()
        if abs(jump) > JUMP_S:
          logging.warning("clock_jump seconds=%+.1f leases=unaffected: the system's time was set; "
                          "times of results before and after it do not compare", jump)
    finally:
      self.stop()

  def _flush(self) -> None:
    try:
      self._coordinator.flush()
    except sqlite3.Error as error:  # clients try again meanwhile; a full disk ends the run
      logging.log_every_n_seconds(logging.ERROR, "The league's file cannot be written: %s", 10,
                                  error)

  def stop(self) -> None:
    """Ends the server: no new requests, and `STOP_S` for those in progress."""
    self._server.stop(STOP_S).wait()


def _handler(service: Service, method: str, budget: ByteBudget) -> Any:
  grpc = messages.load_grpc()

  def call(message: bytes, context: Any) -> bytes:
    if not budget.take(len(message)):
      context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"The requests in progress have too many bytes, expected at most {MOST_BYTES}.")
    try:
      return service.call(method, message)
    except (sqlite3.Error, OSError) as error:  # first: the error of a full disk is a UserError too
      logging.error("%s failed: %s", method, error)
      context.abort(grpc.StatusCode.UNAVAILABLE, f"The league's files cannot be written: {error}.")
    except (UserError, ValueError) as error:
      context.abort(grpc.StatusCode.INVALID_ARGUMENT, " ".join(str(error).split()))
    finally:
      budget.give_back(len(message))
    raise AssertionError("abort raises")

  return grpc.unary_unary_rpc_method_handler(call)
