"""The progress display on a terminal and as log lines."""

import io
import math
import re

import pytest
from rich.console import Console

from starleague.common.progress import Progress
from starleague.experiments.run.progress import display
from starleague.experiments.run.progress.display import Display, Score, Snapshot

SNAPSHOT = Snapshot(
  name="mini run", elapsed_seconds=784.4, progress=Progress("training", 754.4, 1800.0, "s"),
  updates=1234,
  steps_produced=1_234_567, steps_learnt=2_300_000, games=812, actor_rate=1640.2,
  learner_rate=3012.0, waiting=0.62, losses={"policy": 0.01234, "total": math.nan},
  scores={"random legal": Score(0.97, 0.9, 1.0, 100), "rush": Score(0.2, 0.1, 0.3, 90),
          "an opponent with an exceedingly long name": Score(0.5, 0.4, 0.6, 10)},
  processes={"learner": "running", "actor 1": "waiting"})


def _text(snapshot, width=80):
  console = Console(file=io.StringIO(), width=width)
  console.print(display.render(snapshot))
  return console.file.getvalue()


def test_render_shows_every_figure_in_80_columns():
  text = _text(SNAPSHOT)
  for expected in ("mini run", "13m04s", "12m34s of 30m00s", "1.23 M", "2.30 M", "812",
                   "1 640", "3 012", "1 234", "62%", "0.0123", "nan", "learner", "actor 1 waiting"):
    assert expected in text, expected
  assert re.search(r"random legal +97% +90% to 100% +100", text)
  assert re.search(r"rush +20% +10% to 30% +90", text)
  assert max(len(line) for line in text.splitlines()) == 80


def test_render_draws_intervals_to_scale():
  """21 cells from 0 to 1: 0.2 is the fifth, 0.1 and 0.3 the third and the seventh."""
  line = next(line for line in _text(SNAPSHOT).splitlines() if "rush" in line)
  assert "··━━●━━···┊··········" in line


def test_render_of_a_new_run():
  setup = Progress("setup", detail="compiling the update")
  text = _text(Snapshot("new", 0.0, setup, 0, 0, 0, 0, 0.0, 0.0, 0.0, {}, {}))
  assert "0s" in text and "compiling the update" in text
  assert " of " not in text and "against" not in text


def test_imitation_shows_what_is_learnt_and_nothing_played():
  imitation = SNAPSHOT._replace(progress=Progress("imitation", 60.0, 300.0, "s"),
                                losses={"cross_entropy": 2.5}, processes={}, scores={})
  text = _text(imitation)
  assert "1m00s of 5m00s" in text and "steps learnt" in text and "cross_entropy" in text
  assert "steps played" not in text
  assert display.log_line(imitation) == (
    "run=mini_run elapsed=13m04s phase=imitation progress=1m00s/5m00s updates=1234 learnt=2300000 "
    "learner_rate=3012/s waiting=62% loss/cross_entropy=2.5")


def test_render_past_the_training_time_and_without_games():
  late = SNAPSHOT._replace(
    progress=Progress("training", 2000.0, 1800.0, "s"),
    scores={"x": Score(math.nan, math.nan, math.nan, 0)})
  text = _text(late)
  assert "33m20s of 30m00s" in text and "nan%" in text


def test_render_of_the_evaluation_shows_its_games():
  text = _text(SNAPSHOT._replace(
    progress=Progress("evaluation", 480, 1600, "games", "trained agent")))
  assert "480 of 1 600 games" in text and "trained agent" in text
  assert max(len(line) for line in text.splitlines()) == 80


def test_log_line_splits_at_spaces():
  fields = dict(field.split("=") for field in display.log_line(SNAPSHOT).split(" "))
  assert fields == {
    "run": "mini_run", "elapsed": "13m04s", "phase": "training",
    "progress": "12m34s/30m00s", "updates": "1234",
    "steps": "1234567", "learnt": "2300000", "games": "812", "actor_rate": "1640/s",
    "learner_rate": "3012/s", "waiting": "62%", "loss/policy": "0.0123", "loss/total": "nan",
    "score/random_legal": "0.97[0.90,1.00]", "score/rush": "0.20[0.10,0.30]",
    "score/an_opponent_with_an_exceedingly_long_name": "0.50[0.40,0.60]",
    "process/actor_1": "waiting"}


@pytest.mark.parametrize(("progress", "line"), [
  (Progress("setup", detail="compiling the update"), "phase=setup doing=compiling_the_update"),
  (Progress("evaluation", 480, 1600, "games", "trained agent"),
   "phase=evaluation progress=480/1600_games doing=trained_agent"),
  (Progress("report"), "phase=report")])
def test_log_lines_of_other_phases_show_their_own_progress(progress, line):
  found = display.log_line(SNAPSHOT._replace(progress=progress))
  assert found == f"run=mini_run elapsed=13m04s {line} process/actor_1=waiting"


def test_a_new_phase_is_logged_at_once():
  file = io.StringIO()
  with Display(file, clock=lambda: 0.0) as shown:
    shown.update(SNAPSHOT)
    for games in (0, 1, 2):
      shown.update(SNAPSHOT._replace(progress=Progress("evaluation", games, 2, "games")))
  phases = re.findall(r"phase=(\w+) progress=(\S+)", file.getvalue())
  assert phases == [("training", "12m34s/30m00s"), ("evaluation", "0/2_games"),
                    ("evaluation", "2/2_games")]


def test_without_a_terminal_one_line_per_interval_and_one_at_the_end():
  now = [0.0]
  file = io.StringIO()
  with Display(file, interval_seconds=10.0, clock=lambda: now[0]) as shown:
    for second in range(26):
      now[0] = float(second)
      shown.update(SNAPSHOT._replace(updates=second))
    shown.print("a word")
  lines = file.getvalue().splitlines()
  updates = [re.search(r"updates=(\d+)", line) for line in lines]
  assert [found and int(found.group(1)) for found in updates] == [0, 10, 20, None, 25]
  assert lines[3] == "a word" and "\x1b" not in file.getvalue()


def test_without_a_terminal_the_last_line_is_not_repeated():
  file = io.StringIO()
  with Display(file, clock=lambda: 0.0) as shown:
    shown.update(SNAPSHOT)
  assert len(file.getvalue().splitlines()) == 1


def test_on_a_terminal_it_draws_and_restores_the_cursor(monkeypatch):
  class Terminal(io.StringIO):
    def isatty(self):
      return True

  monkeypatch.setenv("TERM", "xterm-256color")
  monkeypatch.setenv("COLUMNS", "100")
  for name in ("NO_COLOR", "TTY_COMPATIBLE", "FORCE_COLOR"):
    monkeypatch.delenv(name, raising=False)
  file = Terminal()
  with pytest.raises(KeyboardInterrupt):
    with Display(file) as shown:
      shown.update(SNAPSHOT)
      shown.print("a word")
      raise KeyboardInterrupt
  text = file.getvalue()
  assert "1.23 M" in text and "a word" in text
  assert text.index("\x1b[?25l") < text.rindex("\x1b[?25h")  # hidden, then shown again


@pytest.mark.parametrize(("seconds", "text"), [
  (0, "0s"), (59.4, "59s"), (59.6, "1m00s"), (3599.9, "1h00m"), (11040, "3h04m"),
  (183600, "2d03h"), (-1, "0s")])
def test_duration(seconds, text):
  assert display.duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [
  (0, "0"), (950, "950"), (9500, "9 500"), (9999.4, "9 999"), (9999.6, "10.0 k"), (12345, "12.3 k"),
  (999_600, "1.00 M"), (123_000, "123 k"), (4_560_000, "4.56 M"), (7.89e9, "7.89 G")])
def test_count(value, text):
  assert display.count(value) == text
