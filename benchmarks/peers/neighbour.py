"""A process that streams memory on another core: a busy neighbour, for the other benchmarks.

Programs that move much memory lose more beside it than programs that compute.
"""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator

import numpy as np

MEGABYTES = 256  # of each of two arrays: more than any cache holds


def stream(core: int, parent: int, ready) -> None:
  """Copies one array to another until the parent has ended; sends its first rate in GB/s."""
  os.sched_setaffinity(0, {core})
  source, target = (np.ones(MEGABYTES << 20, np.uint8) for _ in range(2))
  begin = time.perf_counter()
  for _ in range(4):
    np.copyto(target, source)
  ready.send(4 * 2 * source.nbytes / (time.perf_counter() - begin) / 1e9)
  while os.getppid() == parent:
    np.copyto(target, source)


@contextlib.contextmanager
def streaming(core: int) -> Iterator[float]:
  """Streams memory on a core; yields the rate before other work begins, in GB/s."""
  context = multiprocessing.get_context("spawn")
  receiver, sender = context.Pipe(duplex=False)
  process = context.Process(target=stream, args=(core, os.getpid(), sender), daemon=True)
  process.start()
  try:
    if not receiver.poll(60):
      raise TimeoutError("the neighbour did not start within 60 s")
    rate = receiver.recv()
    print(f"neighbour: streams {rate:.1f} GB/s on core {core}", flush=True)
    yield rate
  finally:
    process.terminate()
    process.join()
