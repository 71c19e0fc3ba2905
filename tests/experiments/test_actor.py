"""An actor without z; a league whose nodes share no directory, each of which is empty at first."""

import functools
import json
import pathlib
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import pytest

from starleague.common import run_files
from starleague.common.errors import FINAL_STATUS
from starleague.experiments import actor
from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import graph
from starleague.experiments.run.processes.process_runner import Runner
from tests.experiments import optimised
from tests.experiments.launch import launch
from tests.experiments.run.libraries import save_imitator, save_library
from tests.experiments.runs import DEADLINE_S, SIZES, variables
from tests.league.test_shared_files import contents

# The main agent plays against frozen players alone, so it soon meets the snapshots that the test
# waits for.
SETTINGS = (*SIZES, "league.seconds=100000", "league.matchmaking=fsp",
            "learner.checkpoint_interval_s=5", "learner.publish_interval_s=2",
            "league.composition=terran:1:1:0", "league.places=2", "league.games=3",
            "league.chunk=8", "league.snapshot_steps=256", "league.timeout_steps=256",
            "actor.niceness=0", "league.evaluator_niceness=0")
FIRST = "terran-main-0-0000"


def values(words: Sequence[str]) -> dict[str, Any]:
  """Returns the values of config keys, as GROUP.KEY=VALUE."""
  found: dict[str, Any] = {}
  for word in words:
    key, _, text = word.partition("=")
    *groups, name = key.split(".")
    group = functools.reduce(lambda inner, each: inner.setdefault(each, {}), groups, found)
    group[name] = json.loads(text) if text[0].isdigit() else text
  return found


def rows(run_dir: pathlib.Path, query: str) -> list[tuple]:
  with sqlite3.connect(f"file:{run_dir / run_files.LEAGUE}?mode=ro", uri=True, timeout=30) as file:
    return file.execute(query).fetchall()


def met(head: pathlib.Path) -> set[str]:
  """Returns the snapshots against which the main agent has played."""
  found = rows(head, "SELECT DISTINCT away FROM results WHERE home = 'terran-main-0'")
  return {away for away, in found if away != "terran-main-0"}


def test_an_actor_without_z_is_not_started_again(tmp_path, capsys):
  settings.save(settings.complete({}), tmp_path)
  save_library(tmp_path / run_files.LIBRARY, sides=(0,))
  assert launch(actor, "--run_dir", tmp_path, "--address", "localhost:1") == FINAL_STATUS
  assert "No z for map open, terran against terran, side 1" in capsys.readouterr().err


@pytest.mark.slow
def test_nodes_that_share_no_directory_play_against_frozen_players(tmp_path, monkeypatch):
  for name, value in variables(optimised=True).items():
    monkeypatch.setenv(name, value)
  monkeypatch.setattr(graph, "data_parallel", optimised.data_parallel)
  head = tmp_path / "head"
  settings.save(settings.complete(values(SETTINGS)), head)
  save_imitator(head)
  league = graph.league(settings.load(head), head, time.time())
  players = {name: tmp_path / name for name in ("learner", "actor 0", "evaluator 0")}
  own = {**players, graph.DATA: tmp_path / graph.DATA}
  processes = [process._replace(argv=[str(own[process.name]) if word == str(head) else word
                                      for word in process.argv])
               if process.name in own else process for process in league.processes]
  copied = own["actor 0"] / run_files.PLAYERS
  wanted = [lambda: FIRST in met(head),
            lambda: any((copied / name).exists() for name in met(head)),
            lambda: all(contents(node / run_files.INITIAL) for node in players.values()),
            lambda: rows(head, "SELECT 1 FROM replays WHERE path != ''")]
  end = time.monotonic() + DEADLINE_S
  with Runner(processes, deadline_seconds=60.0) as runner:
    while wanted:
      assert time.monotonic() < end
      runner.poll()
      time.sleep(0.5)
      if (head / run_files.PLAYERS).exists() and wanted[0]():
        wanted.pop(0)
  for path in copied.glob(f"{FIRST[:-4]}*"):
    frozen = contents(path)
    assert "manifest.json" in frozen
    for node in (head, own["learner"]):
      assert contents(node / run_files.PLAYERS / path.name) == frozen
  for node in players.values():
    assert contents(node / run_files.INITIAL) == contents(head / run_files.INITIAL)
  for node in own.values():
    for name in (run_files.CONFIG, run_files.LIBRARY):
      assert (node / name).read_bytes() == (head / name).read_bytes()
    assert not (node / run_files.LEAGUE).exists()
  for path, in rows(head, "SELECT path FROM replays WHERE path != ''"):
    assert (head / path).read_bytes() == (own["evaluator 0"] / path).read_bytes()
