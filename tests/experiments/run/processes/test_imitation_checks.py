"""Checks of the imitation of a run: its games, its phases, the limits that may change."""

import pathlib
import re

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.games import files as games_files
from starleague.experiments.configs import adaptive, mini, small
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import demonstrations
from starleague.experiments.run.parts import learner_options
from starleague.experiments.run.processes import imitation_checks, supervision
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Position, Recorded
from tests.data.games import recorded_games
from tests.experiments import imitated_games
from tests.experiments.run import libraries


def save(run_dir, step, position):
  """Saves a checkpoint of imitation with a position."""
  checkpoints.Checkpoints(run_dir / run_files.IMITATION, agent_config.mini()).save(
    step, imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}}), position._asdict())


def test_limits_of_imitation_may_change_until_a_later_phase_begins(tmp_path):
  def prepare(**limits):
    supervision.prepare(settings.complete({}, {
      f"imitation.{key}": value for key, value in limits.items()}), tmp_path)

  over = "but this phase of its imitation is over: keep 600.0, or start another --run from its"
  prepare(seconds=300.0, fine_tune_seconds=0.0)
  save(tmp_path, 1, Position(batch=9, complete=True))
  prepare(seconds=600.0, fine_tune_seconds=0.0)
  prepare(seconds=600.0, fine_tune_seconds=20.0)
  save(tmp_path, 2, Position(phase=1))
  prepare(seconds=600.0, fine_tune_seconds=40.0)
  with pytest.raises(settings.SettingsError, match=over) as error:
    prepare(seconds=900.0, fine_tune_seconds=40.0)
  assert "imitation.seconds = 600.0, found 900.0" in str(error.value)
  assert settings.load(tmp_path).imitation.seconds == 600.0
  # Reinforcement learning has begun.
  (tmp_path / run_files.INITIAL).mkdir()
  with pytest.raises(settings.SettingsError, match="fine_tune_seconds = 40.0, found 80.0, but"):
    prepare(seconds=600.0, fine_tune_seconds=80.0)
  prepare(seconds=600.0, fine_tune_seconds=40.0)


def test_limits_of_the_phase_of_labels_may_change_until_it_is_over(tmp_path):
  def prepare(**limits):
    supervision.prepare(settings.complete({}, {"demonstrations.labels": 8} | {
      f"imitation.{key}": value for key, value in limits.items()}), tmp_path)

  prepare()
  save(tmp_path, 1, Position(phase=1))
  prepare(labels_seconds=200.0)
  with pytest.raises(settings.SettingsError, match="imitation.seconds = 150.0, found 400.0, but"):
    prepare(labels_seconds=200.0, seconds=400.0)
  save(tmp_path, 2, Position(phase=2))
  prepare(labels_seconds=200.0, fine_tune_seconds=40.0)
  with pytest.raises(settings.SettingsError, match="labels_seconds = 200.0, found 300.0, but"):
    prepare(labels_seconds=300.0, fine_tune_seconds=40.0)


def test_limits_of_the_first_phase_may_change_until_its_labels_are_recorded(tmp_path):
  """Longer, it would give another imitator than the one that played the labelled games."""
  def prepare(**limits):
    supervision.prepare(settings.complete({}, {"demonstrations.labels": 8} | {
      f"imitation.{key}": value for key, value in limits.items()}), tmp_path)

  prepare(seconds=300.0)
  save(tmp_path, 1, Position(complete=True))
  (tmp_path / run_files.LABELS).mkdir()
  (tmp_path / run_files.LABELS / ".part-00000.parquet-abc").write_bytes(b"not kept")
  prepare(seconds=600.0)
  (tmp_path / run_files.LABELS / ".part-00000.parquet-abc").unlink()
  recorded_games.write(tmp_path / run_files.LABELS, agent_config.mini(), [5])
  with pytest.raises(settings.SettingsError, match=(
      "imitation.seconds = 600.0, found 900.0, but this phase of its imitation is over")):
    prepare(seconds=900.0)
  prepare(seconds=600.0, labels_seconds=200.0, fine_tune_seconds=40.0)
  # A folder of the same name does not belong to a run without labels.
  without = settings.complete({}, {"imitation.seconds": 900.0})
  imitation_checks.check_limits(settings.load(tmp_path), without, tmp_path, "--run")


def test_a_run_without_labels_reads_no_limits_of_their_phase(tmp_path):
  save(tmp_path, 1, Position(phase=1))
  for seconds in (100.0, 200.0):
    supervision.prepare(settings.complete({}, {"imitation.labels_seconds": seconds}), tmp_path)


def test_labels_are_read_when_their_phase_has_begun(tmp_path):
  config = settings.complete({}, {"demonstrations.labels": 8})
  recorded = tmp_path / "demonstrations"
  first = Recorded(recorded, first_alone=True)
  assert imitation_checks.recorded_games(config, tmp_path) == first
  save(tmp_path, 1, Position(complete=True))
  assert imitation_checks.recorded_games(config, tmp_path) == first
  save(tmp_path, 2, Position(phase=1))
  assert imitation_checks.recorded_games(config, tmp_path) == Recorded(
    recorded, tmp_path / "labels")
  config.demonstrations.labels, config.demonstrations.dataset = 0, "games"
  assert imitation_checks.recorded_games(config, tmp_path) == Recorded(pathlib.Path("games"))


def test_labels_need_games_that_can_be_recorded():
  given = {"demonstrations.dataset": "games"}
  for changes, message in (
      ({"environment.name": "sc2"}, "'demonstrations.labels' must be 0 in sc2, whose games cannot "
       "be recorded; found 8.$"),
      ({"preset": "small"}, "'environment.tier': expected 'default' to .*; give "
       "'demonstrations.labels' = 0.$")):
    imitation_checks.check_recording(settings.complete({}, changes | given))
    with pytest.raises(settings.SettingsError, match=message):
      imitation_checks.check_recording(
        settings.complete({}, changes | given | {"demonstrations.labels": 8}))


@pytest.mark.parametrize("changes, message", [
  ({"preset": "small"}, r"config key 'environment.tier': expected 'default' to record the games "
   r"that a run of preset 'small' imitates, found 'mini'; give 'demonstrations.dataset', or "
   r"another 'init' than 'imitation'\."),
  ({"preset": "full"}, "config key 'preset': expected 'mini' or 'small' to record the games that a "
   "run of preset 'full' imitates, found 'full'; .*"),
  ({"preset": "full", "environment.tier": "large", "environment.opponents": "rush",
    "actor.demonstrators": "", "demonstrations.players": "rush"},
   "config key 'preset': .*'full'.*"),
])
def test_games_that_cannot_be_recorded_for_a_run_are_named(changes, message):
  config = settings.complete({}, changes)
  with pytest.raises(settings.SettingsError) as error:
    imitation_checks.check_recording(config)
  assert re.fullmatch(message, str(error.value)), error.value


def test_games_are_recorded_at_the_tier_of_each_config():
  for get_config in (mini.get_config, small.get_config, adaptive.get_config):
    imitation_checks.check_recording(settings.complete(get_config().to_dict()))
  assert {preset: sizes.tier for preset, sizes in demonstrations.SIZES.items()} == {
    "mini": "mini", "small": "default"}


def without_z(won=True):
  """Ten games of which the winner, from each side in turn, has no z, or nobody wins."""
  empty = types.zeros(types.statistics_spec())
  return [[recorded_games.episode(
    agent_config.mini(), 5, 2 * game + player, game=game, player=player, side=(game + player) % 2,
    result=(1 - 2 * player) * won, mmr=7000, **({"z": empty} if won else {}))
    for player in (0, 1)] for game in range(10)]


def write(path, played):
  with games_files.GamesWriter(path, agent_config.mini(), "mini", ("open",), "a test") as writer:
    for episodes in played:
      writer.add(episodes)
  return path


def opened(config, path):
  return imitation_setup.read_games(path, learner_options.imitation_options(config))


def test_a_dataset_that_lacks_z_is_refused_before_it_is_imitated(tmp_path):
  config = settings.complete({}, {"imitation.held_out": 0.2, "imitation.fine_tune_seconds": 0.0})
  for name, played in (("drawn", without_z(won=False)), ("without", without_z())):
    with pytest.raises(UserError, match=(
        f"{name} lacks z for 'actor.pseudo_probability' = 0.25, .* at an MMR of at least 6000 .*: "
        "No z for map open, terran against terran, side 0, among 0 games on maps none")):
      imitation_checks.check_z(config, opened(config, write(tmp_path / name, played)))
  without = settings.complete(config.to_dict(), {"actor.pseudo_probability": 0.0})
  imitation_checks.check_z(without, opened(without, tmp_path / "without"))
  imitation_checks.check_z(config, opened(config, imitated_games.write(tmp_path / "won", 8, 5)))
  given = settings.complete(config.to_dict(), {"actor.library": str(tmp_path / "z.npz")})
  with pytest.raises(UserError, match="z.npz"):
    imitation_checks.check_z(given, opened(given, tmp_path / "won"))
  libraries.save_library(tmp_path / "z.npz")
  imitation_checks.check_z(given, opened(given, tmp_path / "without"))


def test_a_dataset_in_which_no_chosen_player_wins_lacks_z(tmp_path):
  """One player wins all games, from both sides."""
  played = [[recorded_games.episode(
    agent_config.mini(), 5, 2 * game + player, game=game, player=player, side=(game + player) % 2,
    mmr=7000, name=("winner", "loser")[player]) for player in (0, 1)] for game in range(10)]
  path = write(tmp_path / "games", played)
  changes = {"imitation.held_out": 0.2, "imitation.fine_tune_seconds": 0.0}
  for names in ("", "winner", "loser,winner"):
    config = settings.complete({}, changes | {"imitation.names": names})
    imitation_checks.check_z(config, opened(config, path))
  config = settings.complete({}, changes | {"imitation.names": "loser"})
  with pytest.raises(UserError, match=(
      "games lacks z for 'actor.pseudo_probability' = 0.25, which come from learnt games that were "
      "won by players of 'imitation.names' = 'loser' at an MMR of at least 6000 .*: No z for map "
      "open, terran against terran, side 0, among 0 games on maps none")):
    imitation_checks.check_z(config, opened(config, path))


def test_a_game_without_recordings_needs_a_dataset():
  config = settings.complete({}, {"environment.name": "sc2"})
  with pytest.raises(settings.SettingsError, match=(
      "config key 'demonstrations.dataset' must name recorded games if 'init' is 'imitation' in "
      "sc2, whose games cannot be recorded; found ''.$")):
    imitation_checks.check_recording(config)


