import pytest

from starleague.common import progress
from starleague.common.progress import Progress


def test_progress_survives_the_round_trip(tmp_path):
  written = Progress(progress.EVALUATION, 480.0, 1600.0, "games", "trained agent")
  progress.write(tmp_path / "run", written)
  assert progress.read(tmp_path / "run") == written


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"phase": "training"}', "[" * 10_000,
                                  '{"phase": 1, "done": "x", "total": 0, "unit": 0, "detail": 0}'])
def test_a_missing_or_damaged_file_counts_as_the_setup(tmp_path, text):
  if text is not None:
    (tmp_path / progress.FILE_NAME).write_text(text)
  assert progress.read(tmp_path) == Progress(progress.SETUP)
