"""The start and the end of every launch file: its command line, its logs, its errors."""

import functools
import logging
import pathlib
import sys
from collections.abc import Callable, Sequence

from absl import app, flags
from absl import logging as absl_logging

from starleague.common.errors import UserError

# Errors that a user can fix: the message says how, a traceback would hide it.
USER_ERRORS = (UserError, OSError)
INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
_ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(main: Callable[..., None], required: Sequence[str] = (),
        arguments: Sequence[Sequence[str]] = ((),)) -> None:
  """Runs a launch file: parses the command line, calls `main`, ends the process.

  A wrong command line and the errors of `USER_ERRORS` end it with one line and status 1, other
  errors with their traceback.

  Args:
    main: the launch file's function; called with the values of the positional arguments.
    required: names of flags that must be given.
    arguments: the accepted forms of the positional arguments, each the names of its arguments:
      `[("REPLAY",), ("PLAYER_1", "PLAYER_2")]`. A last name with dots, `("FOLDER...",)`, stands for
      one argument or more. Default: none are accepted.
  """
  def program(argv: Sequence[str]) -> None:
    if not any(_fits(form, len(argv) - 1) for form in arguments):
      expected = " or ".join(" ".join(form) or "no arguments" for form in arguments)
      sys.exit(f"error: expected {expected} beside the flags, found "
               f"{' '.join(argv[1:]) or 'no arguments'}; --help lists the flags")
    keep_own_messages()
    try:
      main(*argv[1:])
    except USER_ERRORS as error:
      sys.exit(f"error: {one_line(error)}")
    except KeyboardInterrupt:
      sys.exit(INTERRUPTED)

  flags.mark_flags_as_required(required)
  app.run(program, flags_parser=functools.partial(_parse_flags, main.__module__))


def _fits(form: Sequence[str], count: int) -> bool:
  """Returns whether a form of the positional arguments has so many."""
  return count >= len(form) if form and form[-1].endswith("...") else count == len(form)


def one_line(error: BaseException) -> str:
  """Returns an error's message in one line; the error's type where it has no message."""
  return " ".join(str(error).split()) or type(error).__name__


def keep_own_messages() -> None:
  """Limits the log to the project's own messages and the warnings of libraries."""
  logging.getLogger("jax").setLevel(logging.WARNING)
  handler = absl_logging.get_absl_handler()
  if _is_own not in handler.filters:
    handler.addFilter(_is_own)


def _is_own(record: logging.LogRecord) -> bool:
  path = pathlib.Path(record.pathname).resolve()
  # A virtual environment may lie in the repository's root.
  own = path.is_relative_to(_ROOT) and "site-packages" not in path.parts
  return own or record.levelno >= logging.WARNING


def _parse_flags(module: str, argv: Sequence[str]) -> list[str]:
  """Parses the flags of a launch file; returns its name and the positional arguments."""
  try:
    arguments = flags.FLAGS(argv)
  except BrokenPipeError:  # --help | head
    sys.exit(1)
  except (flags.Error, OSError, UnicodeDecodeError) as error:  # the last two: of --flagfile
    sys.exit(f"error: {_nearest_key(error) or one_line(error)}; --help lists the flags")
  # Other launch files' flags are known too, as modules that this one imports define them.
  own = flags.FLAGS.get_key_flags_for_module(argv[0] if module == "__main__" else module)
  for module_name, defined in flags.FLAGS.flags_by_module_dict().items():
    for flag in defined:
      if module_name.startswith("starleague.") and flag.present and flag not in own:
        sys.exit(f"error: --{flag.name} is no flag of this program; --help lists the flags")
  return arguments


def _nearest_key(error: Exception) -> str | None:
  """Returns the message of an unknown flag --config.KEY, or None for other errors."""
  prefix = "config."
  if not isinstance(error, flags.UnrecognizedFlagError) or not error.flagname.startswith(prefix):
    return None
  from starleague.experiments.run.config import settings  # not needed otherwise, and slow to import
  try:
    settings.require_key(error.flagname.removeprefix(prefix))
  except settings.SettingsError as unknown:
    return str(unknown).rstrip(".")
  return None
