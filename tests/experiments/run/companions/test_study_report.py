"""The files of a study whose runs have known results."""

import json

import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.experiments.configs.studies import Arm, Metric
from starleague.experiments.run.companions import studies, study_report
from tests.experiments.run import small_studies
from tests.viewers.pages import check_self_contained, plots_of


@pytest.fixture
def every(tmp_path):
  """Runs of which the last has not finished; returns of 1, 3 (plain) and -2 (none)."""
  runs = small_studies.make_runs(tmp_path)
  for run, value in zip(runs, (1.0, -2.0, 3.0), strict=False):
    small_studies.finish(run, value, ((100, 0.0), (200, value)))
  return runs


def test_a_mean_curve_covers_the_steps_of_all_seeds():
  curve = study_report.mean_curve("a", [(np.array([0, 100]), np.array([0.0, 10.0])),
                                        (np.array([10, 80]), np.array([3.0, 10.0]))])
  assert (curve.x[0], curve.x[-1], len(curve.x)) == (10, 80, 60)
  # At 80 the seeds have 8 and 10: mean 9, and 12.706 times the standard error of 1.
  assert (curve.y[0], curve.y[-1]) == (2.0, 9.0)
  assert curve.high[-1] == pytest.approx(9 + 12.706, abs=1e-3)
  assert study_report.mean_curve("b", [(np.array([]), np.array([]))]) is None


def test_the_mean_over_steps_is_that_of_the_area_under_a_curve(monkeypatch):
  monkeypatch.delattr(np, "trapz", raising=False)  # as in NumPy 2.4
  steps, values = np.array([0, 100, 400]), np.array([0.0, 2.0, 4.0])
  assert study_report._mean_over_steps(steps, values) == (100 * 1 + 300 * 3) / 400
  assert study_report._mean_over_steps(steps[:1], values[:1]) == float("inf")


def test_the_table_has_means_and_seeds(every, tmp_path):
  lines = study_report.write(small_studies.STUDY, every, tmp_path)
  rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:6]]
  assert rows[0] == ["", "return of the evaluation", "of each seed", "million steps",
                     "thousand updates", "CPU minutes", "thousand parameters"]
  # Mean 2, standard error 1 of two seeds.
  assert rows[2] == ["V-trace", "2.0 (-10.7 to 14.7)", "1.0, 3.0", "0.00", "0.03", "1.50",
                     "4.32"]
  assert rows[3] == ["<no> correction", "-2.0", "-2.0", "0.00", "0.03", "1.50", "4.32"]
  assert lines[6:] == [""]  # nothing can be tested with one seed


def test_differences_are_from_the_first_arm(every, tmp_path):
  small_studies.finish(every[3], -4.0)
  lines = study_report.write(small_studies.STUDY, every, tmp_path)
  assert lines[-1].startswith(
    "| V-trace -> <no> correction | return of the evaluation | -5 (-11.1 to +1.08) |")
  document = json.loads((tmp_path / "study.json").read_text())
  assert document["differences"][0][1:4] == ["none", "plain", -5.0]


def test_all_files_are_written(every, tmp_path):
  study_report.write(small_studies.STUDY, every, tmp_path)
  document = json.loads((tmp_path / "study.json").read_text())
  assert [(run["arm"], run["seed"], run["values"]) for run in document["runs"]] == [
    ("plain", 3, [1.0]), ("none", 3, [-2.0]), ("plain", 5, [3.0])]
  assert document["runs"][0].items() >= {
    "evaluation": {"": {"mean": 1.0, "low": 0.0, "high": 2.0, "episodes": 16}},
    "steps": 2048, "updates": 30, "seconds": 60.0, "cpu_seconds": 90.0, "commit": "abc",
    "date": "2026-11-24", "machine": "a machine"}.items()
  assert document["arms"]["none"]["config"]["impala"]["correction"] == "none"
  assert document["curves"][0]["plain"]["mean"][-1] == 2.0
  assert document["curves"][0]["none"]["low"] == [None] * 60  # one seed
  page = (tmp_path / "study.html").read_text()
  check_self_contained(page)
  assert "<h1>Small &amp; fast</h1>" in page and "3 of 4 runs have finished" in page
  assert len(plots_of(page)) == 2
  picture = (tmp_path / "study.svg").read_text()
  assert picture.startswith("<svg") and picture.count("<polyline") == 2
  assert "3 of 4 runs" in (tmp_path / "study.md").read_text()


def test_a_value_that_is_not_reached_is_null_in_json(tmp_path):
  study = small_studies.STUDY._replace(metrics=(Metric(""),))
  every = small_studies.make_runs(tmp_path)
  small_studies.finish(every[0], 1.0, ((100, 0.0),))  # a mean over steps takes two points
  study_report.write(study, every, tmp_path)
  document = json.loads((tmp_path / "study.json").read_text(), parse_constant=pytest.fail)
  assert [run["values"] for run in document["runs"]] == [[None]]


def test_a_metric_that_no_run_has_is_named(every, tmp_path):
  study = small_studies.STUDY._replace(metrics=(Metric("score/eval"),))
  with pytest.raises(UserError, match="no 'score/eval', a metric of the study; found "
                                      "return/evaluation, return/train, total/steps"):
    study_report.write(study, every, tmp_path)


def test_a_population_is_reported_by_its_members(tmp_path):
  study = small_studies.STUDY._replace(
    arms=(Arm("pbt", "population", population={"members": 2, "selection": "truncation"}),),
    metrics=(Metric(curve="return/train/best", digits=1),
             Metric("return/evaluation/mean", "mean", "return/train/mean", digits=2)))
  every = studies.make_runs(study, {}, tmp_path)
  for run, best in zip(every, (2.0, 4.0), strict=True):
    small_studies.finish_population(run, (best, 1.0), ((100, 0.0), (200, best)))
  lines = study_report.write(study, every, tmp_path)
  cells = [cell.strip() for cell in lines[4].strip("|").split("|")]
  assert cells[:5] == ["population", "3.0 (-9.7 to 15.7)", "2.0, 4.0", "2.00 (-4.35 to 8.35)",
                       "1.50, 2.50"]
  curves = json.loads((tmp_path / "study.json").read_text())["curves"]
  assert [curve["pbt"]["mean"][-1] for curve in curves] == [3.0, 1.5]


def test_each_metric_has_columns_and_panels(every, tmp_path):
  study = small_studies.STUDY._replace(metrics=(
    Metric(digits=1), Metric("total/steps", "steps", "loss/value", "loss", 0),
    Metric("", "mean", digits=2)))
  lines = study_report.write(study, every, tmp_path)
  rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:6]]
  assert rows[0][:5] == ["", "return of the evaluation", "of each seed", "steps", "of each seed"]
  assert rows[2][3:5] == ["200 (200 to 200)", "200, 200"]
  assert rows[2][6] == "0.50, 1.50"  # the middle of lines from 0 to 1 and 3
  # The first and the last share their curve.
  assert len(plots_of((tmp_path / "study.html").read_text())) == 5
  assert (tmp_path / "study.svg").read_text().count(">loss<") == 1
  document = json.loads((tmp_path / "study.json").read_text())
  assert document["runs"][0]["values"] == [1.0, 200.0, 0.5] and document["curves"][1] == {}
