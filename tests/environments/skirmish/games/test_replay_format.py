"""The file format of replays: other formats and damaged files are rejected."""

import json

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.games import replays
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
  ({"steps": -1}, {}, "steps: expected 0 to 1048576, found -1$"),
  ({"races": [1, 9]}, {}, "races: expected 0 to 4, found 9$"),
  ({"income": [100, -5]}, {}, "income: expected 0 to 1000, found -5$"),
  ({"mmr": [6200]}, {}, "mmr: expected 2 of int, found 1 of int$"),
  ({"steps": 300, "hashes": ["0" * 64] * 3}, {}, "step: expected 0 to 299, found 0 to"),
  (None, {"player": None}, "arrays: expected .*'player'.*, found "),
  (None, {"manifest": None}, "not a replay: expected an array 'manifest', found "),
  (None, {"manifest": np.frombuffer(b"{", np.uint8)}, "manifest: expected JSON"),
  (None, {"manifest": np.frombuffer(b"[]", np.uint8)}, "manifest: expected an object, found list$"),
  (None, {"step": np.zeros(2, np.float32)}, r"step: expected int32\[2\], found float32\[2\]$"),
  (None, {"action.delay": np.zeros(1, np.int16)},
   r"action.delay: expected int16\[\d+\], found int16\[1\]$"),
  (None, {"z.units": np.array({}, object)}, "damaged, or not a replay: Object arrays cannot"),
])
def test_files_of_another_format_are_rejected(path, changes, arrays, message):
  rewrite(path, changes, **arrays)
  with pytest.raises(replays.ReplayError, match=message) as raised:
    replays.load(path)
  assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("field", "value", "message"), [
  ("player", 2, "player: expected 0 or 1, found 2$"),
  ("step", 0, "step: expected ascending steps, one action per player and step$"),
  ("action.function", vocabulary.NUM_FUNCTIONS, "action.function: expected 0 to 326, found 327$")])
def test_invalid_actions_are_rejected(path, field, value, message):
  with np.load(path) as file:
    values = file[field]
  values[-1] = value
  rewrite(path, **{field: values})
  with pytest.raises(replays.ReplayError, match=message):
    replays.load(path)


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
  path.write_bytes(sound[:len(sound) // 2])
  with pytest.raises(replays.ReplayError, match=r"not a replay, or truncated: .* begins with b'PK"):
    replays.load(path)
  path.write_bytes(b"")
  with pytest.raises(replays.ReplayError, match="not a replay, or truncated"):
    replays.load(path)
  with pytest.raises(FileNotFoundError):
    replays.load(path.with_name("none.npz"))


def test_a_failed_save_keeps_the_old_file(replay, path, monkeypatch):
  before = path.read_bytes()
  monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: file.write(b"half") / 0)
  with pytest.raises(ZeroDivisionError):
    replays.save(path, replay)
  assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["game.npz"]
