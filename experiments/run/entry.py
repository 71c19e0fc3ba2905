"""How every launch file begins and ends: flags are parsed, and errors told in one line."""

import os
import sys
from collections.abc import Callable, Sequence

from absl import app, flags
from ml_collections import config_flags

from starleague.data import recordings, transport
from starleague.experiments.run import settings
from starleague.learner import checkpoints, guard

# What whoever starts a program can mend: the message says how, a traceback would hide it.
MENDABLE = (
  settings.SettingsError, recordings.RecordingError, guard.NonFiniteError,
  checkpoints.CheckpointDamagedError, checkpoints.CheckpointMismatchError,
  transport.ServerUnavailableError, transport.StarvedError, transport.SignatureMismatchError,
  FileExistsError, FileNotFoundError)


def define_config(path: str | os.PathLike) -> flags.FlagHolder:
  """Defines `--config`, a file of settings of which `--config.KEY=VALUE` changes one.

  A key that no config has ends the process here: ml_collections looks keys up while the flag is
  defined, and would end it with a traceback.

  Args:
    path: the file if none is given.
  """
  try:
    for word in sys.argv[1:]:
      if word.startswith(("--config.", "-config.")):
        settings.require_key(word.lstrip("-").removeprefix("config.").split("=")[0])
  except settings.SettingsError as error:
    sys.exit(f"error: {error}")
  return config_flags.DEFINE_config_file(
    "config", str(path), "Settings of the run; --config.KEY=VALUE changes one.")


def run(main: Callable[[], None], required: Sequence[str] = ()) -> None:
  """Runs a launch file: parses its flags, then `main`; ends the process.

  Args:
    main: what it does. Errors of `MENDABLE` end it with one line and status 1, others with their
      traceback.
    required: flags that must be given.
  """
  def program(argv: Sequence[str]) -> None:
    if len(argv) > 1:
      raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    try:
      main()
    except MENDABLE as error:
      sys.exit(f"error: {error}")

  flags.mark_flags_as_required(required)
  app.run(program)
