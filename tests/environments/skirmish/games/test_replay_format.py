"""The file format of replays: other formats and damaged files are rejected."""

import json

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.games import replays
from tests.common import damage
from tests.environments.skirmish.games.trees import assert_equal


def rewrite(path, changes=None, **arrays):
  """Changes the contents of a replay's file; None removes an array."""
  with np.load(path) as file:
    found = dict(file)
  if changes is not None:
    manifest = json.loads(found["manifest"].tobytes()) | changes
    found["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
  found |= arrays
  np.savez_compressed(path, **{name: x for name, x in found.items() if x is not None})


@pytest.mark.parametrize(("changes", "arrays", "message"), [
  ({"schema": 1}, {}, r"schema: expected 2, found 1$"),
  ({"tier": "huge"}, {}, r"tier: expected one of .*mini.*, found 'huge'$"),
  ({"max_entities": 8}, {}, "sizes: tier mini: max_entities is 8"),
  ({"seed": "3"}, {}, "type of seed: expected int, found str$"),
  ({"extra": 1}, {}, "keys of the manifest: expected .*'winner'.*, found .*'extra'"),
  ({"players": ["one"]}, {}, "players: expected 2 of str, found 1 of str$"),
  ({"hashes": []}, {}, r"hashes: expected \d of str, found 0 of "),
  ({"steps": -1}, {}, "steps: expected 0 to 561, found -1$"),
  ({"races": [1, 9]}, {}, "races: expected 0 to 4, found 9$"),
  ({"income": [100, -5]}, {}, "income: expected 0 to 1000, found -5$"),
  ({"mmr": [6200]}, {}, "mmr: expected 2 of int, found 1 of int$"),
  ({"steps": 300, "hashes": ["0" * 64] * 3}, {}, r"step\[\d+\]: expected 0 to 299, found \d+$"),
  ({"steps": 562}, {}, "steps: expected 0 to 561, found 562$"),
  ({"steps": 10 ** 6}, {}, "steps: expected 0 to 561, found 1000000$"),
  ({"max_entities": 10 ** 6}, {}, "max_entities is 1000000, expected 36 to 2048$"),
  ({"map_size": 32 * 10 ** 6}, {}, "sizes: tier mini: map_size is 32000000, expected 32 to 512$"),
  ({"map_size": 0}, {}, "sizes: tier mini: map_size is 0, expected 32 to 512$"),
  ({"location_size": 10 ** 6}, {}, "location_size is 1000000, expected 1 to 1024$"),
  ({"location_size": -1}, {}, "location_size is -1, expected 1 to 1024$"),
  ({"max_selected": 10 ** 6}, {}, "max_selected is 1000000, expected 1 to 256$"),
  ({"max_selected": 0}, {}, "max_selected is 0, expected 1 to 256$"),
  ({"races": [[1, 2], 1]}, {}, "races: expected 2 of int, found 2 of int/list$"),
  ({"races": ["terran", 1]}, {}, "races: expected 2 of int, found 2 of int/str$"),
  ({"mmr": [1, True]}, {}, "mmr: expected 2 of int, found 2 of bool/int$"),
  ({"income": [100, float("nan")]}, {}, "income: expected 2 of int, found 2 of float/int$"),
  ({"seed": 2 ** 31}, {}, "seed: expected 0 to 2147483647, found 2147483648$"),
  ({"rules": "x" * 201}, {}, "rules: expected at most 200 characters, found 201$"),
  ({"players": ["one", "x" * 201]}, {}, "players: expected at most 200 characters, found 201$"),
  ({"players": ["one", "\x1b[31mtwo\n"]}, {},
   r"players: expected printable characters, found '\\x1b\[31mtwo\\n'$"),
  ({"recorded_with": "\x9b2J"}, {},
   r"recorded_with: expected printable characters, found '\\x9b2J'$"),
  (None, {"player": None}, "player: expected an array of this name, found "),
  (None, {"manifest": None}, "manifest: expected an array of this name, found "),
  (None, {"manifest": np.zeros(2 ** 20 + 1, np.uint8)},
   r"manifest: expected 0 to 1048576 along axis 0, found uint8\[1048577\]$"),
  (None, {"manifest": np.frombuffer(b"[" * 10 ** 6, np.uint8)},
   "manifest: expected JSON, found b'"),
  (None, {"manifest": np.frombuffer(b"{", np.uint8)}, "manifest: expected JSON"),
  (None, {"manifest": np.frombuffer(b"[]", np.uint8)}, "manifest: expected an object, found list$"),
  (None, {"step": np.zeros(2, np.float32)}, r"step: expected int32\[2\], found float32\[2\]$"),
  (None, {"action.delay": np.zeros(1, np.int16)},
   r"action.delay: expected int16\[\d+\] as step has, found int16\[1\]$"),
  (None, {"z.units": np.array({}, object)},
   r"z.units: expected bool\[2, 256\], found objects\[\]$"),
])
def test_files_of_another_format_are_rejected(path, changes, arrays, message):
  rewrite(path, changes, **arrays)
  with pytest.raises(replays.ReplayError, match=message) as raised:
    replays.load(path)
  assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("field", "value", "message"), [
  ("player", 2, r"player\[\d+\]: expected 0 to 1, found 2$"),
  ("step", -1, r"step\[\d+\]: expected 0 to \d+, found -1$"),
  ("action.delay", 128, r"action.delay\[\d+\]: expected 0 to 127, found 128$"),
  ("action.queued", 2, r"action.queued\[\d+\]: expected 0 to 1, found 2$"),
  ("action.repeat", 3, r"action.repeat\[\d+\]: expected 0 to 2, found 3$"),
  ("action.units", 65, r"action.units\[\d+, 0\]: expected 0 to 64, found 65$"),
  ("action.target_unit", -1, r"action.target_unit\[\d+\]: expected 0 to 64, found -1$"),
  ("action.location", 1024, r"action.location\[\d+\]: expected 0 to 1023, found 1024$"),
  ("step", 0, "step: expected ascending steps, one action per player and step$"),
  ("action.function", vocabulary.NUM_FUNCTIONS,
   r"action.function\[\d+\]: expected 0 to 326, found 327$")])
def test_invalid_actions_are_rejected(path, field, value, message):
  with np.load(path) as file:
    values = file[field]
  values[-1] = value
  rewrite(path, **{field: values})
  with pytest.raises(replays.ReplayError, match=message):
    replays.load(path)


@pytest.mark.parametrize("kind", damage.KINDS)
@pytest.mark.parametrize("name", ["player", "action.units", "z.units"])
def test_every_kind_of_damage_is_one_line(path, kind, name):
  damage.KINDS[kind](path, name)
  with pytest.raises(replays.ReplayError) as error:
    replays.load(path)
  damage.check_message(str(error.value), path, name if kind in damage.OF_ARRAYS else "")


def test_damaged_files_are_rejected(replay, path):
  """With any byte changed, the file is rejected or its contents are unchanged."""
  sound, rejected = path.read_bytes(), 0
  for place in range(0, len(sound), 11):
    path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1:])
    try:
      loaded = replays.load(path)
    except replays.ReplayError as error:
      assert str(error).startswith(f"{path}: ")
      rejected += 1
    else:
      assert_equal(replay, loaded)
  assert rejected > 0.6 * len(range(0, len(sound), 11))  # the other bytes are never read
  with pytest.raises(FileNotFoundError):
    replays.load(path.with_name("none.npz"))


def test_a_failed_save_keeps_the_old_file(replay, path, monkeypatch):
  before = path.read_bytes()
  monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: file.write(b"half") / 0)
  with pytest.raises(ZeroDivisionError):
    replays.save(path, replay)
  assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["game.npz"]


def test_predictions_are_an_optional_block(replay, path, predicted_path):
  with np.load(path) as file:
    assert not [name for name in file if name.startswith("predictions")]
    assert "predictions" not in json.loads(file["manifest"].tobytes())
  assert replays.load(path).predicted is None
  loaded = replays.load(predicted_path)
  assert loaded.predicted.action.shape == (20,)
  assert np.all(replay.player[loaded.predicted.action] == 1)
  assert_equal(loaded._replace(predicted=None), replay)
  second = replays.save(predicted_path.with_name("second.npz"), loaded)
  assert second.read_bytes() == predicted_path.read_bytes()
  states = replays.resimulate(loaded)
  assert states.loop[-1] == 8 * replay.steps


@pytest.mark.parametrize(("changes", "arrays", "message"), [
  ({"predictions": 2}, {}, "version of predictions: expected 1, found 2$"),
  ({"predictions": "1"}, {}, "type of predictions: expected int, found str$"),
  ({"predictions": True}, {}, "type of predictions: expected int, found bool$"),
  (None, {"predictions.value": None},
   "predictions.value: expected an array of this name, found "),
  (None, {"predictions.cells": np.zeros((20, 32), np.int16)},
   r"predictions.cells: expected int32\[20, 32\] .*found int16\[20, 32\]$"),
  (None, {"predictions.units": np.zeros((19, 8), np.int16)},
   r"predictions.units: expected int16\[20, 8\] .*found int16\[19, 8\]$")])
def test_predictions_of_another_format_are_rejected(predicted_path, changes, arrays, message):
  rewrite(predicted_path, changes, **arrays)
  with pytest.raises(replays.ReplayError, match=message) as raised:
    replays.load(predicted_path)
  assert str(raised.value).startswith(f"{predicted_path}: ")


@pytest.mark.parametrize(("field", "place", "value", "message"), [
  ("value", 3, -32768, r"value\[3\]: expected -32767 to 32767, found -32768$"),
  ("functions", (3, 1), 327, r"functions\[3, 1\]: expected 0 to 326, found 327$"),
  ("units", (3, 1), 64, r"units\[3, 1\]: expected 0 to 63, found 64$"),
  ("targets", (3, 1), -1, r"targets\[3, 1\]: expected 0 to 63, found -1$"),
  ("cells", (3, 1), 1024, r"cells\[3, 1\]: expected 0 to 1023, found 1024$"),
  ("camera", (3, 1), 257, r"camera\[3, 1\]: expected 0 to 256, found 257$"),
  ("unit_probs", (3, 7), 65535, r"unit_probs\[3, 7\]: expected at most \d+, found 65535$"),
  ("function_probs", 3, 60000, r"function_probs: expected a sum of at most 65538, found 300000$"),
  ("action", 0, -1, r"action\[0\]: expected 0 to \d+, found -1$"),
  ("action", 1, 0, r"action: expected ascending indices of \d+ actions, found \["),
  ("action", 19, 10 ** 6, r"action\[19\]: expected 0 to \d+, found 1000000$")])
def test_invalid_predictions_are_rejected(predicted_path, field, place, value, message):
  with np.load(predicted_path) as file:
    values = file[f"predictions.{field}"]
  values[place] = value
  rewrite(predicted_path, **{f"predictions.{field}": values})
  with pytest.raises(replays.ReplayError, match=f"predictions.{message}"):
    replays.load(predicted_path)


def test_arrays_of_predictions_without_their_version_are_rejected(predicted_path):
  with np.load(predicted_path) as file:
    manifest = json.loads(file["manifest"].tobytes())
  del manifest["predictions"]
  rewrite(predicted_path, manifest=np.frombuffer(json.dumps(manifest).encode(), np.uint8))
  message = "predictions.action: expected no array of this name"
  with pytest.raises(replays.ReplayError, match=message):
    replays.load(predicted_path)


@pytest.mark.parametrize("kind", damage.KINDS)
def test_every_kind_of_damage_to_predictions_is_one_line(predicted_path, kind):
  name = "predictions.units"
  damage.KINDS[kind](predicted_path, name)
  with pytest.raises(replays.ReplayError) as error:
    replays.load(predicted_path)
  damage.check_message(str(error.value), predicted_path, name if kind in damage.OF_ARRAYS else "")
