"""The actions, build orders and upgrades of a recorded game, as lines of text with their steps."""

from typing import NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers.catalog import function_name, unit_name, upgrade_name
from starleague.viewers.watch.frames import Derived, rules_of


class Line(NamedTuple):
  """An action, an entry of a build order or an upgrade."""

  step: int  # environment steps played before it
  player: int
  what: str
  detail: str = ""


class Slots(NamedTuple):
  """A player's view of the slots at one step: n slots per player, S for structures, R patches."""

  rows: np.ndarray  # [2 n + R] observation row of each slot, -1 for none
  own: np.ndarray  # [n] local types
  enemy: np.ndarray  # [n] local types
  remembered: np.ndarray  # [S] local types of enemy structures as last seen


def action_log(replay: Replay, states: State, derived: Derived) -> list[Line]:
  """Returns all actions but no_op in order; rejected ones with the game's reason in brackets."""
  rules, sight = rules_of(replay), derived.rows
  lines = []
  for i, (step, player) in enumerate(zip(replay.step, replay.player, strict=True)):
    action = types.Action(*(values[i] for values in replay.actions))
    if action.function == 0:
      continue
    slots = Slots(
      rows=np.where(sight.present[step, player], sight.row[step, player], -1),
      own=np.asarray(states.kind[step, player]), enemy=np.asarray(states.kind[step, 1 - player]),
      remembered=np.asarray(states.memory.kind[step, player]))
    what, detail = describe_action(rules, action, slots)
    refused = int(states.refused[min(step + 1, len(states.refused) - 1), player])
    detail += f" ({action_results.MESSAGES[refused]})" if refused else ""
    lines.append(Line(int(step), int(player), what, detail))
  return lines


def describe_action(rules: tables.Rules, action: types.Action, slots: Slots) -> tuple[str, str]:
  """Returns an action's name and its target, place and units."""
  function = int(action.function)
  local = int(rules.functions.local[function])
  what = function_name(vocabulary.FUNCTIONS.names[function])
  uses = vocabulary.Arguments(*vocabulary.ARGUMENT_TABLE[function])
  details = []
  if uses.target_unit:
    details.append(_target(rules, action, slots))
  if uses.location:
    size = rules.location_size
    scale = rules.tier.map_size / size
    x, y = (int((cell + 0.5) * scale) for cell in (action.location % size, action.location // size))
    details.append(f"at {x}, {y}")
  if uses.units:
    details.append(_executors(rules, action, local, slots))
  if uses.repeat and action.repeat:
    what += f" × {int(action.repeat) + 1}"
  return what, " ".join(details)


def _target(rules: tables.Rules, action: types.Action, slots: Slots) -> str:
  """Returns the name of an action's target unit."""
  n, s = rules.tier.slots, rules.tier.structures
  found = np.flatnonzero(slots.rows == action.target_unit)
  if not found.size:
    return "nothing"
  slot = int(found[0])
  if slot >= 2 * n:
    return "vespene" if is_geyser(rules)[slot - 2 * n] else "minerals"
  if slot < n:
    return f"own {unit_name(rules.types.names[slots.own[slot]])}"
  slot -= n
  kind = slots.enemy[slot] or (slots.remembered[slot] if slot < s else 0)
  return f"enemy {unit_name(rules.types.names[kind])}"


def _executors(rules: tables.Rules, action: types.Action, local: int, slots: Slots) -> str:
  """Returns the types and counts of the selected units that can execute an action."""
  functions, rows = rules.functions, slots.rows[:rules.tier.slots]
  picked = slots.own[np.isin(rows, action.units) & (rows >= 0)]
  picked = picked[functions.capable[local][picked]]
  if not picked.size:
    return "without a capable unit"
  kinds, counts = np.unique(picked, return_counts=True)
  units = ", ".join(unit_name(rules.types.names[kind]) + (f" × {count}" if count > 1 else "")
                    for kind, count in zip(kinds, counts, strict=True))
  words = {constants.TRAINING: "at", constants.WARPING: "at", constants.BUILDING: "by"}
  return f"{words.get(int(functions.kind[local]), 'with')} {units}"


def build_orders(states: State) -> list[Line]:
  """Returns both build orders as the engine records them for z: 20 entries, without workers."""
  order = states.executed.build_order  # [T, 2, 20]
  lines = []
  for player in range(2):
    for entry in range(order.shape[2]):
      kind = order[-1, player, entry]
      if kind:
        step = int(np.argmax(order[:, player, entry] > 0))
        lines.append(Line(step, player, unit_name(vocabulary.UNIT_TYPES.names[kind])))
  return lines


def researched(rules: tables.Rules, states: State) -> list[Line]:
  """Returns the upgrades of both players at the steps of their completion."""
  lines = []
  for player, upgrade in np.argwhere(states.upgrades[-1]):
    step = int(np.argmax(states.upgrades[:, player, upgrade]))
    lines.append(Line(step, int(player), upgrade_name(rules.upgrades.names[upgrade])))
  return sorted(lines)
