"""The recorded predictions of agents, as small integer arrays for the page of a replay."""

from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.agent.predictions import VALUE_SCALE
from starleague.environments.skirmish.games.replays import Replay
from starleague.viewers.catalog import function_name
from starleague.viewers.watch.frames import Derived

NOTHING = 65535  # a candidate that is none
_KINDS = {"pt": "place", "unit": "unit", "quick": "now", "autocast": "autocast"}


class PagePredictions(NamedTuple):
  """P predictions of a game, in its order."""

  step: np.ndarray  # [P] uint16: environment steps before it
  player: np.ndarray  # [P] uint8
  value: np.ndarray  # [P] uint16: win-loss value in 1 / VALUE_SCALE, plus VALUE_SCALE
  functions: np.ndarray  # [P, 5] uint16: indices of the names
  function_probs: np.ndarray  # [P, 5] uint16
  taken: np.ndarray  # [P] uint16: the function of the action, likewise
  units: np.ndarray  # [P, 8] uint16: candidates of `frames.Derived.rows`, or NOTHING
  unit_probs: np.ndarray  # [P, 8] uint16
  selected: np.ndarray  # [P] uint8: one bit for each of `units`, whether the action selects it
  targets: np.ndarray  # [P, 8] uint16: candidates, or NOTHING
  target_probs: np.ndarray  # [P, 8] uint16
  targeted: np.ndarray  # [P] uint8: one bit for each of `targets`
  cells: np.ndarray  # [P, 32] uint32: cells of the location grid
  cell_probs: np.ndarray  # [P, 32] uint16
  location: np.ndarray  # [P] uint32: the cell of the action plus 1, 0 if it has none
  camera: np.ndarray  # [P, 4] uint16: left, top, right, bottom on the 256 grid


def make_predictions(replay: Replay, derived: Derived) -> tuple[list[str], PagePredictions] | None:
  """Returns the names of the functions and the arrays of a page; None without predictions.

  Args:
    replay: the game.
    derived: of its states.
  """
  if replay.predicted is None:
    return None
  found, at = replay.predicted.predictions, replay.predicted.action
  step, player = replay.step[at], replay.player[at]
  action = types.Action(*(values[at] for values in replay.actions))
  used = vocabulary.argument_mask(action.function)
  ids, index = np.unique(
    np.concatenate([found.functions, action.function[:, None]], axis=1), return_inverse=True)
  index = index.reshape(len(at), -1).astype(np.uint16)
  candidates = _candidates(derived, step, player, replay.game.max_entities)
  rows = np.arange(len(at))[:, None]
  picked = np.any(found.units[:, :, None] == action.units[:, None], axis=2)
  aimed = (found.targets == action.target_unit[:, None]) & np.asarray(used.target_unit)[:, None]
  location = np.where(np.asarray(used.location), action.location + 1, 0)
  return function_names(ids), PagePredictions(
    step=step.astype(np.uint16), player=player,
    value=(found.value.astype(np.int32) + VALUE_SCALE).astype(np.uint16),
    functions=index[:, :-1], function_probs=found.function_probs, taken=index[:, -1],
    units=np.where(found.unit_probs > 0, candidates[rows, found.units], NOTHING).astype(np.uint16),
    unit_probs=found.unit_probs, selected=_bits(picked & (found.unit_probs > 0)),
    targets=np.where(found.target_probs > 0, candidates[rows, found.targets],
                     NOTHING).astype(np.uint16),
    target_probs=found.target_probs, targeted=_bits(aimed & (found.target_probs > 0)),
    cells=found.cells.astype(np.uint32), cell_probs=found.cell_probs,
    location=location.astype(np.uint32), camera=found.camera.astype(np.uint16))


def _candidates(derived: Derived, step: np.ndarray, player: np.ndarray, rows: int) -> np.ndarray:
  """Returns the candidate that each row of P observations shows: [P, rows], NOTHING if none."""
  table = np.full((len(step), rows), NOTHING, np.int64)
  present, row = (np.asarray(x)[step, player] for x in (derived.rows.present, derived.rows.row))
  at, candidate = np.nonzero(present & (row < rows))
  table[at, row[at, candidate]] = candidate
  return table


def _bits(flags: np.ndarray) -> np.ndarray:
  """Packs [P, 8] bool into [P] uint8, the first flag in the lowest bit."""
  return np.packbits(flags, axis=1, bitorder="little")[:, 0]


def function_names(ids: np.ndarray) -> list[str]:
  """Returns display names of functions; equal ones get the kind of their argument."""
  names = [vocabulary.FUNCTIONS.names[int(i)] for i in ids]
  shown = ["No action" if name == "no_op" else function_name(name) for name in names]
  return [f"{short} ({_KINDS[name.rpartition('_')[2]]})" if shown.count(short) > 1 else short
          for name, short in zip(names, shown, strict=True)]


def page_predictions(replay: Replay, derived: Derived, pack: Any) -> dict[str, Any] | None:
  """Returns the predictions as JSON types; `pack` packs an array. None without predictions."""
  made = make_predictions(replay, derived)
  if made is None:
    return None
  names, arrays = made
  return {"names": names, "grid": replay.game.location_size,
          "players": np.unique(arrays.player).tolist(),
          "arrays": {name: pack(values) for name, values in arrays._asdict().items()}}
