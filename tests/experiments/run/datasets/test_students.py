"""Labelled games of a student: contents, continuation, and refused arguments."""

import re

import jax
import numpy as np
import pytest

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints, games
from starleague.data.games import files
from starleague.environments.skirmish.games import dm_environment
from starleague.experiments import demonstrate
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import demonstrations, students
from tests.data.games import recorded_games
from tests.data.unpacking import unpack
from tests.experiments.launch import refusal

TEACHERS = demonstrations.Demonstrators("mini", ("demo_5000", "demo_7000"), 3)
PLAYERS = TEACHERS._replace(names=("demo_7000",), opponents=("rusher", "passive"))
MMR = {"demo_5000": 5000, "demo_7000": 7000}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
  """A run whose imitator and initial agent have random weights, those of keys 0 and 1."""
  path = tmp_path_factory.mktemp("runs") / "student"
  path.mkdir()
  settings.save(settings.complete({}), path)
  mini = agent_config.mini()
  for key, name in enumerate((run_files.IMITATED, run_files.INITIAL)):
    checkpoints.save_params(path / name, jax.device_get(
      agent.make_policy(mini).init(jax.random.key(key))), mini)
  return path


@pytest.fixture(scope="module")
def folder(run_dir, tmp_path_factory):
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(demonstrations.SIZES, "mini", demonstrations.Sizes("mini", 4, 4, 32))
    path = tmp_path_factory.mktemp("data") / "labels"
    seen = []
    student = students.load(run_dir, TEACHERS, 0.0)
    students.record(path, TEACHERS, student, 11, lambda written: seen.append(written.games))
    assert seen == [8, 11]
    yield path


def test_a_students_games_are_others_than_the_demonstrations_of_its_seed(monkeypatch):
  """Both plays of a batch, by the teachers and by the student, are of equal games."""
  keys = []

  class Program:
    def init(self, key, opponents, conditions):
      keys.append(tuple(jax.random.key_data(key).tolist()))

    def run(self, *arguments):
      return None, None, None

  for module in (demonstrations, students):
    monkeypatch.setattr(module, "make_program", lambda *arguments: Program())
  monkeypatch.setattr(demonstrations.shards, "to_host", lambda played: played)
  student, streams = students.Student((), agent_config.mini(), 0.0), 130
  for stream in range(streams):
    next(demonstrations.play(TEACHERS, stream))
    for _ in range(2):
      students._begin(TEACHERS, student, stream)
  recorded, first, second = keys[::3], keys[1::3], keys[2::3]
  assert first == second and len(set(recorded)) == len(set(first)) == streams
  assert not set(recorded) & set(first)


@pytest.mark.slow
def test_a_games_sides_are_the_students_and_its_opponents(folder):
  found = games.read(folder)
  episodes = found.episodes
  assert sorted(set(episodes.game)) == list(range(11)) and len(episodes.game) == 22
  for row in range(0, 22, 2):
    assert episodes.name[row] == files.STUDENT and episodes.name[row + 1] in MMR
    assert episodes.mmr[row] in MMR.values()
    assert episodes.mmr[row + 1] == MMR[episodes.name[row + 1]]
    assert episodes.result[row] <= 0  # random weights never win
  assert len(set(zip(episodes.mmr[::2], episodes.name[1::2], strict=True))) == 4


@pytest.mark.slow
def test_labels_are_legal_actions_and_z_is_that_of_the_teachers_game(folder):
  found = games.read(folder)
  episodes, library = found.episodes, games.library(found, np.arange(22))
  acting, orders = [], set()
  for row in range(0, 22, 2):
    steps = unpack(games.steps(found, row), found.config, episodes.decisions[row] + 1)
    observation, action = steps.observation, steps.action
    decisions = episodes.decisions[row]
    functions = action.function[:decisions]
    assert observation.available_actions[np.arange(decisions), functions].all()
    assert ((action.delay[:decisions] >= 1) & (action.delay[:decisions] <= 127)).all()
    acting.append((functions != 0).mean())
    # The student's own actions are what its next observation shows.
    assert (observation.last_function[1:] != functions).mean() > 0.3
    z = library.z.build_order[row]
    orders.add(tuple(z))
    assert z[0] > 0  # teachers build, random weights do not get far
    np.testing.assert_array_equal(observation.statistics.build_order,
                                  np.repeat(z[None], decisions + 1, 0))
    assert (steps.privileged.executed.build_order[-1] != z).any()
  assert 0.1 < np.mean(acting) < 0.95 and len(orders) > 3


@pytest.mark.slow
def test_a_dataset_is_continued_by_another_student(folder, run_dir):
  student = students.load(run_dir, TEACHERS, 0.5)
  assert students.record(folder, TEACHERS, student, 13).games == 13
  assert sorted(set(games.read(folder).episodes.game)) == list(range(13))
  with pytest.raises(files.GamesError, match="another origin: expected 'labels of demo_5000, "):
    students.record(folder, TEACHERS._replace(seed=4), student, 20)


@pytest.mark.slow
def test_the_included_weights_play_without_z_against_chosen_opponents(tmp_path, monkeypatch):
  monkeypatch.setitem(demonstrations.SIZES, "mini", demonstrations.Sizes("mini", 4, 4, 32))
  student = students.load("pretrained", PLAYERS, 0.0, z=False)
  path = tmp_path / "labels"
  students.record(path, PLAYERS, student, 8)
  found = games.read(path)
  episodes = found.episodes
  assert set(episodes.name[::2]) == {files.STUDENT} and set(episodes.mmr[::2]) == {7000}
  assert set(episodes.name[1::2]) == {"rusher", "passive"}
  assert not any(z[::2].any() for z in games.library(found, np.arange(16)).z)
  won = episodes.result[::2][np.array(episodes.name[1::2]) == "passive"]
  assert won.mean() > 0.5  # random weights never win


@pytest.fixture(scope="module")
def own_games(tmp_path_factory):
  """Games of the included weights, whose own actions are recorded."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(demonstrations.SIZES, "mini", demonstrations.Sizes("mini", 4, 4, 32))
    path = tmp_path_factory.mktemp("data") / "own"
    student = students.load_untaught("pretrained", PLAYERS)
    assert student.config.temperature == pytest.approx(0.75 * agent_config.mini().temperature)
    students.record(path, PLAYERS, student, 16)
    with pytest.raises(files.GamesError, match="another origin: expected 'own actions of a "):
      students.record(path, PLAYERS._replace(seed=4), student, 20)
    yield path


@pytest.mark.slow
def test_an_agents_own_actions_and_executed_z_are_recorded(own_games):
  found = games.read(own_games)
  episodes, library = found.episodes, games.library(found, np.arange(32))
  assert set(episodes.mmr[::2]) == {7000} and episodes.result[::2].mean() > 0.5
  for row in range(0, 32, 2):
    decisions = episodes.decisions[row]
    steps = unpack(games.steps(found, row), found.config, decisions + 1)
    observation, action = steps.observation, steps.action
    # Its actions are what its next observations show, unless a wait was merged between them.
    taken, shown = action.function[:decisions - 1], observation.last_function[1:-1]
    assert (taken == shown)[shown != 0].all() and (shown != 0).mean() > 0.3
    np.testing.assert_array_equal(
      action.delay[:decisions - 1], np.diff(observation.game_loop[:-1]))
    order = library.z.build_order[row]
    assert order[0] > 0
    np.testing.assert_array_equal(
      observation.statistics.build_order, np.repeat(order[None], decisions + 1, 0))


@pytest.mark.slow
@pytest.mark.parametrize("seconds, wins", [(0.0, True), (None, False)])
def test_a_teacher_wins_the_games_that_it_takes_over(tmp_path, monkeypatch, seconds, wins):
  monkeypatch.setitem(demonstrations.SIZES, "mini", demonstrations.Sizes("mini", 4, 4, 32))
  options = students.Options("pretrained", None, None, z=True, taught=False, teacher_from=seconds)
  student = students.choose(options, PLAYERS)
  beginner = agent.make_policy(student.config).init(jax.random.key(0))
  students.record(tmp_path / "games", PLAYERS, student._replace(params=beginner), 8)
  episodes = games.read(tmp_path / "games").episodes
  against = np.array(episodes.name[1::2])
  assert set(episodes.name[::2]) == {files.STUDENT} and set(against) == {"rusher", "passive"}
  won = episodes.result[::2][against == "passive"] > 0
  assert won.all() if wins else not won.any()


def test_a_teacher_takes_over_at_the_step_of_a_time():
  options = students.Options("pretrained", None, None, z=True, taught=False, teacher_from=60.0)
  assert options.takes_over == 168  # 1,344 loops
  assert options._replace(teacher_from=0.1).takes_over == 1  # not before its time


def test_the_origin_says_what_must_stay():
  student = students.Student((), agent_config.mini(), 0.0)
  own = student._replace(taught=False, z=False)
  expected = {
    student: "labels of demo_7000 for a student",
    student._replace(z=False): "labels of demo_7000 for a student without z",
    own: "own actions of a student, MMR of demo_7000",
    own._replace(takes_over=168):
      "games of a student continued from environment step 168 by demo_7000"}
  for one, kind in expected.items():
    assert students.origin_of(PLAYERS, one) == f"{kind} against rusher, passive, seed 3"


@pytest.mark.parametrize("has_z", [True, False])
def test_labels_of_earlier_versions_go_on_with_their_z(tmp_path, has_z):
  """The same origin stood for labels with and without z."""
  student, mini, path = students.Student((), agent_config.mini(), 0.0), "mini", tmp_path / "labels"
  with files.GamesWriter(path, agent_config.mini(), mini, dm_environment.map_names(mini),
                         students.origin_of(PLAYERS, student)) as writer:
    z = {} if has_z else {"z": types.zeros(types.statistics_spec())}
    writer.add([recorded_games.episode(agent_config.mini(), 3, 0, name=files.STUDENT, **z),
                recorded_games.episode(agent_config.mini(), 3, 1, game=0, player=1)])
  found = students.record(path, PLAYERS, student._replace(z=has_z), 1)
  assert found.games == 1 and found.origin == students.origin_of(PLAYERS, student)
  kind, flag = ("with", "student_z") if has_z else ("without", "nostudent_z")
  with pytest.raises(files.GamesError, match=(
      f"labels has labels for a student {kind} z, found --student_z={not has_z}; continue it with "
      f"--{flag}, or choose another folder.$")):
    students.record(path, PLAYERS, student._replace(z=not has_z), 1)


def test_other_takeover_times_are_other_datasets(tmp_path):
  student = students.Student((), agent_config.mini(), 0.0, z=False, taught=False, takes_over=168)
  assert students.record(tmp_path / "games", PLAYERS, student, 0).games == 0
  with pytest.raises(files.GamesError, match=(
      "another origin: expected '.* step 84 by .*', found '.* step 168 by demo_7000 against")):
    students.record(tmp_path / "games", PLAYERS, student._replace(takes_over=84), 0)


@pytest.mark.parametrize("words, message", [
  (("--players", "demo_7000,macro"), "player 'macro': expected one of passive, rusher, .* mini"),
  (("--players", "random_player"), "teacher 'random_player': it gives random actions; expected "),
  (("--preset", "small", "--players", "demo_7000"),
   "config key 'preset': expected 'small', that of the teachers, found 'mini'"),
])
def test_wrong_teachers_are_one_line(run_dir, tmp_path, words, message):
  error = refusal(demonstrate, "--dataset", tmp_path / "labels", "--student", run_dir, *words)
  assert re.search(message, error), error
  assert not (tmp_path / "labels").exists()


@pytest.mark.parametrize("name, taught, seed", [
  (None, True, 0), ("initial", True, 1), ("initial", False, 1), ("imitation", False, 0)])
def test_the_student_is_the_chosen_agent_of_a_run(run_dir, name, taught, seed):
  expected = agent.make_policy(agent_config.mini()).init(jax.random.key(seed))
  options = students.Options(str(run_dir), name, None, z=False, taught=taught, teacher_from=None)
  student = students.choose(options, PLAYERS)
  jax.tree.map(np.testing.assert_array_equal, student.params, expected)
  assert student.taught == taught


def test_a_run_without_an_imitator_is_one_line(tmp_path):
  settings.save(settings.complete({}), tmp_path)
  error = refusal(demonstrate, "--dataset", tmp_path / "labels", "--student", tmp_path)
  assert f"{tmp_path} has no weights 'imitation': expected them in" in error


@pytest.mark.parametrize("words, message", [
  (("--teacher_share", "0.5"), "--teacher_share: expected --student, whose decisions are shared"),
  (("--student_agent", "initial"), "--student_agent: expected --student, a run whose agent plays"),
  (("--student_agent", "trained", "--student", "pretrained"),
   "--student_agent=trained: expected --student with a run's directory, found 'pretrained'"),
  (("--labels", "student"), "--labels=student: expected --student, whose actions are recorded"),
  (("--teacher_from", "60"),
   "--teacher_from: expected --student, whose game the teacher takes over"),
  (("--student", "pretrained", "--teacher_from", "60"),
   "--teacher_from: expected --labels=student, found teacher: a teacher that labels takes over no "
   "game"),
  (("--labels", "student", "--student", "pretrained", "--teacher_share", "0.5"),
   "--labels=student: expected no --teacher_share, found 0.5: there is no teacher"),
])
def test_options_that_need_a_student_or_a_teacher(tmp_path, words, message):
  assert refusal(demonstrate, "--dataset", tmp_path / "labels", *words) == f"error: {message}"


def test_an_untrained_runs_own_actions_are_one_line(run_dir, tmp_path):
  error = refusal(demonstrate, "--dataset", tmp_path / "labels", "--student", run_dir,
                  "--labels", "student")
  assert f"{run_dir} has no weights 'trained': expected them in" in error
