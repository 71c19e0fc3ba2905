"""Processes that a test starts together, kills, or waits for."""

import multiprocessing
from collections.abc import Callable, Sequence


def start_together(target: Callable, arguments: Sequence[tuple]) -> list:
  """Starts one process for each tuple of arguments and waits until all have begun.

  Args:
    target: takes the arguments and then an Event, which it sets when it has begun.
    arguments: one tuple a process.
  """
  context = multiprocessing.get_context("spawn")  # a fork would carry JAX's threads along
  started = [context.Event() for _ in arguments]
  processes = [context.Process(target=target, args=(*args, event))
               for args, event in zip(arguments, started, strict=True)]
  for process in processes:
    process.start()
  for event in started:
    assert event.wait(120)
  return processes
