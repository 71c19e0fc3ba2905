"""A run with a figure of every kind."""

import json

import pytest

from starleague.common import results
from tests.viewers.report.rows import ROWS


@pytest.fixture
def run_dir(tmp_path):
  folder = tmp_path / "mini & <b>"
  folder.mkdir()
  results.append(folder / "results.csv", ROWS)
  (folder / "config.json").write_text(json.dumps(
    {"preset": "mini", "note": "{{PLOTLY}}</script>", "learner": {"rate": 3e-5, "sizes": [1, 2]}}))
  return folder
