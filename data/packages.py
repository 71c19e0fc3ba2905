"""Packages of this room that are installed apart from the others, and the line that says how."""

import importlib.util

from starleague.common.errors import UserError

# `find_spec` of a package does not import it.
_FIND = {"reverb": lambda: importlib.util.find_spec("reverb"),
         "pyarrow": lambda: importlib.util.find_spec("pyarrow")}
_LOCK = "on Python 3.11: make setup, or pip install --no-deps -r requirements.txt"
_GAMES = "pip install 'starleague[games]'"
_REMEDIES = {"reverb": _LOCK, "tensorflow": _LOCK, "pyarrow": _GAMES}


class MissingPackageError(UserError, ModuleNotFoundError):
  """A package of an extra is not installed."""


def require(*packages: str) -> None:
  """Checks that packages are installed, without importing them.

  Args:
    packages: "reverb" or "pyarrow".

  Raises:
    MissingPackageError: one is not; the message says how to install it.
  """
  for package in packages:
    if _FIND[package]() is None:
      raise _missing(package)


def explained(error: Exception) -> Exception:
  """Returns an error with the way to install the package that it misses; others as they are."""
  package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
  return _missing(package) if package in _REMEDIES else error


def _missing(package: str) -> MissingPackageError:
  return MissingPackageError(
    f"this needs the package {package!r}, which is not installed; {_REMEDIES[package]}",
    name=package)
