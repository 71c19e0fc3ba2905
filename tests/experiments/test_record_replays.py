"""The command that plays StarCraft II replays back; stand-ins find and play them here."""

import io
import os
import pathlib
import sys

import pytest

pytest.importorskip("pysc2")
pytest.importorskip("pyarrow")

from starleague.data.games import files
from starleague.experiments import record_replays
from tests.experiments.launch import launch, refusal


def test_names_that_are_not_utf_8_are_printed_escaped(tmp_path, monkeypatch):
  name = os.fsdecode(b"game\xff.SC2Replay")
  refused = [(pathlib.Path(name), "no type called \udcff")]
  found = files.Description(**dict.fromkeys(files.Description._fields, 0))
  monkeypatch.setattr(record_replays.installation, "find", lambda: None)
  monkeypatch.setattr(record_replays.playback, "jobs", lambda folders: ([], refused))
  monkeypatch.setattr(record_replays.playback, "record", lambda *arguments: found)
  printed = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict")
  monkeypatch.setattr(sys, "stdout", printed)
  dataset = tmp_path / os.fsdecode(b"set\xff")
  assert launch(record_replays, tmp_path, "--dataset", dataset, "--preset=mini") is None
  printed.flush()
  first, last = printed.buffer.getvalue().decode().splitlines()[-2:]
  assert first == r"refused file=game\xff.SC2Replay reason='no type called \udcff'"
  assert last.startswith("recorded games=0 decisions=0 refused=1 ")
  assert last.endswith(rf"path={tmp_path}/set\xff")


def test_a_dataset_with_a_comma_is_refused_before_replays_are_read(tmp_path, monkeypatch):
  monkeypatch.setattr(record_replays.playback, "jobs", None)
  assert refusal(record_replays, tmp_path, "--dataset", "lr=1,bs=4", "--preset=mini") == (
    "error: dataset 'lr=1,bs=4': expected a folder without ',', which separates folders; choose "
    "another folder.")
