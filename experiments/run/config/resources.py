"""Resources that a process of a run needs of its node, as text."""

import math

from starleague.common.errors import UserError

FORM = "NAME:NUMBER,..., as CPU:1 or TPU-v4-8-head:1,TPU:4"


class ResourcesError(UserError, ValueError):
  """A text that names no resources."""


def parse(text: str) -> dict[str, float]:
  """Returns the amount of each resource.

  Args:
    text: in `FORM`; empty: none.

  Raises:
    ResourcesError: the text has another form.
  """
  found: dict[str, float] = {}
  for entry in filter(None, text.split(",")):
    name, _, amount = entry.rpartition(":")
    try:
      value = float(amount)
    except ValueError:
      value = math.nan
    if not name or name in found or not 0 < value < math.inf:
      raise ResourcesError(f"expected {FORM}, found {text!r}")
    found[name] = value
  return found
