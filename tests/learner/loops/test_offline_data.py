"""Datasets of offline learning: the winners' filter, and what a method needs of a dataset."""

import dataclasses
import itertools

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import vocabulary
from starleague.common import manifests
from starleague.common.errors import UserError
from starleague.data import games, wire
from starleague.data.games import files
from starleague.data.reverb import recordings
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import offline_data
from starleague.learner.loops.imitation_setup import Position
from tests.data.games import recorded_games

MINI = agent_config.mini()
LENGTHS = [7, 12, 3, 9]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """Four games of two episodes; player 0 wins the even ones with MMR 6500, the others with 5999."""
  path = tmp_path_factory.mktemp("data") / "games"
  with files.GamesWriter(path, MINI, "mini", ("open",), "a test") as writer:
    for game, length in enumerate(LENGTHS):
      writer.add([recorded_games.episode(
        MINI, length, 2 * game + player, game=game, player=player, result=1 - 2 * player,
        mmr=6500 if game % 2 == 0 else 5999, name=("one", "two")[player]) for player in (0, 1)])
  return path


def options_of(method, **values):
  return learner_options.offline_options(settings.complete({
    "offline": {"method": method, "behaviour": "runs/clone"} | values,
    "imitation": {"batch_size": 2, "unroll_length": 4}}))


@pytest.mark.parametrize("method, rows", [
  ("cloning", list(range(8))), ("winners", [0, 4]), ("actor_critic", list(range(8))),
  ("emphatic", list(range(8)))])
def test_winners_of_high_mmr_alone_are_learnt_by_their_method(folder, method, rows):
  found = offline_data.open_data(folder, options_of(method))
  assert list(found.rows) == rows and found.unroll_length == 4
  episodes = games.read(folder).episodes
  if method == "winners":
    assert (episodes.result[found.rows] == 1).all() and (episodes.mmr[found.rows] >= 6000).all()


def of_players(options, names):
  return dataclasses.replace(
    options, imitation=dataclasses.replace(options.imitation, names=names))


@pytest.mark.parametrize("method, names, rows", [
  ("cloning", "two", [1, 3, 5, 7]), ("winners", "one", [0, 4]), ("winners", "one,two", [0, 4])])
def test_chosen_players_alone_are_learnt(folder, method, names, rows):
  found = offline_data.open_data(folder, of_players(options_of(method), names))
  assert list(found.rows) == rows


def test_batches_of_games_continue_from_a_position(folder):
  options = options_of("winners")
  data = offline_data.open_data(folder, options)
  with offline_data.batches(data, options, Position()) as source:
    whole = list(itertools.islice(source, 9))
  # Episodes of 7 and 3 decisions in two slots of 4: two batches an epoch.
  assert [position.epoch for position, _ in whole] == [0, 0, 1, 1, 2, 2, 3, 3, 4]
  with offline_data.batches(data, options, whole[2][0]) as source:
    rest = list(itertools.islice(source, 6))
  for (_, found), (_, expected) in zip(rest, whole[3:], strict=True):
    np.testing.assert_array_equal(found.int32, expected.int32)
    np.testing.assert_array_equal(found.first, expected.first)


def test_winners_that_do_not_exist_are_refused(folder):
  options = learner_options.offline_options(settings.complete({
    "offline": {"method": "winners", "behaviour": "x"}, "imitation": {"fine_tune_mmr": 6501}}))
  with pytest.raises(UserError, match="found none that were won with an MMR of at least 6501"):
    offline_data.open_data(folder, options)


def test_recorded_ratios_of_games_are_refused(folder):
  with pytest.raises(UserError, match="needs log-probabilities of the actions, and recorded games"):
    offline_data.open_data(folder, options_of("actor_critic", ratios="recorded"))


@pytest.fixture
def recording(tmp_path):
  """The description of a recording, without its trajectories."""
  path = tmp_path / "recording"
  path.mkdir()
  manifests.write(path / recordings.MANIFEST, recordings.Recording(
    "mini", 8, 5, "a test", vocabulary.digest())._asdict())
  return path


@pytest.mark.parametrize("method, lacks", [
  ("winners", "needs the results of its games, and a recording has none"),
  ("emphatic", "needs whole games in order, and a recording has trajectories in random order"),
  ("cloning", None), ("actor_critic", None)])
def test_a_recording_serves_the_methods_that_need_no_more(recording, method, lacks):
  if lacks is None:
    ratios = "cloned" if method == "cloning" else "recorded"
    found = offline_data.open_data(recording, options_of(method, ratios=ratios))
    assert found.games is None and found.unroll_length == 8
    return
  with pytest.raises(UserError, match=lacks) as refused:
    offline_data.open_data(recording, options_of(method))
  assert "\n" not in str(refused.value)


def test_another_dataset_has_another_digest(folder, recording):
  def digest():
    return offline_data.open_data(recording, options_of("cloning")).digest

  one = digest()
  assert one == digest() and len(one) == 64
  described = manifests.read(recording / recordings.MANIFEST)
  manifests.replace(recording / recordings.MANIFEST, described, {"table": "0" * 64})
  assert digest() != one
  assert offline_data.open_data(folder, options_of("winners")).digest == games.read(folder).digest


def test_a_recording_has_no_players_to_choose(recording):
  with pytest.raises(UserError, match="chooses players of recorded games, and a recording"):
    offline_data.open_data(recording, of_players(options_of("cloning"), "demo_7000"))


def test_a_recording_of_another_preset_is_refused(recording):
  manifests.replace(recording / recordings.MANIFEST, recordings.Recording(
    "full", 8, 5, "a test", vocabulary.digest())._asdict(), {})
  with pytest.raises(UserError, match="another preset: expected 'mini', found 'full'"):
    offline_data.open_data(recording, options_of("cloning"))


def test_a_folder_of_neither_is_refused(tmp_path):
  with pytest.raises(files.GamesError, match="is not a dataset of games"):
    offline_data.open_data(tmp_path, options_of("cloning"))


def test_games_have_a_reward_at_the_last_decision_and_no_log_probs(folder):
  """The result is a reward, and scripts have no probabilities."""
  steps, fields = games.steps(games.read(folder), 2), wire.layout(MINI).fields
  reward = steps.float32[:, fields["reward"].slice]
  assert not reward[:-2].any() and reward[-2, 0] == 1.0
  of_log_prob = [field.slice for name, field in fields.items() if name.startswith("log_prob")]
  assert len(of_log_prob) == 7 and not any(steps.float32[:, part].any() for part in of_log_prob)
