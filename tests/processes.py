"""Processes that a test starts together, kills, or waits for."""

import contextlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

HANG_S = 300  # longest wait for a process of seconds, which a busy machine may delay
_NOBODY = 65534  # a user's id
ROOT = pathlib.Path(__file__).resolve().parents[1]


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


@contextlib.contextmanager
def public_folder() -> Iterator[pathlib.Path]:
  """A folder that other users can reach; the folders above `tmp_path` are private."""
  with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    yield pathlib.Path(folder)


def returned_to_other_user(folder: pathlib.Path, function: Callable[[], str]) -> str:
  """Returns the result or the error of a function, for a user who may not write to a folder.

  Args:
    folder: of `public_folder`.
    function: called in a forked process.
  """
  folder.chmod(0o555)
  receive, send = os.pipe()
  child = os.fork()
  if not child:
    try:
      if os.geteuid() == 0:
        os.setuid(_NOBODY)
      os.write(send, function().encode())
    except Exception as error:
      os.write(send, f"{type(error).__name__} {error}".encode())
    finally:
      os._exit(0)
  os.close(send)
  os.waitpid(child, 0)
  folder.chmod(0o755)
  with os.fdopen(receive, "rb") as found:
    return found.read().decode()


@contextlib.contextmanager
def holding(code: str, path: str | os.PathLike) -> Iterator[None]:
  """Another process that holds something during the block, and is killed at its end.

  Args:
    code: a program that holds it; its `sys.argv[1]` is the path.
    path: of what is held.
  """
  program = f"import sys\n{code}\nprint('held', flush=True)\nsys.stdin.read()\n"
  with subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT, text=True,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    yield
    other.kill()


def runs(pid: int) -> bool:
  """Returns whether a process exists and is no zombie."""
  try:
    with open(f"/proc/{pid}/stat") as file:
      return file.read().rpartition(")")[2].split()[0] != "Z"
  except OSError:
    return False


def wait_until(condition: Callable[[], object], deadline_s: float = 120.0) -> None:
  """Waits until a condition holds; fails after the deadline, in seconds."""
  end = time.monotonic() + deadline_s
  while not condition():
    assert time.monotonic() < end, f"it does not hold after {deadline_s:g} s"
    time.sleep(0.01)
