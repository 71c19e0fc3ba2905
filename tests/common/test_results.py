"""The results file: rows round-trip, incomplete lines are ignored, other files are refused."""

import math
import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starleague.common import disk, results
from starleague.common.results import Row


def test_lines_are_as_documented(tmp_path):
  path = tmp_path / "results.csv"
  results.append(path, [
    Row(61.2041, 128, "loss/policy", -0.0312),
    Row(61.2041, 128, "score/eval/weak army", 0.625, 0.481, 0.75)])
  assert path.read_text() == (
    "seconds,update,tag,value,low,high\n"
    "61.204,128,loss/policy,-0.0312,,\n"
    "61.204,128,score/eval/weak army,0.625,0.481,0.75\n")
  assert results.read(path) == [
    Row(61.204, 128, "loss/policy", -0.0312, None, None),
    Row(61.204, 128, "score/eval/weak army", 0.625, 0.481, 0.75)]


def test_a_follower_returns_each_row_once(tmp_path):
  path = tmp_path / "results.csv"
  follower = results.Follower(path)
  assert follower.read() == []
  rows = [Row(float(i), i, "loss/total", float(i)) for i in range(4)]
  results.append(path, rows[:2])
  assert follower.read() == rows[:2]
  assert follower.read() == []
  with open(path, "a") as file:
    file.write("9.000,9,loss/to")  # torn by a crash; the next writer removes it
  assert follower.read() == []
  results.append(path, rows[2:])
  assert follower.read() == rows[2:]
  with open(path, "a") as file:
    file.write("rubbish\n")
  with pytest.raises(ValueError, match="results.csv:6: expected 6 fields"):
    follower.read()


def test_a_follower_of_another_file_raises(tmp_path):
  (tmp_path / "results.csv").write_text("a,b\n1,2\n")
  with pytest.raises(ValueError, match="not a results file"):
    results.Follower(tmp_path / "results.csv").read()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(
  st.floats(0, 1e7), st.integers(0, 10**9), st.sampled_from(["loss/total", "kl/delay", "x/é"]),
  st.floats(width=32)).map(lambda fields: Row(*fields))))
def test_float32_values_round_trip_exactly(tmp_path_factory, rows):
  path = tmp_path_factory.mktemp("results") / "results.csv"
  results.append(path, rows)
  if not rows:
    assert not path.exists()
    return
  found = results.read(path)
  np.testing.assert_array_equal(
    np.float32([row.value for row in found]), np.float32([row.value for row in rows]))
  assert [row[1:3] for row in found] == [row[1:3] for row in rows]
  np.testing.assert_allclose(
    [row.seconds for row in found], [row.seconds for row in rows], atol=5.1e-4)


@pytest.mark.parametrize("kept", range(1, 40))
def test_incomplete_last_line_is_ignored_then_overwritten(tmp_path, kept):
  path = tmp_path / "results.csv"
  first, second, third = (Row(float(i), i, f"loss/{i}", i / 4) for i in (1, 2, 3))
  results.append(path, [first])
  whole = path.read_bytes()
  results.append(path, [second])
  line = path.read_bytes()[len(whole):]
  path.write_bytes(whole + line[:min(kept, len(line) - 1)])
  assert results.read(path) == [first]
  results.append(path, [third])
  assert results.read(path) == [first, third]


@pytest.mark.parametrize("kept", [0, 1, 20, len(results.HEADER)])
def test_incomplete_header_gives_no_rows_then_is_overwritten(tmp_path, kept):
  path = tmp_path / "results.csv"
  path.write_text(results.HEADER[:kept])
  assert results.read(path) == []
  results.append(path, [Row(1.0, 1, "a/b", 2.0)])
  assert results.read(path) == [Row(1.0, 1, "a/b", 2.0)]


@pytest.mark.parametrize("text", ["step,loss\n1,2\n", "hello", results.HEADER + ",more\n"])
def test_other_files_are_refused_and_unchanged(tmp_path, text):
  path = tmp_path / "results.csv"
  path.write_text(text)
  with pytest.raises(ValueError, match="results.csv: not a results file: expected the first line"):
    results.read(path)
  with pytest.raises(ValueError, match="not a results file"):
    results.append(path, [Row(1.0, 1, "a/b", 2.0)])
  assert path.read_text() == text


@pytest.mark.parametrize(("line", "message"), [
  ("1,2,a", "expected 6 fields"),
  ("1,2,a,x,,", "expected numbers"),
  ("1,2.5,a,1,,", "expected numbers"),
  ("-1,2,a,1,,", "from 0 up"),
  ("inf,2,a,1,,", "from 0 up"),
  ("1,2,,1,,", "expected a tag"),
  ("1,2,a\0b,1,,", "expected a printable tag"),
  ("1,2\0,a,1,,", "expected numbers"),
  ("\0" * 20, "expected 6 fields"),
  ("1,2,a,1,0.5,", "both bounds"),
  ("1,2,a,1,0.2,0.9", "low <= value <= high"),
])
def test_bad_line_is_named_with_its_number(tmp_path, line, message):
  path = tmp_path / "results.csv"
  path.write_text(f"{results.HEADER}\n1,1,a,1,,\n{line}\n")
  with pytest.raises(ValueError, match=f"results.csv:3: .*{message}"):
    results.read(path)


@pytest.mark.parametrize("row", [
  Row(1.0, 1, "a,b", 0.0), Row(1.0, 1, "", 0.0), Row(1.0, 1, "a\nb", 0.0), Row(1.0, 1, 'a"', 0.0),
  Row(-1.0, 1, "a", 0.0), Row(math.nan, 1, "a", 0.0), Row(1.0, -1, "a", 0.0),
  Row(1.0, 1.5, "a", 0.0), Row(1.0, 1, "a", 0.5, 0.6, 0.7), Row(1.0, 1, "a", 0.5, 0.4, None)])
def test_bad_row_writes_nothing(tmp_path, row):
  path = tmp_path / "results.csv"
  with pytest.raises(ValueError):
    results.append(path, [Row(1.0, 1, "fine", 0.0), row])
  assert not path.exists()


def _append_many(path, name):
  for i in range(100):
    results.append(path, [Row(float(i), i, f"{name}/a", i), Row(float(i), i, f"{name}/b", i)])


def test_two_processes_append_whole_lines(tmp_path):
  path = tmp_path / "results.csv"
  context = multiprocessing.get_context("fork")
  writers = [context.Process(target=_append_many, args=(path, name)) for name in ("x", "y")]
  for writer in writers:
    writer.start()
  for writer in writers:
    writer.join(timeout=60)
    assert writer.exitcode == 0
  rows = results.read(path)
  assert len(rows) == 400
  for tag, found in results.by_tag(rows).items():
    assert [row.update for row in found] == list(range(100)), tag
  # Two rows of one call stay together.
  assert all(a.tag[0] == b.tag[0] for a, b in zip(rows[::2], rows[1::2], strict=True))


def test_full_disk_leaves_the_file_unchanged(tmp_path, monkeypatch):
  path = tmp_path / "results.csv"
  results.append(path, [Row(1.0, 1, "a/b", 2.0)])
  before = path.read_bytes()
  write = os.write
  calls = []

  def part(descriptor, data):
    calls.append(len(data))
    if len(calls) == 2:
      raise OSError(28, "No space left on device")
    return write(descriptor, data[:7])

  monkeypatch.setattr(os, "write", part)
  with pytest.raises(disk.DiskFullError, match=f"^{tmp_path}: no space left, "):
    results.append(path, [Row(2.0, 2, "a/b", 3.0)])
  assert len(calls) == 2 and path.read_bytes() == before


def test_missing_file_is_named(tmp_path):
  with pytest.raises(FileNotFoundError, match="results.csv: no such file"):
    results.read(tmp_path / "results.csv")


def test_last_seconds(tmp_path):
  path = tmp_path / "results.csv"
  assert results.last_seconds(path) == 0.0
  results.append(path, [Row(5.0, 2, "a/b", 2.0), Row(3.0, 1, "a/b", 2.0)])
  assert results.last_seconds(path) == 5.0
  assert [row.seconds for row in results.by_tag(results.read(path))["a/b"]] == [3.0, 5.0]


def test_a_message_shows_the_beginning_of_a_long_line(tmp_path):
  path = tmp_path / "results.csv"
  path.write_text(results.HEADER + "\n" + "\0" * 10_000 + "\n")
  with pytest.raises(results.ResultsError) as error:
    results.read(path)
  assert str(error.value).startswith(f"{path}:2: expected 6 fields ") and len(str(error.value)) < (
    300 + len(str(path)))
