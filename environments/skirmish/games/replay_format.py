"""Replays of Skirmish and their file format: a NumPy .npz of a few KB, written atomically.

The array `manifest` is JSON and holds all scalars and names. `step`, `player` and `action.FIELD`
hold the actions, one row each. `z.FIELD` hold both players' z. Nothing is pickled.
"""

import json
import os
import pathlib
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments import base
from starleague.environments.skirmish.rules.tables import tables, tiers
from starleague.environments.skirmish.rules.tables.tables import GameConfig

SCHEMA = 2
STEPS_PER_HASH = 256
UNFINISHED = -1
MOST_INCOME = 1000  # percent
MOST_STEPS = 2 ** 20  # far more than in any game: a damaged number must not fill the memory
MOST_SEED = 2 ** 31 - 1


class ReplayError(UserError, ValueError):
  """A replay cannot be used; the message states the values expected and found."""


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


# Keys of the manifest and their types; schema comes first.
_MANIFEST = {
  "schema": int, **GameConfig.__annotations__, "seed": int, "players": list, "races": list,
  "map_index": int, "swap_sides": bool, "mmr": list, "income": list, "steps": int, "winner": int,
  "hashes": list, "rules": str, "recorded_with": str}


def hash_steps(steps: int) -> tuple[int, ...]:
  """Returns the numbers of steps after which the state of a game is hashed."""
  return *range(0, steps, STEPS_PER_HASH), steps


def save(path: str | os.PathLike[str], replay: Replay) -> pathlib.Path:
  """Writes a replay atomically: readers find the old file or the complete new one."""
  path, match_up = pathlib.Path(path), replay.match_up
  manifest = {
    "schema": SCHEMA, **replay.game._asdict(), "seed": replay.seed, "players": replay.players,
    "races": np.asarray(match_up.races).tolist(), "map_index": int(match_up.map_index),
    "swap_sides": bool(match_up.swap_sides), "mmr": np.asarray(match_up.mmr).tolist(),
    "income": np.asarray(match_up.income).tolist(), "steps": replay.steps, "winner": replay.winner,
    "hashes": replay.hashes, "rules": replay.rules, "recorded_with": replay.recorded_with}
  arrays = {
    "manifest": np.frombuffer(json.dumps(manifest).encode(), np.uint8),
    "step": replay.step, "player": replay.player,
    **{f"action.{name}": values for name, values in replay.actions._asdict().items()},
    **{f"z.{name}": values for name, values in match_up.z._asdict().items()}}
  with files.replacing(path, "wb") as file:
    np.savez_compressed(file, **arrays)
  return path


def load(path: str | os.PathLike[str]) -> Replay:
  """Reads a replay and checks its format; `replays.resimulate` checks the game itself.

  Raises:
    OSError: the file cannot be read.
    ReplayError: the file is damaged, has another schema or tier, or is no replay.
  """
  arrays = _arrays(path)
  manifest = _manifest(path, arrays)
  game = GameConfig(*(manifest[name] for name in GameConfig._fields))
  _check_arrays(path, arrays, game)
  replay = Replay(
    game=game, seed=manifest["seed"], players=tuple(manifest["players"]),
    match_up=base.make_match_up(
      manifest["races"], manifest["map_index"], manifest["swap_sides"],
      types.Statistics(*(arrays[f"z.{name}"] for name in types.Statistics._fields)),
      manifest["mmr"], manifest["income"]),
    steps=manifest["steps"], winner=manifest["winner"], step=arrays["step"],
    player=arrays["player"],
    actions=types.Action(*(arrays[f"action.{name}"] for name in types.Action._fields)),
    hashes=tuple(manifest["hashes"]), rules=manifest["rules"],
    recorded_with=manifest["recorded_with"])
  _check_actions(path, replay)
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
    raise ReplayError(f"{path}: {what}: expected {expected}, found {found}")


def _arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """Reads the file's arrays, after a test of its checksums."""
  if not zipfile.is_zipfile(path):
    with open(path, "rb") as file:  # raises if there is no such file
      start = file.read(4)
    raise ReplayError(f"{path}: not a replay, or truncated: expected a .npz file, found one that "
                      f"begins with {start!r} and has no zip directory at its end")
  try:
    with zipfile.ZipFile(path) as archive:
      broken = archive.testzip()
    if broken is not None:
      raise ReplayError(f"{path}: damaged: the checksum of {broken} does not match")
    with np.load(path, allow_pickle=False) as file:
      return {name: file[name] for name in file.files}
  except (ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile,
          zlib.error, OSError) as error:
    if isinstance(error, ReplayError):
      raise
    raise ReplayError(f"{path}: damaged, or not a replay: {error}") from error


def _manifest(path: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
  """Reads the manifest and checks the types and ranges of its values."""
  if "manifest" not in arrays:
    raise ReplayError(f"{path}: not a replay: expected an array 'manifest', found {sorted(arrays)}")
  try:
    manifest = json.loads(arrays["manifest"].tobytes())
  except ValueError as error:
    raise ReplayError(f"{path}: manifest: expected JSON: {error}") from error
  if not isinstance(manifest, dict):
    raise ReplayError(f"{path}: manifest: expected an object, found {type(manifest).__name__}")
  _expect(path, "schema", SCHEMA, manifest.get("schema"))
  _expect(path, "keys of the manifest", sorted(_MANIFEST), sorted(manifest))
  for key, kind in _MANIFEST.items():
    _expect(path, f"type of {key}", kind.__name__, type(manifest[key]).__name__)
  if manifest["tier"] not in tiers.TIERS:
    raise ReplayError(f"{path}: tier: expected one of {', '.join(tiers.TIERS)}, found "
                      f"{manifest['tier']!r}")
  try:
    tables.make_rules(*(manifest[name] for name in GameConfig._fields))
  except ValueError as error:
    raise ReplayError(f"{path}: sizes: {error}") from error
  for key, low, high in (
      ("steps", 0, MOST_STEPS), ("winner", UNFINISHED, 2), ("seed", 0, MOST_SEED),
      ("races", 0, len(types.RACES) - 1), ("map_index", 0, 2 ** 31 - 1), ("mmr", 0, 2 ** 15 - 1),
      ("income", 0, MOST_INCOME)):
    for value in np.atleast_1d(manifest[key]):
      if not low <= value <= high:
        raise ReplayError(f"{path}: {key}: expected {low} to {high}, found {value}")
  for key, kind, length in (("players", str, 2), ("races", int, 2), ("mmr", int, 2),
                            ("income", int, 2),
                            ("hashes", str, len(hash_steps(manifest["steps"])))):
    _expect(path, key, f"{length} of {kind.__name__}",
            f"{len(manifest[key])} of "
            f"{'/'.join(sorted({type(value).__name__ for value in manifest[key]}))}")
  return manifest


def _check_arrays(path: Any, arrays: dict[str, np.ndarray], game: GameConfig) -> None:
  """Checks names, dtypes and shapes of the arrays."""
  count = len(np.atleast_1d(arrays.get("step", ())))
  expected = {"manifest": arrays["manifest"], "step": np.zeros(count, np.int32),
              "player": np.zeros(count, np.uint8)}
  for name, spec in types.action_spec(game.max_selected)._asdict().items():
    expected[f"action.{name}"] = np.zeros((count, *spec.shape), spec.dtype)
  for name, spec in types.statistics_spec()._asdict().items():
    expected[f"z.{name}"] = np.zeros((2, *spec.shape), spec.dtype)
  _expect(path, "arrays", sorted(expected), sorted(arrays))
  for name, like in expected.items():
    _expect(path, name, f"{like.dtype}{list(like.shape)}",
            f"{arrays[name].dtype}{list(arrays[name].shape)}")


def _check_actions(path: Any, replay: Replay) -> None:
  """Checks that each action belongs to a step of the game, one per player and step."""
  if replay.step.size and not (0 <= replay.step.min() and replay.step.max() < replay.steps):
    raise ReplayError(f"{path}: step: expected 0 to {replay.steps - 1}, found {replay.step.min()} "
                      f"to {replay.step.max()}")
  if np.any(replay.player > 1):
    raise ReplayError(f"{path}: player: expected 0 or 1, found {replay.player.max()}")
  if np.any(np.diff(2 * replay.step.astype(np.int64) + replay.player) <= 0):
    raise ReplayError(f"{path}: step: expected ascending steps, one action per player and step")
  function = replay.actions.function
  wrong = function[(function < 0) | (function >= vocabulary.NUM_FUNCTIONS)]
  if wrong.size:
    raise ReplayError(f"{path}: action.function: expected 0 to {vocabulary.NUM_FUNCTIONS - 1}, "
                      f"found {wrong[0]}")
