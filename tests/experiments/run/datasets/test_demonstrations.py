"""Recorded demonstrations: contents, continuation, and refused arguments."""

import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.data import games
from starleague.data.games import files
from starleague.experiments import demonstrate
from starleague.experiments.run.datasets import demonstrations
from tests.data.unpacking import unpack
from tests.experiments.launch import refusal

DEMONSTRATORS = demonstrations.Demonstrators("mini", ("demo_2000", "demo_7000", "rusher"), 3)
MMR = {"demo_2000": 2000, "demo_7000": 7000, "rusher": 6200}


@pytest.fixture(scope="module")
def small():
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(demonstrations.SIZES, "mini", demonstrations.Sizes("mini", 6, 4, 32))
    yield


@pytest.fixture(scope="module")
def folder(small, tmp_path_factory):
  path = tmp_path_factory.mktemp("data") / "games"
  seen = []
  found = demonstrations.record(path, DEMONSTRATORS, 14, lambda written: seen.append(written.games))
  assert found.games == seen[-1] == 14 and seen == sorted(seen)
  return path


@pytest.mark.slow
def test_every_decision_of_both_sides_is_recorded(folder):
  found = games.read(folder)
  episodes = found.episodes
  assert len(episodes.game) == 28 and len(set(episodes.game)) == 14
  assert (episodes.result[::2] == -episodes.result[1::2]).all()
  assert (episodes.side[::2] == 1 - episodes.side[1::2]).all()
  assert [MMR[name] for name in episodes.name] == episodes.mmr.tolist()
  assert set(episodes.name) == set(MMR)
  library = games.library(found, np.arange(28))
  for row in range(0, 28, 5):
    steps = unpack(games.steps(found, row), found.config, episodes.decisions.max() + 1)
    decisions = episodes.decisions[row]
    loops = steps.observation.game_loop
    assert loops[0] == 0 and (np.diff(loops) > 0).all() and len(loops) == decisions + 1
    delay = steps.action.delay
    np.testing.assert_array_equal(delay[:decisions - 1], np.minimum(np.diff(loops)[:-1], 127))
    assert 1 <= delay[decisions - 1] <= 127
    np.testing.assert_array_equal(
      steps.observation.last_delay[1:decisions], delay[:decisions - 1])
    assert set(steps.observation.mmr.tolist()) == {episodes.mmr[row]}
    assert steps.weight.tolist() == [1] * decisions + [0]
    assert steps.reward[:, 0].tolist() == [0] * (decisions - 1) + [episodes.result[row], 0]
    assert steps.discount.tolist() == [1] * (decisions - 1) + [0, 0]
    for name, z in library.z._asdict().items():
      own = getattr(steps.observation.statistics, name)
      np.testing.assert_array_equal(own, np.repeat(z[row][None], decisions + 1, 0))
      other = getattr(steps.privileged.opponent_statistics, name)
      np.testing.assert_array_equal(other[0], z[row ^ 1])
    executed = steps.privileged.executed
    np.testing.assert_array_equal(executed.units[-1], library.z.units[row])


@pytest.mark.slow
def test_equal_arguments_give_equal_files(folder, tmp_path):
  demonstrations.record(tmp_path / "again", DEMONSTRATORS, 14)
  assert files.describe(tmp_path / "again") == files.describe(folder)


@pytest.mark.slow
def test_a_dataset_is_continued_with_other_games(folder):
  before = games.read(folder)
  assert demonstrations.record(folder, DEMONSTRATORS, 14).games == 14  # nothing to do
  demonstrations.record(folder, DEMONSTRATORS, 26)
  after = games.read(folder).episodes
  assert len(after.game) == 52
  np.testing.assert_array_equal(after.game[:28], before.episodes.game)
  assert sorted(set(after.game[28:])) == list(range(14, 26))
  lengths = {game: tuple(after.decisions[after.game == game]) for game in set(after.game)}
  assert not {lengths[game] for game in range(14, 26)} <= {lengths[game] for game in range(14)}
  with pytest.raises(files.GamesError, match="another origin: expected 'demonstrations of"):
    demonstrations.record(folder, DEMONSTRATORS._replace(seed=4), 30)


@pytest.mark.nightly
@pytest.mark.slow
def test_chosen_opponents_play_the_second_side(small, tmp_path):
  chosen = DEMONSTRATORS._replace(names=("demo_2000", "rusher"), opponents=("demo_7000", "rusher"))
  demonstrations.record(tmp_path / "games", chosen, 8)
  episodes = games.read(tmp_path / "games").episodes
  assert set(zip(episodes.name[::2], episodes.name[1::2], strict=True)) == {
    (one, other) for one in chosen.names for other in chosen.opponents}
  assert [MMR[name] for name in episodes.name] == episodes.mmr.tolist()


def test_chosen_opponents_and_races_are_part_of_a_dataset():
  chosen = DEMONSTRATORS._replace(opponents=("builder",), races=(-1, 2))
  assert chosen.everyone == (*DEMONSTRATORS.names, "builder")
  assert chosen.origin == ("demonstrations of demo_2000, demo_7000, rusher against builder, "
                           "a drawn race against zerg, seed 3")
  pairs = demonstrations.all_pairs(chosen)
  assert pairs.tolist() == [[0, 3], [1, 3], [2, 3]]
  assert demonstrations.conditions(chosen, pairs).races.tolist() == [[-1, 2]] * 3
  assert demonstrations.conditions(DEMONSTRATORS, pairs).races is None


@pytest.mark.parametrize("games, at_once, inferred", [
  (1, 1, 1), (5, 3, 1), (12, 6, 3), (127, 64, 32), (128, 64, 32), (9000, 64, 32)])
def test_no_more_games_are_played_than_recorded(games, at_once, inferred):
  found = DEMONSTRATORS._replace(preset="small").recording(games)
  assert found.sizes == ("default", at_once, inferred, 32)
  assert found.most == min(games, 128) and found.origin == DEMONSTRATORS.origin


@pytest.mark.parametrize("change, message", [
  ({"preset": "full"}, "preset 'full': expected one of mini, small"),
  ({"names": ()}, "players: expected different names, found"),
  ({"names": ("rusher", "rusher")}, "players: expected different names, found rusher,rusher"),
  ({"names": ("macro",)}, "player 'macro': expected one of passive, rusher"),
  ({"opponents": ("macro",)}, "player 'macro': expected one of passive, rusher"),
  ({"opponents": ("rusher", "rusher")}, "opponents: expected different names, found rusher,rusher"),
  ({"races": (-1, 2)}, "race 'zerg': expected one of terran, which tier 'mini' has"),
])
def test_other_demonstrators_are_refused(tmp_path, change, message):
  with pytest.raises(UserError, match=message):
    demonstrations.record(tmp_path / "games", DEMONSTRATORS._replace(**change), 2)
  assert not (tmp_path / "games").exists()


@pytest.mark.parametrize("words, message", [
  (("--races", "protoss"),
   "--races: expected two of random, terran, protoss, zerg; found 'protoss'"),
  (("--races", "protoss,orc"), "found 'protoss,orc'"),
  (("--races", "protoss,random"), "race 'protoss': expected one of terran, which tier 'mini' has"),
  (("--opponents", "L7"), "player 'L7': expected one of passive, rusher"),
  (("--nostudent_z",), "--nostudent_z: expected --student, who observes z"),
  (("--run_dir", "/nowhere/typo"),
   "--run_dir: expected the directory of a run, found none at '/nowhere/typo'"),
  (("--run_dir=",), "--run_dir: expected the directory of a run, found none at ''"),
])
def test_wrong_choices_are_one_line(tmp_path, words, message):
  assert message in refusal(demonstrate, "--dataset", tmp_path / "games", *words)
  assert not (tmp_path / "games").exists()


def test_the_command_line_gives_one_line(tmp_path):
  (tmp_path / "notes").write_text("mine")
  error = refusal(demonstrate, "--dataset", tmp_path)
  assert "holds 'notes' and no games.json: choose a new folder" in error
