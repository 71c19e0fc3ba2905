"""A whole run: its order, its end, its error, its page."""

import pytest

from starleague.common import run_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import league_run, process_runner, supervision, whole_runs


@pytest.fixture
def calls(monkeypatch):
  """The calls of a run, whose training ends as `calls.end` says."""
  class Calls(list):
    end = None

  found = Calls()

  def train(config, run_dir, *rest):
    found.append("train")
    if found.end is not None:
      raise found.end

  monkeypatch.setattr(league_run, "check", lambda config: found.append("check"))
  monkeypatch.setattr(supervision, "prepare",
                      lambda config, run_dir, league: found.append(f"prepare {league}"))
  monkeypatch.setattr(supervision, "train", train)
  monkeypatch.setattr(league_run, "train", train)
  monkeypatch.setattr(whole_runs.league_page, "write", lambda run_dir: run_dir / "league.html")
  return found


@pytest.mark.parametrize("league, order", [
  (False, ["prepare False", "train"]), (True, ["check", "prepare True", "train"])])
def test_a_run_comes_to_its_end_and_names_its_pages(league, order, calls, tmp_path, capsys):
  (tmp_path / run_files.LEAGUE).write_text("")
  (tmp_path / "report.html").write_text("")
  assert whole_runs.execute(settings.complete({}), tmp_path, league=league)
  assert calls == order
  pages = [f"page: {tmp_path}/league.html"] * league
  assert capsys.readouterr().out.splitlines() == [*pages, f"report: {tmp_path}/report.html"]


@pytest.mark.parametrize("league", [False, True])
def test_a_run_that_cannot_record_its_demonstrations_is_refused_before_it_begins(
    league, calls, tmp_path):
  values = {"preset": "small"}  # whose games are recorded at another tier than mini's
  with pytest.raises(settings.SettingsError, match="'environment.tier': expected 'default' to rec"):
    whole_runs.execute(settings.complete({}, values), tmp_path / "run", league=league)
  assert calls == ["check"] * league and not (tmp_path / "run").exists()
  for valid in ({"init": "random"}, {"init": "pretrained"}):
    assert whole_runs.execute(settings.complete({}, values | valid), tmp_path / "run")
  (tmp_path / "run" / run_files.INITIAL).mkdir()
  assert whole_runs.execute(settings.complete({}, values), tmp_path / "run")


CHECKPOINT = "checkpoints/000000000001"


@pytest.mark.parametrize("saved, what", [
  (CHECKPOINT, "resumes from the last checkpoint in"),
  (f"learners/terran-main-0/{CHECKPOINT}", "resumes from the last checkpoint in"),
  ("learners/terran-main-0/checkpoints",
   "begins the training, of which there is no checkpoint yet, in")])
def test_a_run_that_ends_early_tells_what_the_same_command_does(
    saved, what, calls, tmp_path, capsys):
  (tmp_path / saved).mkdir(parents=True)
  calls.end = KeyboardInterrupt()
  assert not whole_runs.execute(settings.complete({}), tmp_path)
  assert capsys.readouterr().out == f"stopped; the same command {what} {tmp_path}\n"
  calls.end = process_runner.ProcessFailed("actor 0", -9, "process 'actor 0' was killed")
  with pytest.raises(SystemExit) as ended:
    whole_runs.execute(settings.complete({}), tmp_path)
  assert ended.value.code == (
    f"error: process 'actor 0' was killed\nthe same command {what} {tmp_path}")
