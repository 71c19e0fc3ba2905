"""The base class of errors that a user can fix."""


class UserError(Exception):
  """An error that the user of a launch file can fix.

  Launch files print its message in one line, without a traceback. The message names the thing,
  the expected and the found value, and the fix.
  """


# Exit status of a process whose error a restart would meet again.
FINAL_STATUS = 70


class FinalError(UserError):
  """An error that a restart of the process would meet again: it ends the run."""
