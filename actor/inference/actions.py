"""The fields of a step that the service fills: the action, and the record of its policy."""

import functools
import math
from typing import Any

import jax

from starleague.data import wire


@functools.lru_cache(maxsize=16)
def acted_spec(form: wire.Form) -> tuple[Any, Any]:
  """Returns the specs of a step's action and of the record of the policy that took it; cached."""
  step, (action, record) = wire.step_spec(form), _acted_fields(form)
  return getattr(step, action), getattr(step, record)


def _acted_fields(form: wire.Form) -> tuple[str, str]:
  return "action", "behaviour" if isinstance(form, wire.StepFormat) else "log_prob"


def set_actions(columns: wire.Columns, action: Any, log_prob: Any, form: wire.Form) -> None:
  """Writes actions and their log-probs into steps, in place.

  Args:
    columns: numpy arrays [n, width], not differences.
    action: leaves [n, ...], numpy; see `acted_spec`.
    log_prob: the record of the policy, leaves [n, ...], numpy.
    form: of the steps.

  Raises:
    ValueError: a leaf is boolean, and thus shares its byte with others.
  """
  fields = wire.layout(form).fields
  for group, values in zip(_acted_fields(form), (action, log_prob), strict=True):
    places = [path for path in fields if path.split(".")[0] == group]
    for path, value in zip(places, jax.tree.leaves(values), strict=True):
      field = fields[path]
      if field.column == "bits":
        raise ValueError(f"leaf {path!r} of the steps is boolean, expected numbers.")
      getattr(columns, field.column)[:, field.slice] = value.reshape(
        len(value), math.prod(field.shape))
