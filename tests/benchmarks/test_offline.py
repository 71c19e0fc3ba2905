"""The benchmark of offline learning does not count runs of other settings or data as its own."""

import argparse
import hashlib
import json
import sys

import pytest

from benchmarks import offline


def options(folder, **changes):
  return argparse.Namespace(**{"out": folder, "data": folder, "sizes": ["s"], "updates": 400,
                               "games": 200, "offline": {}} | changes)


def record(folder, size, text):
  """Writes a manifest; returns its digest."""
  (folder / size).mkdir(exist_ok=True)
  (folder / size / "games.json").write_text(text)
  return hashlib.sha256(text.encode()).hexdigest()


def test_a_folder_has_runs_of_one_setting(tmp_path):
  digest = record(tmp_path, "s", "games")
  for _ in range(2):
    offline.keep_settings(options(tmp_path, offline={"batch_size": 8}))
  with pytest.raises(SystemExit) as error:
    offline.keep_settings(options(tmp_path, updates=200))
  data = f'"data": {{"s": "{digest}"}}'
  assert str(error.value) == (
    f'error: {tmp_path} has runs of {{"updates": 400, "games": 200, "offline": {{"batch_size": 8}}'
    f', {data}}}, not of {{"updates": 200, "games": 200, "offline": {{}}, {data}}}; '
    "choose another --out")


def test_a_size_of_a_folder_has_runs_of_one_dataset(tmp_path):
  first = record(tmp_path, "s", "games")
  offline.keep_settings(options(tmp_path))
  second = record(tmp_path, "m", "more games")
  offline.keep_settings(options(tmp_path, sizes=["m"]))  # a further dataset
  kept = json.loads((tmp_path / "settings.json").read_text())
  assert kept["data"] == {"s": first, "m": second}
  other = record(tmp_path, "s", "other games")
  offline.keep_settings(options(tmp_path, sizes=["m"]))
  with pytest.raises(SystemExit, match=f"has runs of .*{first}.*, not of .*{other}.*; choose"):
    offline.keep_settings(options(tmp_path, sizes=["m", "s"]))
  assert json.loads((tmp_path / "settings.json").read_text()) == kept


def test_runs_of_unknown_data_are_refused(tmp_path):
  record(tmp_path, "s", "games")
  (tmp_path / "settings.json").write_text('{"updates": 400, "games": 200, "offline": {}}')
  with pytest.raises(SystemExit, match="choose another --out"):
    offline.keep_settings(options(tmp_path))


@pytest.mark.parametrize("arguments, message", [
  (["--offline", "batch_size=8"],
   'argument --offline: expected a JSON object, as {"batch_size": 8}; found batch_size=8'),
  (["--offline", "[8]"],
   'argument --offline: expected a JSON object, as {"batch_size": 8}; found [8]'),
  (["--offline", '{"batch_siz": 8}'], "batch_siz"),
  (["--seeds", "a"], "argument --seeds: expected whole numbers from 0, as 0,1,2; found a"),
  (["--seeds", "0,"], "argument --seeds: expected whole numbers from 0, as 0,1,2; found 0,")])
def test_wrong_options_are_one_line(arguments, message, monkeypatch, capsys, tmp_path):
  monkeypatch.setattr(sys, "argv", ["offline", "--out", str(tmp_path / "out"), *arguments])
  with pytest.raises(SystemExit) as error:
    offline.main()
  assert error.value.code == 2 and not (tmp_path / "out").exists()
  assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_missing_dataset_is_one_line(tmp_path):
  with pytest.raises(SystemExit) as error:
    offline.keep_settings(options(tmp_path))
  assert str(error.value) == (
    f"error: --sizes: expected datasets of games in {tmp_path}, found no {tmp_path}/s/games.json; "
    "make offline-data records s, m and l")
