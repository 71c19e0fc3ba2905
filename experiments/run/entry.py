"""How every launch file begins and ends: flags are parsed, and errors told in one line."""

import os
import sys
from collections.abc import Callable, Sequence

from absl import app, flags
from ml_collections import config_flags

from starleague.common.errors import UserError
from starleague.data import recordings, transport
from starleague.experiments.run import settings
from starleague.learner import checkpoints, guard

# What whoever starts a program can mend: the message says how, a traceback would hide it.
MENDABLE = (
  UserError, settings.SettingsError, recordings.RecordingError, guard.NonFiniteError,
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


def run(main: Callable[..., None], required: Sequence[str] = (),
        arguments: Sequence[Sequence[str]] = ((),)) -> None:
  """Runs a launch file: parses the command line, calls `main`, ends the process.

  A wrong command line and the errors of `MENDABLE` end it with one line and status 1, other errors
  with their traceback.

  Args:
    main: the launch file's function; called with the values of the positional arguments.
    required: names of flags that must be given.
    arguments: the accepted forms of the positional arguments, each the names of its arguments:
      `[("REPLAY",), ("PLAYER_1", "PLAYER_2")]`. Without it there are none.
  """
  def program(argv: Sequence[str]) -> None:
    if len(argv) - 1 not in [len(form) for form in arguments]:
      expected = " or ".join(" ".join(form) or "no arguments" for form in arguments)
      sys.exit(f"error: expected {expected} beside the flags, found "
               f"{' '.join(argv[1:]) or 'no arguments'}; --help lists the flags")
    try:
      main(*argv[1:])
    except MENDABLE as error:
      sys.exit(f"error: {error}")

  flags.mark_flags_as_required(required)
  app.run(program, flags_parser=_parse_flags)


def _parse_flags(argv: Sequence[str]) -> list[str]:
  """Parses the flags; returns the program's name and the positional arguments."""
  try:
    return flags.FLAGS(argv)
  except flags.Error as error:
    sys.exit(f"error: {' '.join(str(error).split())}; --help lists the flags")
