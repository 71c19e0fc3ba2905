"""Runs of Weights & Biases, offline: their records are read back from the package's files."""

import json
import struct
import sys
import time
from types import SimpleNamespace

import pytest

from starleague.common import results, run_files
from starleague.learner import wandb_run
from starleague.learner.loops.metrics_log import MetricsLog

_BLOCK, _HEADER = 1 << 15, 7  # of the package's files: LevelDB's log format
_FULL, _LAST = 1, 4


def _messages(data):
  """Yields the messages of a log: blocks of parts that have checksum, length and kind."""
  place, message = _HEADER, b""  # the file's own header comes first
  while place < len(data):
    if _BLOCK - place % _BLOCK < _HEADER:  # a part never begins in the rest of a block
      place += _BLOCK - place % _BLOCK
      continue
    _, length, kind = struct.unpack("<IHB", data[place:place + _HEADER])
    message += data[place + _HEADER:place + _HEADER + length]
    place += _HEADER + length
    if kind in (_FULL, _LAST):
      yield message
      message = b""


def _records(run_dir):
  """Returns (project, group, name, id, rows) of each run, rows without the package's own keys."""
  from wandb.proto import wandb_internal_pb2
  found = []
  for path in sorted(run_dir.glob("wandb/offline-run-*/*.wandb")):
    records = [wandb_internal_pb2.Record.FromString(message)
               for message in _messages(path.read_bytes())]
    run = next(record.run for record in records if record.HasField("run"))
    rows = [{item.key or ".".join(item.nested_key): json.loads(item.value_json)
             for item in record.history.item} for record in records if record.HasField("history")]
    rows = [{key: value for key, value in row.items() if not key.startswith("_")} for row in rows]
    found.append((run.project, run.run_group, run.display_name, run.run_id, rows))
  return found


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
  monkeypatch.setitem(sys.modules, "wandb", None)
  with pytest.raises(wandb_run.WandbError) as error:
    wandb_run.load()
  assert str(error.value) == (
    "metrics for Weights & Biases: expected the package wandb, found: import of wandb halted; "
    "None in sys.modules; pip install 'starleague[wandb]'")


@pytest.fixture
def offline(monkeypatch):
  pytest.importorskip("wandb")
  monkeypatch.setenv("WANDB_MODE", "offline")


def _log(run_dir, step, prefix=""):
  return MetricsLog(run_dir, 0.0, step, steps_per_update=8, interval_s=0.0, prefix=prefix,
                    project="studies")


def test_metrics_arrive_with_their_updates_and_a_restart_resumes_the_run(tmp_path, offline):
  run_dir = tmp_path / "mini"
  run_dir.mkdir()
  with _log(run_dir, 0) as log, _log(run_dir, 0, "imitation/") as imitation:
    log.write(3, {"loss/total": 0.5, "skipped": 1.0})
    log.write(4, {"loss/total": -2.0})
    imitation.write(7, {"loss/total": 0.25})
  time.sleep(1.1)  # the package names its folders by the second
  with _log(run_dir, 3) as log:  # the run resumes from its checkpoint of update 3
    log.write(4, {"loss/total": -1.5})
  ids = {path.stem: path.read_text() for path in (run_dir / "wandb").glob("*.id")}
  assert sorted(ids) == ["imitation", "training"] and ids["imitation"] != ids["training"]
  assert sorted(_records(run_dir), key=lambda run: (run[2], len(run[4]))) == [
    ("studies", "mini", "mini", ids["training"], [{"update": 4, "loss/total": -1.5}]),
    ("studies", "mini", "mini", ids["training"], [
      {"update": 3, "loss/total": 0.5, "update/skipped": 1.0},
      {"update": 4, "loss/total": -2.0}]),
    ("studies", "mini", "mini-imitation", ids["imitation"], [
      {"update": 7, "imitation/loss/total": 0.25}])]
  assert len(results.read(run_dir / results.FILE_NAME)) == 5


def test_players_of_a_league_are_in_the_group_of_their_run(tmp_path, monkeypatch):
  started = []
  package = SimpleNamespace(
    init=lambda **options: started.append((options["group"], options["name"], options["dir"]))
    or SimpleNamespace(define_metric=lambda *_, **__: None),
    Settings=lambda **_: None, Error=RuntimeError)
  monkeypatch.setitem(sys.modules, "wandb", package)
  run_dir = tmp_path / "duel"
  player = run_files.learner_dir(run_dir, "terran-main-0")
  wandb_run.WandbRun(run_dir, "studies", "imitation/")
  wandb_run.WandbRun(player, "studies")
  assert started == [("duel", "duel-imitation", str(run_dir)),
                     ("duel", "duel-terran-main-0", str(player))]


def test_a_run_that_cannot_start_is_one_line(tmp_path, offline, monkeypatch):
  wandb = pytest.importorskip("wandb")

  def refuse(**options):
    raise wandb.errors.UsageError("no API key.\n  Log in first.")

  monkeypatch.setattr(wandb, "init", refuse)
  with pytest.raises(wandb_run.WandbError, match=(
      "^Weights & Biases, project 'studies': no API key. Log in first.; WANDB_MODE=offline")):
    wandb_run.WandbRun(tmp_path, "studies")
