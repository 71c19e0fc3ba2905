"""The reader of arrays: every kind of damage is one line with file, array and both sides."""

import re
import resource
import tracemalloc
import zipfile

import numpy as np
import pytest

from starleague.common import arrays
from tests.common import damage

SPECS = {
  "count": arrays.Spec(np.int64, ()), "names": arrays.Spec(arrays.TEXT, ("names",)),
  "game": arrays.Spec(np.int32, ("games",)), "race": arrays.Spec(np.uint8, ("games",), 0, 4),
  "done": arrays.Spec(np.bool_, ("games", 3)),
  "weight": arrays.Spec(np.float32, (2, 3), -5, 5)}
MOST = {"games": 10, "names": 10}
ARRAYS = {
  "count": np.array(7), "names": np.array(["one", "two"]), "game": np.arange(3, dtype=np.int32),
  "race": np.uint8([0, 4, 2]),
  "done": np.eye(3, dtype=bool), "weight": np.arange(6, dtype=np.float32).reshape(2, 3) - 3}


@pytest.fixture
def path(tmp_path):
  np.savez_compressed(tmp_path / "a.npz", **ARRAYS)
  return tmp_path / "a.npz"


def read(path, **options):
  return arrays.read(path, SPECS, MOST, **options)


def test_sound_arrays_are_read(path):
  found = read(path)
  assert list(found) == list(SPECS)
  for name, expected in ARRAYS.items():
    assert found[name].dtype == expected.dtype and found[name].flags.writeable
    np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_orders_of_axes(tmp_path, save):
  array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
  save(tmp_path / "a.npz", weight=array, other=array)
  found = arrays.read(tmp_path / "a.npz", {"weight": arrays.Spec(np.float32, (2, 3))}, others=True)
  assert list(found) == ["weight"]
  np.testing.assert_array_equal(found["weight"], [[0, 1, 2], [3, 4, 5]])


def test_empty_axes(path):
  empty = {"race": np.zeros(0, np.uint8), "done": np.zeros((0, 3), bool),
           "names": np.zeros(0, "U1"),
           "game": np.zeros(0, np.int32)}
  np.savez(path, **ARRAYS | empty)
  assert read(path)["done"].shape == (0, 3)


@pytest.mark.parametrize("kind", damage.KINDS)
@pytest.mark.parametrize("name", ["race", "done", "weight"])
def test_damaged_files_are_rejected(path, kind, name):
  damage.KINDS[kind](path, name)
  with pytest.raises(arrays.ArraysError) as error:
    read(path)
  damage.check_message(str(error.value), path, name if kind in damage.OF_ARRAYS else "")


def test_a_missing_file(tmp_path):
  with pytest.raises(FileNotFoundError, match=r"a\.npz"):
    read(tmp_path / "a.npz")


@pytest.mark.parametrize(("name", "array", "message"), [
  ("race", np.uint8([0, 5, 6]), "race[1]: expected 0 to 4, found 5"),
  ("weight", np.full((2, 3), -6, np.float32), "weight[0, 0]: expected -5 to 5, found -6.0"),
  ("weight", np.float32([[0, 0, 0], [0, np.nan, np.inf]]),
   "weight[1, 1]: expected finite numbers, found nan"),
  ("weight", np.float32([[0, 0, -np.inf], [0, 0, 0]]),
   "weight[0, 2]: expected finite numbers, found -inf"),
  ("done", np.full((3, 3), 7, np.uint8).view(bool), "done[0, 0]: expected bytes 0 or 1, found 7"),
  ("names", np.uint32([[65, 66], [65, 0xD800]]).view("<U2")[:, 0],
   "names[1]: expected text of Unicode characters, found others"),
  ("names", np.uint32([[0x110000]]).view("<U1")[:, 0],
   "names[0]: expected text of Unicode characters, found others"),
  ("names", np.array(["x" * 1025]), "names: expected text of at most 1024 characters, found 1025"),
  ("game", np.zeros(11, np.int32), "game: expected 0 to 10 along axis 0, found int32[11]"),
  ("done", np.zeros((4, 3), bool), "done: expected bool[3, 3] as game has, found bool[4, 3]"),
  ("done", np.zeros((3, 4), bool), "done: expected bool[3, 3] as game has, found bool[3, 4]"),
  ("weight", np.zeros(3, np.float32), "weight: expected float32[2, 3], found float32[3]"),
  ("count", np.array(7.0), "count: expected int64[], found float64[]"),
])
def test_other_arrays_are_rejected(path, name, array, message):
  np.savez(path, **ARRAYS | {name: array})
  with pytest.raises(arrays.ArraysError, match=re.escape(f"{path}: {message}") + "$"):
    read(path)


def test_a_float64_beyond_the_range_of_float32_is_finite(path):
  np.savez(path, x=np.float64([1e39, -1e300]))
  found = arrays.read(path, {"x": arrays.Spec(np.float64, (2,))})
  assert found["x"].tolist() == [1e39, -1e300]


def test_names_of_arrays_are_checked(path):
  np.savez(path, **{f"a{i:054d}": np.zeros(1) for i in range(5)})
  with pytest.raises(arrays.ArraysError, match=(
      "count: expected an array of this name, found a0{54}, a0{53}1, a0{53}2 and 2 others$")):
    read(path)
  with zipfile.ZipFile(path, "a") as archive:
    archive.writestr("line\nbreak.npy", b"")
  with pytest.raises(arrays.ArraysError, match=r"^[^\n]*'line\\nbreak': expected no array"):
    arrays.read(path, {f"a{i:054d}": arrays.Spec(np.float64, (1,)) for i in range(5)})


def test_claimed_sizes_take_no_memory(path):
  """A file that claims or decompresses to 128 MB is rejected with less than 2 MB of memory."""
  for kind in ("huge", "claimed size", "claimed shape"):
    np.savez_compressed(path, **ARRAYS)
    damage.KINDS[kind](path, "weight")
    tracemalloc.start()
    with pytest.raises(arrays.ArraysError, match="weight: expected"):
      read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6, kind


def test_reading_is_bounded_by_the_specs(path):
  """Data past what the zip directory says are not read, and too few are damage."""
  data = damage.members(path)
  damage.write(path, data | {"weight": data["weight"] + bytes(2 ** 27)})
  damage.directory_field(24, "<I", len(data["weight"]))(path, "weight")
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  with pytest.raises(arrays.ArraysError, match="weight: expected an array in the .npy format with"):
    read(path)
  assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize(("spec", "text"), [
  (arrays.Spec(np.uint8, (5, 256)), "uint8[5, 256]"), (arrays.Spec(arrays.TEXT, ()), "text[]")])
def test_describing(spec, text):
  assert arrays.describe(spec.dtype, spec.shape) == text
