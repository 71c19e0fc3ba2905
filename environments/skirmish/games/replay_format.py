"""Replays of Skirmish and their file format: a NumPy .npz of a few KB, written atomically.

The array `manifest` is JSON and holds all scalars and names. `step`, `player` and `action.FIELD`
hold the actions, one row each. `z.FIELD` hold both players' z. Nothing is pickled.

Agents' predictions are an optional block: `predictions` in the manifest is its version, and
`predictions.action` and `predictions.FIELD` are arrays of one row per action with predictions.
"""

import json
import operator
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import predictions as agent_predictions
from starleague.agent import types, vocabulary
from starleague.agent.predictions import Predictions
from starleague.common import arrays, files
from starleague.common.errors import UserError
from starleague.environments import base
from starleague.environments.skirmish.rules.tables import constants, tables, tiers
from starleague.environments.skirmish.rules.tables.tables import GameConfig

SCHEMA = 2
PREDICTIONS_VERSION = 1
STEPS_PER_HASH = 256
UNFINISHED = -1
MOST_INCOME = 1000  # percent
_MOST_MANIFEST = 2 ** 20  # bytes
_MOST_CHARACTERS = 200  # of a text in the manifest
_MOST_REPEAT = 2  # index of the repeat head
MOST_SEED = 2 ** 31 - 1


class ReplayError(UserError, ValueError):
  """A replay cannot be used; the message states the values expected and found."""


class Predicted(NamedTuple):
  """The predictions behind P actions of a replay, numpy arrays."""

  action: np.ndarray  # [P] int32, ascending: index of the action
  predictions: Predictions  # [P, ...]


class Replay(NamedTuple):
  """A recorded game with N actions. All arrays are numpy arrays."""

  game: GameConfig
  match_up: base.MatchUp
  seed: int
  players: tuple[str, str]
  steps: int  # environment steps played
  winner: int  # 0 or 1, 2 for a draw, UNFINISHED if it was stopped early
  step: np.ndarray  # [N] int32, ascending: number of environment steps before the action
  player: np.ndarray  # [N] uint8
  actions: types.Action  # [N, ...]
  hashes: tuple[str, ...]  # SHA-256 of the state after each of `hash_steps(steps)`
  rules: str  # digest of the tier's constants
  recorded_with: str  # version of JAX and kind of CPU
  predicted: Predicted | None = None  # None if none were recorded


_HEAD = {"manifest": arrays.Spec(np.uint8, ("bytes",))}
# Keys of the manifest and their types; schema comes first.
_MANIFEST = {
  "schema": int, **GameConfig.__annotations__, "seed": int, "players": list, "races": list,
  "map_index": int, "swap_sides": bool, "mmr": list, "income": list, "steps": int, "winner": int,
  "hashes": list, "rules": str, "recorded_with": str}
# Lengths of the manifest's lists that belong to a game's start, and ranges of its numbers.
_PAIRS = {"players": str, "races": int, "mmr": int, "income": int}
_START_RANGES = {
  "seed": (0, MOST_SEED), "map_index": (0, 2 ** 31 - 1), "races": (0, len(types.RACES) - 1),
  "mmr": (0, 2 ** 15 - 1), "income": (0, MOST_INCOME)}
_PREDICTIONS = "predictions"  # key of the manifest, only with predictions


def hash_steps(steps: int) -> tuple[int, ...]:
  """Returns the numbers of steps after which the state of a game is hashed."""
  return *range(0, steps, STEPS_PER_HASH), steps


def save(path: str | os.PathLike[str], replay: Replay) -> pathlib.Path:
  """Writes a replay atomically: readers find the old file or the complete new one."""
  path = pathlib.Path(path)
  manifest = {
    "schema": SCHEMA, **replay.game._asdict(),
    **_start(replay.match_up, replay.seed, replay.players), "steps": replay.steps,
    "winner": replay.winner, "hashes": replay.hashes, "rules": replay.rules,
    "recorded_with": replay.recorded_with}
  arrays = {
    "step": replay.step, "player": replay.player,
    **{f"action.{name}": values for name, values in replay.actions._asdict().items()},
    **{f"z.{name}": values for name, values in replay.match_up.z._asdict().items()}}
  if replay.predicted is not None:
    manifest[_PREDICTIONS] = PREDICTIONS_VERSION
    arrays |= {f"{_PREDICTIONS}.action": replay.predicted.action, **{
      f"{_PREDICTIONS}.{name}": values
      for name, values in replay.predicted.predictions._asdict().items()}}
  arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
  with files.replacing(path, "wb") as file:
    np.savez_compressed(file, **arrays)
  return path


def _start(match_up: base.MatchUp, seed: int, players: Sequence[str]) -> dict[str, Any]:
  """Returns the manifest's entries of a game's start."""
  return {
    "seed": operator.index(seed), "players": list(players),
    "races": np.asarray(match_up.races).tolist(), "map_index": int(match_up.map_index),
    "swap_sides": bool(match_up.swap_sides), "mmr": np.asarray(match_up.mmr).tolist(),
    "income": np.asarray(match_up.income).tolist()}


def check_start(match_up: base.MatchUp, seed: int, players: Sequence[str] = ("", "")) -> None:
  """Checks the start of a game by the rule of `load`, before there is a file.

  Args:
    match_up: of numpy arrays.
    seed: any integer type.
    players: both players' names.

  Raises:
    ReplayError: `load` would refuse a replay with these values.
  """
  found = _start(match_up, seed, players)
  for key, value in found.items():
    _check_type("replay", key, value)
  _check_start("replay", found)


def _check_start(path: Any, found: Mapping[str, Any]) -> None:
  """Checks lengths and ranges of the entries of a game's start."""
  for key, kind in _PAIRS.items():
    _check_items(path, key, found[key], kind, 2)
  _check_ranges(path, found, _START_RANGES)


def load(path: str | os.PathLike[str]) -> Replay:
  """Reads a replay and checks its format; `replays.resimulate` checks the game itself.

  Raises:
    OSError: the file cannot be read.
    ReplayError: the file is damaged, has another schema or tier, or is no replay.
  """
  try:
    head = arrays.read(path, _HEAD, {"bytes": _MOST_MANIFEST}, others=True)
    manifest = _manifest(path, head["manifest"])
    game = GameConfig(*(manifest[name] for name in GameConfig._fields))
    most = {"bytes": _MOST_MANIFEST, "actions": 2 * manifest["steps"]}
    specs = _specs(game, manifest["steps"])
    if _PREDICTIONS in manifest:
      specs |= _prediction_specs(game, manifest["steps"])
      most["predictions"] = most["actions"]
    found = arrays.read(path, specs, most)
  except arrays.ArraysError as error:
    raise ReplayError(str(error)) from error
  replay = Replay(
    game=game, seed=manifest["seed"], players=tuple(manifest["players"]),
    match_up=base.make_match_up(
      manifest["races"], manifest["map_index"], manifest["swap_sides"],
      types.Statistics(*(found[f"z.{name}"] for name in types.Statistics._fields)),
      manifest["mmr"], manifest["income"]),
    steps=manifest["steps"], winner=manifest["winner"], step=found["step"],
    player=found["player"],
    actions=types.Action(*(found[f"action.{name}"] for name in types.Action._fields)),
    hashes=tuple(manifest["hashes"]), rules=manifest["rules"],
    recorded_with=manifest["recorded_with"], predicted=_predicted(found))
  _check_actions(path, replay)
  if replay.predicted is not None:
    _check_predictions(path, len(replay.step), replay.predicted)
  return replay


def check_seed(seed: int) -> None:
  """Checks the seed of a game.

  Raises:
    ValueError: it is out of range.
  """
  if not 0 <= seed <= MOST_SEED:
    raise ValueError(f"seed: expected 0 to {MOST_SEED}, found {seed}")


def _expect(path: Any, what: str, expected: Any, found: Any) -> None:
  if expected != found:
    raise ReplayError(f"{path}: {what}: expected {expected}, found {str(found):.400}")


def _manifest(path: Any, text: np.ndarray) -> dict[str, Any]:
  """Reads the manifest and checks the types and ranges of its values."""
  try:
    manifest = json.loads(text.tobytes())
  except (ValueError, RecursionError) as error:
    raise ReplayError(f"{path}: manifest: expected JSON, found {text.tobytes()[:40]!r}") from error
  if not isinstance(manifest, dict):
    raise ReplayError(f"{path}: manifest: expected an object, found {type(manifest).__name__}")
  _expect(path, "schema", SCHEMA, manifest.get("schema"))
  version = manifest.get(_PREDICTIONS, PREDICTIONS_VERSION)
  _expect(path, f"type of {_PREDICTIONS}", "int", type(version).__name__)
  _expect(path, f"version of {_PREDICTIONS}", PREDICTIONS_VERSION, version)
  _expect(path, "keys of the manifest", sorted(_MANIFEST), sorted({*manifest} - {_PREDICTIONS}))
  for key in _MANIFEST:
    _check_type(path, key, manifest[key])
  if manifest["tier"] not in tiers.TIERS:
    raise ReplayError(f"{path}: tier: expected one of {', '.join(tiers.TIERS)}, found "
                      f"{manifest['tier']!r}")
  try:
    tables.make_rules(*(manifest[name] for name in GameConfig._fields))
  except ValueError as error:
    raise ReplayError(f"{path}: sizes: {error}") from error
  loops = tiers.TIERS[manifest["tier"]].loop_limit
  _check_ranges(path, manifest, {
    "steps": (0, loops // constants.LOOPS_PER_STEP + 1), "winner": (UNFINISHED, 2)})
  _check_items(path, "hashes", manifest["hashes"], str, len(hash_steps(manifest["steps"])))
  _check_start(path, manifest)
  return manifest


def _check_type(path: Any, key: str, found: Any) -> None:
  """Checks the type of a value of the manifest, and its texts."""
  kind = _MANIFEST[key]
  _expect(path, f"type of {key}", kind.__name__, type(found).__name__)
  for text in found if kind is list else [found]:
    if isinstance(text, str) and len(text) > _MOST_CHARACTERS:
      raise ReplayError(f"{path}: {key}: expected at most {_MOST_CHARACTERS} characters, found "
                        f"{len(text)}")
    if isinstance(text, str) and not text.isprintable():  # a terminal would obey it
      raise ReplayError(f"{path}: {key}: expected printable characters, found {text!r}")


def _check_items(path: Any, key: str, found: list[Any], kind: type, length: int) -> None:
  """Checks the length of a list of the manifest, and the type of its items."""
  kinds = "/".join(sorted({type(value).__name__ for value in found}))
  _expect(path, key, f"{length} of {kind.__name__}", f"{len(found)} of {kinds}")


def _check_ranges(path: Any, manifest: Mapping[str, Any],
                  ranges: Mapping[str, tuple[int, int]]) -> None:
  """Checks numbers, and lists of numbers, of a manifest."""
  for key, (low, high) in ranges.items():
    for value in np.atleast_1d(np.array(manifest[key], object)):
      if not low <= value <= high:
        raise ReplayError(f"{path}: {key}: expected {low} to {high}, found {value}")


def _specs(game: GameConfig, steps: int) -> dict[str, arrays.Spec]:
  """Returns what the arrays of a replay must be."""
  most = types.Action(
    function=vocabulary.NUM_FUNCTIONS - 1, delay=types.MAX_DELAY, queued=1, repeat=_MOST_REPEAT,
    units=game.max_entities, target_unit=game.max_entities, location=game.location_size ** 2 - 1)
  specs = {**_HEAD, "step": arrays.Spec(np.int32, ("actions",), 0, max(0, steps - 1)),
           "player": arrays.Spec(np.uint8, ("actions",), 0, 1)}
  for (name, spec), high in zip(
      types.action_spec(game.max_selected)._asdict().items(), most, strict=True):
    specs[f"action.{name}"] = arrays.Spec(spec.dtype, ("actions", *spec.shape), 0, high)
  for name, spec in types.statistics_spec()._asdict().items():
    specs[f"z.{name}"] = arrays.Spec(spec.dtype, (2, *spec.shape))
  return specs


def _check_actions(path: Any, replay: Replay) -> None:
  """Checks that actions are in order, one per player and step."""
  if np.any(np.diff(2 * replay.step.astype(np.int64) + replay.player) <= 0):
    raise ReplayError(f"{path}: step: expected ascending steps, one action per player and step")


def _prediction_specs(game: GameConfig, steps: int) -> dict[str, arrays.Spec]:
  """Returns what the arrays of predictions must be."""
  last = max(0, 2 * steps - 1)
  specs = {f"{_PREDICTIONS}.action": arrays.Spec(np.int32, ("predictions",), 0, last)}
  for (name, spec), (low, high) in zip(
      agent_predictions.predictions_spec()._asdict().items(),
      agent_predictions.bounds(game.max_entities, game.location_size), strict=True):
    specs[f"{_PREDICTIONS}.{name}"] = arrays.Spec(
      spec.dtype, ("predictions", *spec.shape), low, high)
  return specs


def _predicted(found: dict[str, np.ndarray]) -> Predicted | None:
  """Returns the predictions among the arrays of a file."""
  if f"{_PREDICTIONS}.action" not in found:
    return None
  return Predicted(found[f"{_PREDICTIONS}.action"], Predictions(
    *(found[f"{_PREDICTIONS}.{name}"] for name in Predictions._fields)))


def _check_predictions(path: Any, actions: int, predicted: Predicted) -> None:
  """Checks that predictions belong to actions, and that their probabilities are some."""
  indices = predicted.action
  if np.any(np.diff(indices) <= 0) or np.any(indices[-1:] >= actions):
    raise ReplayError(f"{path}: {_PREDICTIONS}.action: expected ascending indices of {actions} "
                      f"actions, found {indices.tolist()!s:.80}")
  for name, values in predicted.predictions._asdict().items():
    if not name.endswith("_probs"):
      continue
    rising = np.argwhere(np.diff(values.astype(np.int64)) > 0)
    if rising.size:
      row, place = rising[0]
      raise ReplayError(f"{path}: {_PREDICTIONS}.{name}[{row}, {place + 1}]: expected at most "
                        f"{values[row, place]}, found {values[row, place + 1]}")
    most = agent_predictions.PROBABILITY_SCALE + values.shape[1] / 2  # each is rounded
    sums = values.sum(axis=1, dtype=np.int64)
    if name != "unit_probs" and np.any(sums > most):  # those are of several picks
      raise ReplayError(f"{path}: {_PREDICTIONS}.{name}: expected a sum of at most {most:.0f}, "
                        f"found {sums.max()}")
