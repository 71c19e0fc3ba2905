"""A Ray cluster as the place of a run's processes.

Each program runs in a seat, a Ray actor on a node that has the resources that the program needs.
Ray places the seats; `process_runner.Runner` restarts what dies, as on one machine. A seat has the
name of its process in the namespace `starleague-RUN`. All nodes need this package. Those of a
league's actors, evaluators and data server may lack the run's directory; other nodes need it under
the same path.
"""

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import portpicker
from absl import logging

from starleague import league
from starleague.common.errors import UserError
from starleague.experiments.run.processes import programs
from starleague.experiments.run.processes.programs import Process

AUTO = "auto"
CONNECT_S = 10.0
CALL_S = 30.0  # of a seat's answer
KILLED = -9
CONCURRENCY = 8  # calls of a seat: one waits for the end of its program
POLL_S = 0.1
WAIT_LOG_S = 60.0  # between two messages about a process that waits for a node
_SLICE_HEAD = re.compile(r"TPU-.+-head")


class ClusterError(UserError, RuntimeError):
  """The cluster is not reachable, or has not what a run needs."""


def _ray() -> Any:
  """Returns the ray module, or raises a ClusterError."""
  try:
    import ray
  except ImportError as error:
    raise ClusterError("Ray is not installed: pip install 'starleague[launch]', on all nodes."
                       ) from error
  return ray


class Where(NamedTuple):
  """Where a program runs."""

  node: str  # Ray's id
  address: str | None  # host:port given to it, if it listens
  slice: str | None  # name of the TPU slice that the node belongs to


class Seat:
  """Runs one program on the node where Ray places it."""

  def __init__(self, process: Process, addresses: Mapping[str, str], port: int | None):
    """Starts the program.

    Args:
      process: the program.
      addresses: of its peers, by name.
      port: that it should listen on, if the node has it free; None: any.
    """
    host = _ray().util.get_node_ip_address()
    self._program = programs.LocalProgram(
      process, addresses, host, _free_port(port) if process.listens else None)
    self._on_tpu = any(key.startswith("TPU") for key in process.needs)
    self._lock = threading.Lock()
    self._coordinator: league.GrpcTransport | None = None

  def where(self) -> Where:
    """Returns where the program runs."""
    slice_name = None
    if self._on_tpu:  # others would ask the machine's metadata service in vain
      from ray.util import tpu
      slice_name = tpu.get_current_pod_name()
    return Where(_ray().get_runtime_context().get_node_id(), self._program.address, slice_name)

  def wait(self) -> int:
    """Waits for the end of the program; returns its exit status."""
    while True:
      with self._lock:
        status = self._program.status()
      if status is not None:
        return status
      time.sleep(POLL_S)

  def signal(self, number: int) -> None:
    """Sends a signal to the program and its children."""
    with self._lock:
      self._program.signal(number)

  def kill(self) -> int:
    """Kills the program and its children; returns the exit status."""
    with self._lock:
      return self._program.kill()

  def call(self, method: str, message: bytes) -> bytes:
    """Passes a message to the league's coordinator, if that is the program; see `league.Service`.

    Raises:
      LeagueError, LeagueUnavailableError: see `league.Transport`.
    """
    with self._lock:
      self._coordinator = self._coordinator or league.GrpcTransport(str(self._program.address))
    return self._coordinator.call(method, message)


def _free_port(wanted: int | None) -> int:
  """Returns a free port of this machine: the wanted one if it is free."""
  if wanted is not None:
    with socket.socket() as probe, contextlib.suppress(OSError):
      probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, for restarts
      probe.bind(("", wanted))
      return wanted
  return portpicker.pick_unused_port()


class SeatedProgram:
  """A program in a seat of the cluster."""

  pid = None  # on another machine

  def __init__(self, ray: Any, seat: Any, process: Process):
    """Takes a seat, which Ray may still have to place."""
    self._ray, self._seat, self.process = ray, seat, process
    self._answer, self._ended = seat.where.remote(), seat.wait.remote()
    self._where: Where | None = None
    self._status: int | None = None
    self._asked = time.monotonic()

  def where(self) -> Where | None:
    """Returns where it runs; None if it is not placed yet."""
    if self._where is None and self._ray.wait([self._answer], timeout=0)[0]:
      with contextlib.suppress(self._ray.exceptions.RayError):  # it has died: `status` tells
        self._where = self._ray.get(self._answer)
    return self._where

  @property
  def address(self) -> str | None:
    """host:port that it listens on, None while it is not placed."""
    where = self.where()
    return where and where.address

  def status(self) -> int | None:
    """Returns the exit status, or None while it runs or waits for a node."""
    if self._status is None and self._ray.wait([self._ended], timeout=0)[0]:
      try:
        self._release(self._ray.get(self._ended))
      except self._ray.exceptions.RayError as error:
        logging.warning("process=%s seat=lost: %s", self.process.name, _first_line(error))
        self._release(KILLED)
    if self._status is None and self.where() is None:
      now = time.monotonic()
      if now - self._asked > WAIT_LOG_S:
        logging.warning("process=%s waits for a node with %s", self.process.name,
                        _text(self.process.needs))
        self._asked = now
    return self._status

  def _release(self, status: int) -> None:
    """Keeps the status and gives the seat's resources and name back."""
    self._status = status
    self._ray.kill(self._seat)

  def signal(self, number: int) -> None:
    """Sends a signal to the program and its children, if it still runs."""
    if self._status is None and self.where() is None:
      self._release(-number)
    elif self._status is None:
      self._seat.signal.remote(number)

  def kill(self) -> int:
    """Kills the program and its children; returns the exit status."""
    if self._status is None:
      status = KILLED
      if self.where() is not None:
        with contextlib.suppress(self._ray.exceptions.RayError):  # its node is lost
          status = self._ray.get(self._seat.kill.remote(), timeout=CALL_S)
      self._release(status)
    assert self._status is not None
    return self._status


class Cluster:
  """A Ray cluster, the place of a run's processes."""

  def __init__(self, ray: Any):
    """Takes the ray module, connected."""
    self._ray = ray
    self._seated: dict[str, SeatedProgram] = {}  # the newest of each process

  def start(self, process: Process, addresses: Mapping[str, str],
            last: programs.Program | None) -> SeatedProgram:
    """Starts a program in a seat of its own; see `programs.Place`.

    Raises:
      ClusterError: the cluster has not its resources, or has ended.
    """
    needs = self._needs(process)
    if last is None:
      self._check(process.name, needs)
    where = last.where() if isinstance(last, SeatedProgram) else None
    port = int(where.address.rpartition(":")[2]) if where and where.address else None
    # A server comes back at its address if it can: its clients go on without a restart.
    strategy = (self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
      where.node, soft=True) if where and process.listens else "DEFAULT")
    amounts = dict(needs)
    options = self._ray.remote(Seat).options(
      name=process.name, num_cpus=amounts.pop("CPU", 0), num_gpus=amounts.pop("GPU", 0),
      resources=amounts, max_concurrency=CONCURRENCY, scheduling_strategy=strategy)
    seat = _named(options, (process, dict(addresses), port))
    self._seated[process.name] = SeatedProgram(self._ray, seat, process)
    return self._seated[process.name]

  def _needs(self, process: Process) -> dict[str, float]:
    """Returns the resources of a process: on a TPU slice, all hosts are those of one slice.

    Ray gives the first host of a slice the resource TPU-TYPE-head, and each host the name of its
    slice.
    """
    head = next(filter(_SLICE_HEAD.fullmatch, process.needs), None)
    if head is None or not process.gang or process.listens:
      return dict(process.needs)
    first, = (seated for seated in self._seated.values()
              if seated.process.gang == process.gang and seated.process.listens)
    where = first.where()
    if where is None or where.slice is None:
      raise ClusterError(f"process {process.name!r}: the node of {first.process.name!r} has {head} "
                         "but does not tell the name of its TPU slice, TPU_NAME.")
    others = {name: amount for name, amount in process.needs.items() if name != head}
    return {**others, where.slice: 1.0}

  def _check(self, name: str, needs: Mapping[str, float]) -> None:
    """Raises a ClusterError if no node has the resources, or not beside the other processes."""
    nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
    if not any(all(node.get(key, 0) >= amount for key, amount in needs.items())
               for node in nodes):
      found = "; ".join(_text(node) for node in nodes)
      raise ClusterError(f"process {name!r} needs {_text(needs)}: no node of the cluster has it. "
                         f"Change config key 'cluster.ROLE', or start such a node. Nodes: {found}.")
    for key, amount in needs.items():
      used = sum(seated.process.needs.get(key, 0) for seated in self._seated.values()
                 if seated.status() is None)
      there = sum(node.get(key, 0) for node in nodes)
      if used + amount > there:
        raise ClusterError(
          f"process {name!r} needs {key}:{amount:g} beside {key}:{used:g} of those before it; the "
          f"cluster has {key}:{there:g}. Change config group 'cluster', or start further nodes.")


def _named(options: Any, arguments: Sequence[Any]) -> Any:
  """Creates an actor; waits until its predecessor has given up the name."""
  end = time.monotonic() + CALL_S
  while True:
    try:
      return options.remote(*arguments)
    except ValueError as error:  # the name is taken
      if time.monotonic() > end:
        raise ClusterError(_first_line(error)) from error
      time.sleep(POLL_S)


@contextlib.contextmanager
def connect(address: str, run: str) -> Iterator[Cluster]:
  """Connects to a Ray cluster for the duration of a block; its seats end with the block.

  Args:
    address: ray://HOST:PORT of a Ray Client server, or `AUTO`: the cluster of RAY_ADDRESS, else the
      one that runs on this machine.
    run: name of the run, for the namespace of its seats.

  Raises:
    ClusterError: it is not reachable.
  """
  ray = _ray()
  where = os.environ.get("RAY_ADDRESS", "") if address == AUTO else address
  found = re.fullmatch(r"(?:ray://)?(.+):(\d+)", where)
  try:
    if found:
      socket.create_connection((found[1], int(found[2])), CONNECT_S).close()
    ray.init(address, namespace=namespace(run), log_to_driver=False, logging_level="WARNING")
  except (OSError, RuntimeError, ValueError) as error:
    raise ClusterError(f"no Ray cluster is reachable at {where or address!r}: "
                       f"{_first_line(error)}. Start one with `ray start --head`.") from error
  try:
    yield Cluster(ray)
  finally:
    ray.shutdown()


def namespace(run: str) -> str:
  """Returns the Ray namespace of a run."""
  return f"starleague-{run}"


class RayTransport:
  """A connection to a league's coordinator by its name in a Ray cluster; see `league.Transport`."""

  def __init__(self, run: str, deadline_s: float = 60.0):
    """Takes the run's name, and the seconds of each call with all attempts."""
    self._run, self._deadline_s, self._ray = run, deadline_s, _ray()

  def call(self, method: str, message: bytes) -> bytes:
    """Returns the answer to a request; see `league.Transport`."""
    end = time.monotonic() + self._deadline_s
    while True:
      try:
        seat = self._ray.get_actor("coordinator", namespace(self._run))
        return self._ray.get(seat.call.remote(method, message),
                             timeout=max(POLL_S, end - time.monotonic()))
      except self._ray.exceptions.RayTaskError as error:
        raise error.cause from error
      except (ValueError, self._ray.exceptions.RayError) as error:  # dead: it is started again
        if time.monotonic() > end:
          raise league.LeagueUnavailableError(
            f"The coordinator of run {self._run!r} did not answer {method} within "
            f"{self._deadline_s:g} s: {_first_line(error)}.") from error
        time.sleep(POLL_S)

  def close(self) -> None:
    """Does nothing: the connection is Ray's."""


def _text(amounts: Mapping[str, float]) -> str:
  """Returns resources as `resources.parse` reads them, without those that Ray adds to a node."""
  return ",".join(f"{name}:{amount:g}" for name, amount in sorted(amounts.items())
                  if not name.startswith("node:") and "memory" not in name) or "nothing"


def _first_line(error: BaseException) -> str:
  """Returns the first line of an error's text."""
  return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
