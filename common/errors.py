"""The base classes of errors that a user can fix."""

import contextlib
from collections.abc import Iterator


class UserError(Exception):
  """An error that the user of a launch file can fix.

  Launch files print its message in one line, without a traceback. The message names the thing,
  the expected and the found value, and the fix.
  """


# Exit status of a process whose error a restart would meet again.
FINAL_STATUS = 70


class FinalError(UserError):
  """An error that a restart of the process would meet again: it ends the run."""


@contextlib.contextmanager
def final(*kinds: type[Exception]) -> Iterator[None]:
  """Turns errors of some kinds into `FinalError`, with their message."""
  try:
    yield
  except kinds as error:
    raise FinalError(str(error)) from error
