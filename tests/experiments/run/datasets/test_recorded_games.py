"""Recordings of games between a league's players."""

import jax
import numpy as np
import pytest

from starleague import agent, league
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints, dataset, wire
from starleague.data.reverb import recordings
from starleague.experiments import record
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import recorded_games
from starleague.experiments.run.games import registry
from tests.experiments.launch import launch, refusal

MAIN, EXPLOITER, FIRST, SECOND = (
  "terran-main-0", "terran-main_exploiter-0", "terran-main-0-0000", "terran-main-0-0001")
UNROLL_LENGTH = 4


@pytest.fixture(scope="module")
def weights():
  """The weights that ship with the agent, and others with which all choices are equally likely."""
  trained = agent.load_pretrained("mini")
  return trained.config, trained.params, jax.tree.map(np.zeros_like, trained.params)


@pytest.fixture
def run_dir(tmp_path, weights):
  """A league: a main agent that has learnt, and its second snapshot; others as they began."""
  config, trained, uniform = weights
  path = tmp_path / "league"
  settings.save(settings.complete({
    "unroll_length": UNROLL_LENGTH,
    "actor": {"games": 8, "inference_batch": 8, "iterations": 8}, "league": {"chunk": 4}}), path)
  first, *others = league.initial_players(["terran"], league_exploiters=0)
  second = league.players.snapshot(first, 1, 100)
  league.Coordinator(path / run_files.LEAGUE, [first, *others, second]).close()
  checkpoints.save_params(path / run_files.INITIAL, uniform, config)
  learnt = run_files.learner_dir(path, MAIN) / run_files.CHECKPOINTS
  checkpoints.save_params(learnt / f"{7:012d}", trained, config, 7)
  # A learner makes the folders of all its players at once.
  (run_files.learner_dir(path, EXPLOITER) / run_files.CHECKPOINTS).mkdir(parents=True)
  checkpoints.save_params(run_files.snapshot_path(path, SECOND), trained, config)
  return path


def test_learning_players_come_first_then_the_newest_snapshots(run_dir, weights):
  _, trained, uniform = weights
  parts = registry.make_parts(settings.load(run_dir))
  found = recorded_games.load_players(parts, run_dir, 8)
  assert [each.player.name for each in found] == [MAIN, EXPLOITER, SECOND, FIRST]
  assert [each.player.name for each in recorded_games.load_players(parts, run_dir, 3)] == [
    MAIN, EXPLOITER, SECOND]
  for each, expected in zip(found, (trained, uniform, trained, uniform), strict=True):
    jax.tree.map(np.testing.assert_array_equal, each.params, expected)


def test_each_pair_has_its_races():
  np.testing.assert_array_equal(
    recorded_games.pairs(3), [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]])
  parts = registry.make_parts(settings.complete({
    "preset": "small", "environment": {"tier": "default", "opponents": "L0"},
    "actor": {"demonstrators": "L0"}}))
  found = [league.players.Player(f"{race}-main-0", "main", race) for race in ("zerg", "protoss")]
  zerg, protoss = (types.RACES.index(race) for race in ("zerg", "protoss"))
  np.testing.assert_array_equal(
    recorded_games.conditioning(parts, found).races,
    [[zerg, zerg], [zerg, protoss], [protoss, protoss]])


@pytest.mark.slow
def test_both_sides_of_a_leagues_games_are_recorded(run_dir, tmp_path):
  path = tmp_path / "recording"
  assert launch(record, "--run_dir", run_dir, "--dataset", path, "--trajectories", 64,
                "--policies", 2) is None
  assert recordings.describe(path).origin == f"{MAIN}, {EXPLOITER} of league, seed 0"
  with dataset(path, batch_size=256) as batches:
    steps = wire.unpack(next(iter(batches)), batches.config).steps
  # With equal logits the probability of each function is one over their number.
  choices = np.exp(-steps.log_prob.function[:-1])
  uniform = np.isclose(choices, np.round(choices), rtol=1e-4).all(axis=0)
  assert choices[:, uniform].max() > 2
  assert 0.2 < uniform.mean() < 0.8


def test_a_run_with_a_changed_preset_is_recorded(tmp_path, monkeypatch):
  config = settings.complete({"unroll_length": UNROLL_LENGTH, "agent": "core_size=32"})
  settings.save(config, tmp_path / "one")
  parts = registry.make_parts(config)
  checkpoints.save_params(tmp_path / "one" / run_files.INITIAL, jax.tree.map(
    lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(parts.policy.init, jax.random.key(0))),
    parts.config)
  spec = wire.packed_spec(parts.config, UNROLL_LENGTH)
  monkeypatch.setattr(recorded_games, "of_agent", lambda *_: None)
  monkeypatch.setattr(recorded_games, "play", lambda *_: [
    wire.Packed(*(np.zeros(x.shape, x.dtype) for x in spec))])
  path = tmp_path / "recording"
  assert launch(record, "--run_dir", tmp_path / "one", "--dataset", path, "--trajectories", 1,
                "--weights", "initial") is None
  assert recordings.describe(path).config.core_size == 32


def test_a_run_without_a_checkpoint_is_refused_in_one_line(tmp_path):
  settings.save(settings.complete({}), tmp_path / "one")
  (tmp_path / "one" / run_files.CHECKPOINTS).mkdir()
  assert refusal(record, "--run_dir", tmp_path / "one", "--dataset", tmp_path / "recording") == (
    f"error: {tmp_path / 'one'} has no checkpoint yet: expected one in "
    f"{tmp_path / 'one' / run_files.CHECKPOINTS}")


def test_a_number_of_policies_needs_a_league(run_dir, tmp_path):
  for words, weights in (([], "newest"), (["--weights", "initial"], "initial")):
    settings.save(settings.complete({}), tmp_path / "one")
    error = refusal(record, "--run_dir", tmp_path / "one", "--dataset", tmp_path / "recording",
                    "--policies", "8", *words)
    assert error == (f"error: --policies needs the newest weights of a league: the {weights} ones "
                     f"of {tmp_path / 'one'} are of one agent")
  error = refusal(record, "--run_dir", run_dir, "--dataset", tmp_path / "recording",
                  "--policies", "8", "--weights", "initial")
  assert "the initial ones of" in error


def test_a_damaged_league_is_refused_in_one_line(run_dir, tmp_path):
  (run_dir / run_files.LEAGUE).write_bytes(b"x" * 4096)
  error = refusal(record, "--run_dir", run_dir, "--dataset", tmp_path / "recording")
  assert run_files.LEAGUE in error
  assert not (tmp_path / "recording").exists()
