"""Names of a run's files: no two files share one, and players have directories of their own."""

import pathlib

from starleague.common import run_files

RUN = pathlib.Path("runs/mini")


def test_names_differ_and_are_plain():
  values = {name: value for name, value in vars(run_files).items() if name.isupper()}
  names = [value for name, value in values.items() if name not in ("PLAYER", "AGENTS")]
  assert len(names) >= 8 and len(set(names)) == len(names)
  assert all(pathlib.Path(name).name == name for name in names)


def test_a_run_in_a_folder_named_as_that_of_players_is_a_run(tmp_path):
  run = tmp_path / "learners" / "mini"
  assert run_files.run_of(run) == tmp_path
  run.mkdir(parents=True)
  (run / run_files.CONFIG).touch()
  assert run_files.run_of(run) == run


def test_directories_of_players():
  assert run_files.learner_dir(RUN, "main_0") == RUN / "learners" / "main_0"
  assert run_files.run_of(run_files.learner_dir(RUN, "main_0")) == RUN == run_files.run_of(RUN)
  assert run_files.snapshot_name("main_0_1") == "players/main_0_1"
  assert run_files.snapshot_path(RUN, "main_0_1") == RUN / "players" / "main_0_1"
