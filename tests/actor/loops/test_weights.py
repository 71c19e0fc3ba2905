"""Weights of players by name: newest ones of learners, snapshots of frozen players."""

import threading

import numpy as np
import pytest

from starleague.actor.loops import weights
from starleague.agent import config as agent_config
from starleague.common import run_files
from starleague.common.errors import FinalError
from starleague.data import checkpoints
from starleague.data.reverb.parameters import Fetched
from starleague.league.run_copy import RunCopy
from tests.actor.loops.clockwork_parts import PARTS

CONFIG = agent_config.mini()


class Players:
  """Fetchers of learning players and snapshots of the others, with the names asked for."""

  def __init__(self):
    self.newest, self.fetchers, self.loaded = Fetched("first", 1, 50), [], []
    self.source = weights.WeightSource(self._fetch, self._load, ["main", "rival"])

  def _fetch(self, name):
    self.fetchers.append(name)
    return lambda: self.newest

  def _load(self, name):
    self.loaded.append(name)
    return f"old {name}"


def test_weights_of_a_learning_player_are_new_until_they_are_held():
  players = Players()
  newer = players.source.newer
  first, second = weights.Version(1, 50), weights.Version(2, 60)
  assert newer("main", None) == weights.Weights("first", first)
  assert newer("main", first) is None
  players.newest = Fetched("second", 2, 60)
  found = weights.Weights("second", second)
  assert newer("main", first) == newer("main", None) == found
  assert newer("main", second) is None
  assert players.source("rival") == found
  assert players.fetchers == ["main", "rival"] and players.loaded == []  # one connection each
  # A learner that was resumed from an older checkpoint publishes fewer updates.
  players.newest = Fetched("resumed", 1, 50)
  assert newer("main", second) == weights.Weights("resumed", first)
  # A reset changes the weights between two updates.
  players.newest = Fetched("reset", 1, 70)
  assert newer("main", first) == weights.Weights("reset", weights.Version(1, 70))


def test_weights_of_a_frozen_player_never_change():
  players = Players()
  found = players.source.newer("main-0001", None)
  assert found == weights.Weights("old main-0001", weights.FROZEN)
  assert players.source.newer("main-0001", found.version) is None
  assert players.loaded == ["main-0001"]  # once: held weights are not read again
  other = weights.Version(5, 0)  # the slot held another player's weights
  assert players.source.newer("main-0001", other) == found
  assert players.fetchers == []


def save(path, value):
  checkpoints.save_params(path, {"m": {"w": np.full(2, value, np.float32)}}, CONFIG)


def test_snapshots_are_loaded_and_the_first_falls_back_to_the_initial_weights(tmp_path):
  save(tmp_path / run_files.INITIAL, 7.0)
  save(run_files.snapshot_path(tmp_path, "main-0001"), 8.0)

  def loaded(name):
    return weights.load_snapshot(CONFIG, RunCopy(tmp_path), name)["m"]["w"].tolist()

  assert loaded("main-0001") == [8.0, 8.0]
  assert loaded("main-0000") == loaded("rival-0000") == [7.0, 7.0]
  save(run_files.snapshot_path(tmp_path, "main-0000"), 9.0)
  assert loaded("main-0000") == [9.0, 9.0]  # its own file, where there is one
  with pytest.raises(FileNotFoundError, match="main-0002"):
    loaded("main-0002")


def test_a_source_connects_to_the_data_server_when_weights_are_asked_for(tmp_path, monkeypatch):
  made, stop = [], threading.Event()

  def fetcher(address, player, template, **settings):
    made.append((address, player, template.shape, settings))
    return lambda: Fetched("newest", 4, 80)

  monkeypatch.setattr(weights, "ParameterFetcher", fetcher)
  source = weights.make_source(PARTS, RunCopy(tmp_path), "localhost:1", ["main"], 10.0, 60.0, stop)
  assert source.learners == ("main",) and made == []
  assert source("main") == weights.Weights("newest", weights.Version(4, 80))
  assert made == [("localhost:1", "main", (), {"interval_s": 10.0, "deadline_s": 60.0,
                                               "stop": stop})]
  with pytest.raises(FileNotFoundError, match="main-0001"):
    source("main-0001")


def test_a_damaged_snapshot_ends_the_run_at_the_first_attempt(tmp_path):
  path = run_files.snapshot_path(tmp_path, "main-0001")
  save(path, 8.0)
  (path / "manifest.json").write_text("{}")
  with pytest.raises(FinalError, match=f"^{path}/manifest.json: expected a JSON object with"):
    weights.load_snapshot(CONFIG, RunCopy(tmp_path), "main-0001")
