"""The report: its figures, its curves, and that it needs nothing but itself."""

import html.parser
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from starleague.common import results
from starleague.common.results import Row
from starleague.viewers.report import figures as report_figures
from starleague.viewers.report import page as report
from tests.viewers.pages import Resources

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = [
  Row(0.0, 0, "score/random/rush", 0.1, 0.05, 0.2),
  Row(60.0, 10, "score/eval/rush", 0.125, 0.0625, 0.25),
  Row(300.0, 50, "score/eval/rush", 0.75, 0.625, 0.875),
  Row(120.0, 20, "score/train/rush", 0.5, 0.25, 0.75),
  Row(120.0, 20, "score/train/only trained", 0.5, 0.25, 0.75),
  Row(60.0, 10, "loss/policy", 2.0), Row(120.0, 20, "loss/policy", math.nan),
  Row(300.0, 50, "loss/policy", 1.0),
  Row(60.0, 10, "entropy/function", 0.5), Row(300.0, 50, "entropy/function", 0.375),
  Row(60.0, 10, "entropy/delay", 0.25), Row(300.0, 50, "entropy/delay", 0.125),
  Row(300.0, 50, "kl/function", 0.25), Row(300.0, 50, "mean_value/winloss", -0.5),
  Row(300.0, 50, "value/winloss", 0.25), Row(300.0, 50, "illegal/delay", 0.0),
  Row(300.0, 50, "speed/actor", 900.0), Row(300.0, 50, "speed/learner", 1500.0),
  Row(300.0, 50, "speed/waiting", 0.375),
  Row(300.0, 50, "total/steps", 240_000.0), Row(300.0, 50, "total/games", 123.0),
  Row(300.0, 50, "odd_kind/first", 7.0)]


@pytest.fixture
def run_dir(tmp_path):
  folder = tmp_path / "mini & <b>"
  folder.mkdir()
  results.append(folder / "results.csv", ROWS)
  (folder / "config.json").write_text(json.dumps(
    {"preset": "mini", "note": "{{PLOTLY}}</script>", "learner": {"rate": 3e-5, "sizes": [1, 2]}}))
  return folder


def _plots(page):
  """The plots of a page by their heading."""
  found = re.findall(
    r"<div class='card'>(?:<h3>(.*?)</h3>)?(?:<p class='warning'>.*?</p>)?<div class='plot'>"
    r"<script type='application/json'>(.*?)</script>", page)
  return {title: json.loads(data) for title, data in found}


def _text(page):
  """What a reader sees, without scripts and styles, spaces collapsed."""
  page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
  return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))


def test_page_stands_alone_and_is_well_formed(run_dir):
  path = report.write_report(run_dir)
  assert path == run_dir / "report.html"
  assert sorted(file.name for file in run_dir.iterdir()) == [
    "config.json", "report.html", "results.csv"]
  page = path.read_text()
  parser = Resources()
  parser.feed(page)
  assert parser.loaded == [] and parser.open == []
  assert "@import" not in re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
  assert page.count("Plotly.newPlot(place") == 1
  assert "<title>mini &amp; &lt;b&gt; - Starleague</title>" in page
  assert "{{PLOTLY}}&lt;/script&gt;" in page  # a setting is text, whatever it looks like


def test_key_figures_and_standings(run_dir):
  text = _text(report.write_report(run_dir).read_text())
  for expected in (
      "time 5m00s", "agent steps played 240 k", "games 123", "updates 50",
      "played a second 800 steps, run average",  # 240 000 in 300 s, not the last 900
      "learnt a second 1 500 steps, at the end",
      "rush 10% 5% to 20% 12% 6% to 25% 75% 62% to 88% +63 points",
      "only trained training games not measured not measured 50% 25% to 75% unknown",
      "preset mini", "learner.rate 3e-05", "learner.sizes [1, 2]", "1 value is not finite"):
    assert expected in text, expected


@pytest.mark.parametrize(("before", "after", "expected"), [
  ((0.2, 0.1, 0.3), (0.5, 0.4, 0.6), "class='up'>+30 points"),
  ((0.5, 0.4, 0.6), (0.2, 0.1, 0.3), "class='down'>-30 points"),
  ((0.2, 0.1, 0.4), (0.3, 0.3, 0.6), "class='same'>+10 points"),
  ((0.2, None, None), (0.9, None, None), "class='same'>+70 points")])
def test_change_is_coloured_where_intervals_do_not_overlap(before, after, expected):
  rows = [Row(1.0, 1, "score/eval/x", *before), Row(2.0, 2, "score/eval/x", *after)]
  assert expected in report.render_page("run", rows, {})


def test_random_play_is_the_start_where_there_is_one_measurement():
  rows = [Row(0.0, 0, "score/random/x", 0.1, 0.0, 0.2),
          Row(2.0, 2, "score/eval/x", 0.5, 0.4, 0.6)]
  assert "class='up'>+40 points" in report.render_page("run", rows, {})
  standing, = report.standings(results.by_tag(rows))
  assert standing == report.Standing("x", rows[0], None, rows[1], True)


def test_win_rates_are_drawn_with_their_bands(run_dir):
  plot = _plots(report.write_report(run_dir).read_text())["rush"]
  lines = {trace["name"]: trace for trace in plot["data"] if "name" in trace}
  assert lines["evaluation"]["x"] == [1.0, 5.0]  # minutes
  assert lines["evaluation"]["y"] == [0.125, 0.75]
  assert lines["evaluation"]["customdata"] == [10, 50]
  assert lines["training"]["y"] == [0.5]
  assert lines["random play"]["x"] == [0.0, 5.0] and lines["random play"]["y"] == [0.1, 0.1]
  bands = [(low["x"], low["y"], high["y"]) for low, high in zip(plot["data"], plot["data"][1:],
                                                               strict=False)
           if high.get("fill") == "tonexty"]
  assert bands == [([0.0, 5.0], [0.05, 0.05], [0.2, 0.2]), ([2.0], [0.25], [0.75]),
                   ([1.0, 5.0], [0.0625, 0.625], [0.25, 0.875])]


def test_every_kind_of_tag_is_drawn(run_dir):
  plots = _plots(report.write_report(run_dir).read_text())
  curves = {title: {trace["name"]: trace["y"] for trace in plot["data"] if "name" in trace}
            for title, plot in plots.items()}
  assert curves["policy"] == {"policy": [2.0, None, 1.0]}  # nan is a gap
  assert curves["Entropy by argument, of the largest possible"] == {
    "function": [0.5, 0.375], "delay": [0.25, 0.125]}
  assert curves["KL divergence from the teacher by argument, nats"] == {"function": [0.25]}
  assert curves["Values by reward, mean prediction"] == {"winloss": [-0.5]}
  assert curves["Loss of the values by reward"] == {"winloss": [0.25]}
  assert curves["Actions that masks rule out, share by argument"] == {"delay": [0.0]}
  assert curves["Agent steps a second"] == {"actor": [900.0], "learner": [1500.0]}
  assert curves["Learner&#x27;s time spent waiting for data"] == {"waiting": [0.375]}
  assert curves["first"] == {"first": [7.0]}
  assert len(curves) == 11 and {"rush", "only trained"} < set(curves)


@pytest.mark.parametrize("kept", [None, *sorted({row.tag for row in ROWS})])
def test_any_tag_may_be_the_only_one(kept):
  page = report.render_page("run", [row for row in ROWS if row.tag == kept], {})
  parser = Resources()
  parser.feed(page)
  assert parser.open == []
  assert ("No figures have been recorded yet." in page) == (kept is None)
  assert bool(_plots(page)) == (kept is not None and not kept.startswith(
    ("total/", "score/random")))


def test_long_curves_are_thinned_to_means_and_smoothed():
  rows = [Row(float(i), i, "loss/total", float(i % 2)) for i in range(12_000)]
  raw, smooth = report_figures.curves({"total": rows}, report_figures.time_axis(12_000))["data"]
  assert len(raw["y"]) == len(smooth["y"]) == 600
  assert raw["y"] == [0.5] * 600  # each the mean of 20
  assert raw["x"][0] == pytest.approx(10 / 3600, rel=1e-5)
  assert raw["opacity"] < 1 and smooth["line"]["width"] > raw["line"]["width"]


def test_thinned_win_rates_keep_the_last():
  rows = [Row(float(i), i, "score/eval/x", 0.5, 0.4, 0.6) for i in range(1000)]
  figure = report_figures.score(rows, [], [], report_figures.time_axis(1000))
  assert len(figure["data"][-1]["x"]) == 500 and figure["data"][-1]["customdata"][-1] == 999


def test_running_mean_is_that_of_numpy_and_leaves_out_gaps():
  values = np.random.default_rng(0).normal(size=50).round(3)
  expected = [values[max(0, i - 3):i + 4].mean() for i in range(50)]
  np.testing.assert_allclose(report_figures.running_mean(values.tolist(), 7), expected, rtol=1e-5)
  assert report_figures.running_mean([1.0, None, 3.0, None, None, None], 3) == [
    1.0, 2.0, 3.0, 3.0, None, None]


@pytest.mark.parametrize(("seconds", "unit", "end"), [
  (0, "s", 1.0), (179, "s", 179.0), (180, "min", 3.0), (10_799, "min", 10_799 / 60),
  (10_800, "h", 3.0), (259_200, "d", 3.0)])
def test_time_axis(seconds, unit, end):
  axis = report_figures.time_axis(seconds)
  assert (axis.unit, axis.end) == (unit, end)


def test_interval_drawing_is_to_scale():
  """From 8 to 212 across: 0.25 is at 59, 0.75 at 161."""
  drawing = report_figures.interval_svg(None, None, Row(1.0, 1, "x", 0.5, 0.25, 0.75))
  assert "<line x1='59.0' x2='161.0'" in drawing and "<circle cx='110.0'" in drawing
  assert drawing.count("<circle") == 1


def _main(*arguments):
  return subprocess.run(
    [sys.executable, "-m", "starleague.experiments.report", *map(str, arguments)], cwd=ROOT,
    capture_output=True, text=True, timeout=60)


def test_command_writes_the_page_and_names_it(run_dir):
  done = _main(run_dir)
  assert (done.returncode, done.stdout, done.stderr) == (0, f"{run_dir}/report.html\n", "")
  assert (run_dir / "report.html").stat().st_size > 1_000_000


def test_command_tells_what_is_wrong_in_one_line(tmp_path):
  done = _main(tmp_path / "none")
  assert done.returncode == 1
  assert done.stderr == (
    f"report: {tmp_path}/none: no such folder; name the folder of a run, as runs/NAME\n")


@pytest.mark.parametrize(("name", "text", "message"), [
  ("results.csv", None, r"results\.csv: no such file"),
  ("results.csv", "a,b\n", r"results\.csv: not a results file"),
  ("results.csv", results.HEADER + "\n1,2\n", r"results\.csv:2: expected 6 fields"),
  ("config.json", "{", r"config\.json: not JSON"),
  ("config.json", "[1]", r"config\.json: expected a JSON object, found list")])
def test_bad_input_is_refused_and_an_earlier_page_kept(run_dir, name, text, message):
  (run_dir / "report.html").write_text("earlier")
  if text is None:
    (run_dir / name).unlink()
  else:
    (run_dir / name).write_text(text)
  with pytest.raises((FileNotFoundError, ValueError), match=message):
    report.write_report(run_dir)
  assert (run_dir / "report.html").read_text() == "earlier"


def test_nothing_is_left_behind_when_the_page_cannot_be_put_in_place(run_dir):
  (run_dir / "report.html").mkdir()
  with pytest.raises(OSError):
    report.write_report(run_dir)
  assert sorted(file.name for file in run_dir.iterdir()) == [
    "config.json", "report.html", "results.csv"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium to draw with")
def test_browser_draws_every_plot(run_dir, tmp_path):
  path = report.write_report(run_dir)
  done = subprocess.run(
    ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
     "--disable-background-networking", f"--user-data-dir={tmp_path}/profile",
     "--virtual-time-budget=5000", "--dump-dom", path.as_uri()],
    capture_output=True, text=True, timeout=120)
  plots = _plots(path.read_text())
  assert len(re.findall(r"class=\"plot js-plotly-plot\"", done.stdout)) == len(plots) == 11
