"""The start and the end of every launch file: its command line, its logs, its errors."""

import contextlib
import functools
import logging
import math
import os
import pathlib
import stat
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import NoReturn

from absl import app, flags
from absl import logging as absl_logging

from starleague.common import disk
from starleague.common.errors import FINAL_STATUS, FinalError, UserError
from starleague.data import packages

# Errors that a user can fix: the message says how, a traceback would hide it.
USER_ERRORS = (UserError, OSError)
INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
_KEY_PREFIXES = ("config.", "set.")  # of the flags of config keys; "set.": of companion systems
_HELP_COLUMNS = 100
_ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(main: Callable[..., None], required: Sequence[str] = (),
        arguments: Sequence[Sequence[str]] = ((),)) -> None:
  """Runs a launch file: parses the command line, calls `main`, ends the process.

  A wrong command line and the errors of `USER_ERRORS` end it with one line and status 1, or
  FINAL_STATUS where a restart would meet the error again. Other errors have their traceback.

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
    except Exception as raised:
      error = packages.explained(raised)
      if disk.is_full(error):
        _end_of_disk(error)
      if not isinstance(error, USER_ERRORS):
        raise
      if not isinstance(error, FinalError):
        sys.exit(f"error: {one_line(error)}")
      print(f"error: {one_line(error)}", file=sys.stderr)
      sys.exit(FINAL_STATUS)
    except KeyboardInterrupt:
      sys.exit(INTERRUPTED)

  flags.mark_flags_as_required(required)
  app.run(program, flags_parser=functools.partial(_parse_flags, main.__module__, required))


def _end_of_disk(error: Exception) -> NoReturn:
  """Ends the process with the line of a full disk, though its log may be on that disk."""
  if not isinstance(error, disk.DiskFullError):
    error = disk.full(_folder_of(error))
  try:
    print(f"error: {one_line(error)}", file=sys.stderr, flush=True)
    sys.stdout.flush()
  except OSError:  # the interpreter would try again at its end, and change the status
    for stream in (sys.stdout, sys.stderr):
      os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
  sys.exit(FINAL_STATUS)


def _folder_of(error: Exception) -> pathlib.Path:
  """Returns the folder of an error's file, or of this process's log, or the current one."""
  name = getattr(error, "filename", None)
  if isinstance(name, str | os.PathLike):
    return pathlib.Path(name).absolute().parent
  with contextlib.suppress(OSError, ValueError):
    if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
      return pathlib.Path(os.readlink(f"/proc/self/fd/{sys.stdout.fileno()}")).parent
  return pathlib.Path.cwd()


def _fits(form: Sequence[str], count: int) -> bool:
  """Returns whether a form of the positional arguments has so many."""
  return count >= len(form) if form and form[-1].endswith("...") else count == len(form)


def one_line(error: BaseException) -> str:
  """Returns an error's message in one line; the error's type where it has no message.

  The system's errors name the file first, as "'runs': is a directory".
  """
  text = str(error)
  if isinstance(error, OSError) and error.strerror and text.startswith("[Errno"):
    reason = error.strerror[0].lower() + error.strerror[1:]
    text = reason if error.filename is None else f"{str(error.filename)!r}: {reason}"
  return " ".join(text.split()) or type(error).__name__


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


def _parse_flags(module: str, required: Sequence[str], argv: Sequence[str]) -> list[str]:
  """Parses the flags of a launch file; returns its name and the positional arguments."""
  asked = {"help", "helpfull", "helpshort"} & {
    word.lstrip("-") for word in _before_separator(argv) if word.startswith("-")}
  if asked:
    _print_help(argv[0] if module == "__main__" else module, full="helpfull" in asked)
  try:
    arguments = flags.FLAGS(argv)
  except (flags.Error, OSError, UnicodeDecodeError) as error:  # the last two: of --flagfile
    sys.exit(f"error: {_nearest_key(error) or one_line(error)}; --help lists the flags")
  # Other launch files' flags are known too, as modules that this one imports define them.
  own = flags.FLAGS.get_key_flags_for_module(argv[0] if module == "__main__" else module)
  for module_name, defined in flags.FLAGS.flags_by_module_dict().items():
    for flag in defined:
      if module_name.startswith("starleague.") and flag.present and flag not in own:
        sys.exit(f"error: --{flag.name} is no flag of this program; --help lists the flags")
  for flag in own:
    if isinstance(flag.value, float) and math.isnan(flag.value):  # absl's bounds let it pass
      sys.exit(f"error: --{flag.name}: expected a number, found nan; --help lists the flags")
    if flag.name in required and flag.value == "":
      sys.exit(f"error: --{flag.name}: expected a value, found ''; --help lists the flags")
  return arguments


def _before_separator(argv: Sequence[str]) -> Sequence[str]:
  """Returns the arguments that may be flags: those before `--`."""
  return argv[1:argv.index("--")] if "--" in argv else argv[1:]


def _print_help(module: str, full: bool) -> NoReturn:
  """Prints what a launch file does and its flags, and ends the process with status 0.

  Args:
    module: name of the launch file.
    full: each config key has an entry; otherwise each group of keys has a line.
  """
  about = sys.modules.get(module, sys.modules["__main__"]).__doc__ or ""
  lines = [about.strip(), "", "Flags:"]
  groups: dict[str, list[str]] = {}
  prefixes: set[str] = set()
  for flag in sorted(flags.FLAGS.get_key_flags_for_module(module), key=lambda flag: flag.name):
    prefix, key = _split_key(flag.name)
    if prefix and not full:
      group, _, key = key.rpartition(".")
      prefixes.add(prefix)
      groups.setdefault(group, []).append(key)
    elif flag.name not in ("help", "helpfull", "helpshort", "helpxml"):
      lines += textwrap.wrap(f"--{flag.name}: {flag.help}", _HELP_COLUMNS, initial_indent="  ",
                             subsequent_indent="      ", break_on_hyphens=False)
  if lines[-1] == "Flags:":
    lines[-1] = "It has no flags."
  if groups:
    lines += ["", f"Config keys, as --{prefixes.pop()}seed=1; --helpfull describes each:"]
  for group, keys in sorted(groups.items()):
    lines += textwrap.wrap(f"{group or 'no group'}: {', '.join(keys)}", _HELP_COLUMNS,
                           initial_indent="  ", subsequent_indent="      ")
  with contextlib.suppress(BrokenPipeError):  # --help | head
    print("\n".join(lines), flush=True)
    sys.exit(0)
  os._exit(0)  # the interpreter would complain about the closed pipe at its end


def _nearest_key(error: Exception) -> str | None:
  """Returns the message of an unknown flag of a config key, or None for other errors."""
  if not isinstance(error, flags.UnrecognizedFlagError):
    return None
  prefix, key = _split_key(error.flagname)
  known = [name.removeprefix(prefix) for name in flags.FLAGS if prefix and name.startswith(prefix)]
  if not known or any(name.startswith(f"{key}.") for name in known):
    return None
  from starleague.experiments.run.config import settings  # slow to import
  return settings.unknown_key(key, known)


def _split_key(flag: str) -> tuple[str, str]:
  """Returns the prefix and the config key of a flag; "" and its name for another flag."""
  prefix = next((each for each in _KEY_PREFIXES if flag.startswith(each)), "")
  return prefix, flag.removeprefix(prefix)
