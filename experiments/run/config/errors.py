"""Errors of a run's config."""

from collections.abc import Sequence

from starleague.common.errors import UserError


class SettingsError(UserError, ValueError):
  """An invalid config or flag: names the key, the value found and the values expected."""


def check_known(key: str, names: Sequence[str], known: Sequence[str]) -> None:
  """Checks that the names of a config key, or of a flag --KEY, are known, and each there once.

  Raises:
    SettingsError: names the key and the name.
  """
  place = key if key.startswith("--") else f"config key {key!r}"
  for name in names:
    if name not in known:
      raise SettingsError(f"{place} names {name!r}; expected some of {', '.join(known)}, with "
                          "commas between.")
    if names.count(name) > 1:
      raise SettingsError(f"{place} names {name!r} more than once.")


def split(names: str) -> list[str]:
  """Returns the names of a comma-separated list; none for an empty text."""
  return names.split(",") if names else []
