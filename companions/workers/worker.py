"""A worker: a process that steps copies of a task, and asks the inference service for actions."""

import contextlib
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np

from starleague.actor import sessions
from starleague.actor.inference import Client, Header, actions
from starleague.companions.system import Inputs, Step
from starleague.companions.tasks.task import Batch, Task, TimeStep
from starleague.data import wire

DEADLINE_S = 3600.0  # of an answer: an update and its compilation may come before it
MOST_BYTES = 1000  # of the reason of an end


def run(connection: Connection, address: str, form: wire.StepFormat, make: Callable[[int], Task],
        seeds: np.ndarray, noise: np.ndarray) -> None:
  """Steps copies until the training process ends: the main function of a worker.

  An error ends it too; its text goes through the connection.

  Args:
    connection: to the training process.
    address: of the inference service.
    form: of the steps.
    make: number of copies -> task on the host.
    seeds: of the environments, [k].
    noise: `Header.seed` of each copy, [k] int32.
  """
  sessions.end_with_parent()
  jax.config.update("jax_platforms", "cpu")  # the accelerator is the training process's
  try:
    batch = make(len(seeds)).host
    assert batch is not None, "the task is not on the host"
    with contextlib.closing(Client(address, form, len(seeds), DEADLINE_S)) as client:
      act(client, form, batch, seeds, noise)
  except Exception as error:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    with contextlib.suppress(OSError):
      connection.send_bytes(reason.encode()[:MOST_BYTES])


def act(client: Client, form: wire.StepFormat, batch: Batch, seeds: np.ndarray,
        noise: np.ndarray) -> None:
  """Acts in copies without end; see `run`.

  Raises:
    ServiceError: the service has ended.
    TaskError: an environment failed.
  """
  copies, number = len(seeds), 0
  timestep, action = batch.reset(seeds), np.zeros(copies, np.int32)
  unset = jax.tree.map(lambda x: np.zeros((copies, *x.shape), x.dtype), actions.acted_spec(form))
  while True:
    headers = Header(
      first=int(number == 0), last=0, player=0, seed=noise, number=number, recorded=1)
    action = client.act_all(headers, _step(timestep, action, unset))
    timestep = batch.step(action)
    number += 1


def _step(timestep: TimeStep, last_action: np.ndarray, unset: tuple[Any, Any]) -> Step:
  """Returns the steps of a batch, [k, ...], with zeros where the service writes."""
  first = np.asarray(timestep.first)
  reward = np.asarray(timestep.reward)
  inputs = Inputs(timestep.observation, np.where(first, 0, last_action).astype(np.int32),
                  np.where(first, 0, reward).astype(np.float32), first)
  return Step(inputs, *unset, reward, np.asarray(timestep.discount))
