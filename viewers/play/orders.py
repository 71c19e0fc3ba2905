"""Orders of the human player: checked as they arrive, then converted to actions.

Pure functions of an observation; nothing here reads the state of the game.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers import catalog
from starleague.viewers.play import reasons, view


class OrderError(ValueError):
  """An order that cannot be executed, with the reason for the human player."""


class Order(NamedTuple):
  """An order from the page."""

  function: int  # local
  units: list[int]  # tags of the selected units, in order of selection
  target: int = 0  # tag
  x: float = 0.0  # fraction of the map's side from its left
  y: float = 0.0  # from its top
  queued: bool = False
  repeat: int = 1


def check_order(order: Any, rules: tables.Rules) -> Order:
  """Returns an order from the page after checking its types and ranges.

  Raises:
    ValueError: names the key, the expected and the found value.
  """
  if not isinstance(order, Mapping):
    raise ValueError(f"order: expected an object, found {type(order).__name__}")
  for key in order:
    if key not in Order._fields:
      raise ValueError(f"order: unknown key {key!r}; expected {', '.join(Order._fields)}")
  checked = Order(**{"function": 0, "units": [], **order})
  for key, low, high in (("function", 1, len(rules.functions.names) - 1), ("target", 0, 2 ** 15),
                         ("repeat", 1, 3)):
    value = getattr(checked, key)
    if type(value) is not int or not low <= value <= high:
      raise ValueError(f"order.{key}: expected an integer from {low} to {high}, found {value!r}")
  for key in ("x", "y"):
    value = getattr(checked, key)
    if type(value) not in (int, float) or not 0 <= value <= 1:
      raise ValueError(f"order.{key}: expected a number from 0 to 1, found {value!r}")
  if type(checked.queued) is not bool:
    raise ValueError(f"order.queued: expected true or false, found {checked.queued!r}")
  units = checked.units
  if not isinstance(units, list) or any(type(tag) is not int for tag in units):
    raise ValueError(f"order.units: expected a list of tags, found {units!r}")
  if not 1 <= len(units) <= rules.max_selected:
    raise ValueError(f"order.units: expected 1 to {rules.max_selected} tags, found {len(units)}")
  return checked


def no_action(rules: tables.Rules) -> types.Action:
  """Returns the action that does nothing until the next environment step."""
  none = types.zeros(types.action_spec(rules.max_selected))
  return none._replace(
    delay=np.int16(1), units=np.full(rules.max_selected, rules.max_entities, np.int16))


def to_action(rules: tables.Rules, observation: types.Observation, order: Order) -> types.Action:
  """Converts an order to an action on the current observation, with a delay of one step.

  Raises:
    OrderError: the order cannot be executed, or cannot any more.
  """
  functions, dense = rules.functions, int(rules.functions.index[order.function])
  name = catalog.function_name(functions.names[order.function])
  if not observation.available_actions[dense]:
    raise OrderError(f"{name}: {reasons.reason(rules, observation, order.function)}")
  tags = observation.entities[:int(observation.entity_count), types.COLUMN["tag"]]
  none = no_action(rules)
  rows = _executor_rows(rules, observation, order)
  if not rows:
    raise OrderError(f"{name}: no selected unit can do that")
  units = none.units.copy()
  units[:len(rows)] = rows
  target, location = 0, 0
  if functions.takes_unit[order.function]:
    found = np.flatnonzero(tags == order.target)
    if not found.size:
      raise OrderError(f"{name}: the target is out of sight")
    target = int(found[0])
  if functions.takes_point[order.function]:
    size = rules.location_size
    column, row = (min(size - 1, int(fraction * size)) for fraction in (order.x, order.y))
    location = row * size + column
  repeats = vocabulary.Arguments(*vocabulary.ARGUMENT_TABLE[dense]).repeat
  return types.Action(
    function=np.int16(dense), delay=np.int16(1), queued=np.uint8(order.queued),
    repeat=np.uint8(order.repeat - 1 if repeats else 0), units=units,
    target_unit=np.int16(target), location=np.int32(location))


def _executor_rows(rules: tables.Rules, observation: types.Observation,
                   order: Order) -> list[int]:
  """Returns the rows of the selected units that can execute an order, in order of selection."""
  functions = rules.functions
  entities = observation.entities[:int(observation.entity_count)]
  mine = entities[:, types.COLUMN["alliance"]] == types.ALLIANCE_SELF
  if functions.ability[order.function] == constants.CANCEL:
    able = mine & (entities[:, types.COLUMN["build_progress"]] < 100)
  else:
    local = view.local_types(rules)[entities[:, types.COLUMN["unit_type"]]]
    able = mine & functions.capable[order.function][np.maximum(local, 0)]
  tags = entities[:, types.COLUMN["tag"]]
  return [int(row) for tag in order.units for row in np.flatnonzero((tags == tag) & able)]


def refusal_text(observation: types.Observation) -> str:
  """Returns why the game rejected the last action; "" if it did not."""
  if not observation.action_result:
    return ""
  name = catalog.function_name(vocabulary.FUNCTIONS.names[int(observation.last_function)])
  return f"{name}: {action_results.MESSAGES[int(observation.action_result)]}"
