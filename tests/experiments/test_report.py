"""The launch file of the report, as a process."""

import pathlib
import subprocess
import sys

from starleague.common import results
from starleague.common.results import Row
from tests.processes import HANG_S

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_report_is_written_and_named(tmp_path):
  results.append(tmp_path / "results.csv", [Row(1.0, 1, "score/eval/x", 0.5, 0.4, 0.6)])
  done = subprocess.run(
    [sys.executable, "-m", "starleague.experiments.report", str(tmp_path)], cwd=ROOT,
    capture_output=True, text=True, timeout=HANG_S)
  assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/report.html\n", "")
  assert (tmp_path / "report.html").stat().st_size > 1_000_000
