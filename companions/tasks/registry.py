"""Tasks by name. A family's package is imported when the first task of it is made."""

import contextlib
import difflib
import io
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from starleague.common.ranges import MAX_INT
from starleague.companions.tasks import host, joined
from starleague.companions.tasks.task import Task, TaskError

# Parameters of every task; each adapter's `TASKS` has those of its own, with their defaults.
_COMMON: dict[str, Any] = {"scale": 1.0}
_BETWEEN_NAMES = re.compile(r"\+(?=[A-Za-z])")  # not that of an exponent, as in scale=1e+3


def _minatar() -> ModuleType:
  from starleague.companions.tasks import minatar
  return minatar


def _boxworld() -> ModuleType:
  from starleague.companions.tasks import boxworld
  return boxworld


def _bsuite() -> ModuleType:
  from starleague.companions.tasks import bsuite
  return bsuite


def _ale() -> ModuleType:
  from starleague.companions.tasks import atari
  return atari


def _gymnasium() -> ModuleType:
  from starleague.companions.tasks import gymnasium
  return gymnasium


def _jaxmarl() -> ModuleType:
  # JaxMARL prints what it imports. Its part for brax, not used here, puts back the process's first
  # stdout and stderr.
  sys.modules.setdefault("jaxmarl.environments.mabrax", None)  # type: ignore[arg-type]
  with contextlib.redirect_stdout(io.StringIO()):
    from starleague.companions.tasks import jaxmarl
  return jaxmarl


def _popgym() -> ModuleType:
  from starleague.companions.tasks import popgym
  return popgym


def _xminigrid() -> ModuleType:
  from starleague.companions.tasks import minigrid
  return minigrid


# Importers of adapters: modules with `TASKS`, task -> parameters with defaults, and `make`.
_FAMILIES: dict[str, Callable[[], ModuleType]] = {
  "ale": _ale, "boxworld": _boxworld, "bsuite": _bsuite, "gymnasium": _gymnasium,
  "jaxmarl": _jaxmarl, "minatar": _minatar, "popgym": _popgym, "xminigrid": _xminigrid}


def make_task(name: str, copies: int, seed: int = 0) -> Task:
  """Makes a task by name; its package is imported at the first call.

  Args:
    name: FAMILY-TASK or `boxworld`, as in `task_names`, with parameters if any:
      `bsuite-memory_len:length=30`, `minatar-asterix:scale=100,limit=1000`. Every task takes
      `scale`, a factor of its rewards, and `limit`, the most steps of an episode. Names with `+`
      between them are joined; see `joined`.
    copies: n, the environments of the batch.
    seed: of what stays the same over episodes and copies, as the mapping of actions of
      `bsuite-deep_sea`.

  Raises:
    TaskError: an unknown task or parameter, a value that is refused, a package that is not
      installed, or actions that are not discrete.
  """
  if copies < 1:
    raise TaskError(f"task {name!r}: {copies} copies; expected at least 1")
  names = split_names(name)
  if len(names) > 1:
    if copies % len(names):
      raise TaskError(f"task {name!r}: {copies} copies cannot be shared by {len(names)} tasks; "
                      f"expected a multiple of {len(names)}")
    return joined.join(name, [make_task(each, copies // len(names), seed) for each in names])
  base, _, text = name.partition(":")
  family, _, task = base.partition("-")
  if family not in _FAMILIES:
    close = difflib.get_close_matches(family, _FAMILIES, 1) or sorted(_FAMILIES)
    raise TaskError(f"unknown task {name!r}: names begin with {' or '.join(close)}")
  adapter = _load(name, family)
  if task not in adapter.TASKS:
    close = difflib.get_close_matches(task, adapter.TASKS, 3, 0.4) or sorted(adapter.TASKS)
    raise TaskError(f"unknown task {name!r}: "
                    f"did you mean {' or '.join(_join(family, each) for each in close)}?")
  parameters = _parameters(name, text, _COMMON | adapter.TASKS[task])
  scale = parameters.pop("scale")
  try:
    made = adapter.make(name, task, copies, seed, **parameters)
  except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
    if isinstance(error, TaskError) or not text:
      raise
    raise TaskError(f"task {name!r}: {family} refuses the parameters: "
                    f"{type(error).__name__}: {error}".splitlines()[0]) from error
  return made if scale == 1.0 else _scaled(made, scale)


def split_names(text: str) -> list[str]:
  """Returns the names of a text with `+` between them; "" has none."""
  return _BETWEEN_NAMES.split(text) if text else []


def depends_on_seed(name: str) -> bool:
  """Returns whether the seed of `make_task` changes a task, as `bsuite-deep_sea`.

  Raises:
    TaskError: see `make_task`.
  """
  return any(make_task(each, 1).seed is not None for each in split_names(name))


def task_names(family: str) -> tuple[str, ...]:
  """Names of the tasks of a family: "minatar", "bsuite".

  Raises:
    TaskError: an unknown family, or a package that is not installed.
  """
  if family not in _FAMILIES:
    raise TaskError(f"unknown family of tasks {family!r}: choose one of {sorted(_FAMILIES)}")
  return tuple(_join(family, task) for task in sorted(_load(family, family).TASKS))


def _join(family: str, task: str) -> str:
  return f"{family}-{task}" if task else family  # a family of one task


def _load(name: str, family: str) -> ModuleType:
  try:
    return _FAMILIES[family]()
  except ModuleNotFoundError as error:
    package = (error.name or "").partition(".")[0]
    if package in ("", "starleague"):
      raise
    raise TaskError(f"task {name!r} needs the package {package!r}, which is not installed: "
                    "pip install 'starleague[companions]'") from error


def _parameters(name: str, text: str, defaults: dict[str, Any]) -> dict[str, Any]:
  """Reads `key=value,key=value`: the defaults with these values, of the defaults' types."""
  parameters = dict(defaults)
  for assignment in text.split(",") if text else ():
    key, equals, value = assignment.partition("=")
    if key not in defaults:
      raise TaskError(f"task {name!r} has no parameter {key!r}: it has "
                      f"{', '.join(sorted(defaults))}")
    read = _read(value, type(defaults[key])) if equals else None
    if read is None or (type(read) is int and read == 0 and key not in _MAY_BE_0):
      raise TaskError(f"task {name!r}: {key} is {value!r}; expected "
                      f"{_EXPECTED[type(defaults[key])]}, as {key}={defaults[key]}")
    parameters[key] = read
  return parameters


_MAY_BE_0 = {"branches", "fewest", "limit", "threads"}
_EXPECTED = {int: f"a whole number from 1 to {MAX_INT}", float: "a finite number",
             bool: "True or False", str: "a word"}


def _read(text: str, kind: type) -> Any:
  """The value of a text; None if it has none."""
  if kind is bool:
    return {"true": True, "false": False}.get(text.lower())
  if kind is int:
    # Python refuses texts of thousands of digits.
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INT))
    return int(text) if digits and int(text) <= MAX_INT else None
  if kind is str:
    return text or None
  try:
    value = float(text)
  except ValueError:
    return None
  return value if abs(value) < float("inf") else None


def _scaled(task: Task, scale: float) -> Task:
  """Multiplies all rewards."""
  def scaled(function):
    def wrapped(*arguments):
      state, step = function(*arguments)
      return state, step._replace(reward=scale * step.reward)
    return wrapped

  batch = None if task.host is None else host.Scaled(task.host, scale)
  return task._replace(reset=scaled(task.reset), step=scaled(task.step), host=batch)
