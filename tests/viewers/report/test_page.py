"""The report of a run."""

import re

import pytest

from starleague.common import results
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.viewers.report import page as report
from tests.viewers.browser import dump, measure, needs_browser
from tests.viewers.pages import check_self_contained
from tests.viewers.report.rows import ROWS, plots_of, text_of


def test_page_is_self_contained(run_dir):
  path = report.write_report(run_dir)
  assert path == run_dir / "report.html"
  assert sorted(file.name for file in run_dir.iterdir()) == [
    "config.json", "report.html", "results.csv"]
  page = path.read_text()
  check_self_contained(page)
  assert "@import" not in re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
  assert page.count("Plotly.newPlot(place") == 1 and len(page) < 2_050_000
  assert "<title>mini &amp; &lt;b&gt; - Starleague</title>" in page
  assert "{{PLOTLY}}&lt;/script&gt;" in page  # config values are escaped and not filled


def test_page_shows_key_figures_and_scores(run_dir):
  text = text_of(report.write_report(run_dir).read_text())
  for expected in (
      "time 5m00s", "agent steps played 240 k", "games 123", "updates 50 of the learner",
      "imitation 70 updates",
      "played per second 800 steps, run average",  # 240 000 in 300 s, not the last 900
      "learnt per second 1 500 steps, at the end",
      "rush 10% 5% to 20% 12% 6% to 25% 75% 62% to 88% +63 points",
      "only trained training games not measured not measured 50% 25% to 75% unknown",
      "preset mini", "learner.rate 3e-05", "learner.sizes [1, 2]", "1 value is not finite"):
    assert expected in text, expected


def test_the_header_of_an_offline_run_shows_its_own_options():
  config = {"preset": "mini", "seconds": 480, "seed": 3,
            "offline": {"method": "winners", "updates": 200}}
  page = report.render_page("run", [Row(1.0, 1, "offline/loss/total", 2.0, None, None)], config)
  assert re.search(r"<header>.*?</header>", page)[0] == (
    "<header><h1>run</h1><p class='brief'><span><b>preset</b> mini</span><span><b>seed</b> 3</span>"
    "<span><b>method</b> winners</span><span><b>updates</b> 200</span></p></header>")
  trained = report.render_page("run", [Row(1.0, 1, "loss/total", 2.0, None, None)], config)
  assert "<b>seconds</b> 480" in re.search(r"<header>.*?</header>", trained)[0]


@pytest.mark.parametrize(("before", "after", "expected"), [
  ((0.2, 0.1, 0.3), (0.5, 0.4, 0.6), "class='up'>+30 points"),
  ((0.5, 0.4, 0.6), (0.2, 0.1, 0.3), "class='down'>-30 points"),
  ((0.2, 0.1, 0.4), (0.3, 0.3, 0.6), "class='same'>+10 points"),
  ((0.2, None, None), (0.9, None, None), "class='same'>+70 points")])
def test_change_is_coloured_where_intervals_do_not_overlap(before, after, expected):
  rows = [Row(1.0, 1, "score/eval/x", *before), Row(2.0, 2, "score/eval/x", *after)]
  assert expected in report.render_page("run", rows, {})


def test_scores_are_drawn_with_their_intervals(run_dir):
  plot = plots_of(report.write_report(run_dir).read_text())["rush"]
  lines = {trace["name"]: trace for trace in plot["data"] if "name" in trace}
  assert lines["evaluation"]["x"] == [1.0, 5.0]  # minutes
  assert lines["evaluation"]["y"] == [0.125, 0.75]
  assert lines["evaluation"]["customdata"] == [10, 50]
  assert lines["training"]["y"] == [0.5]
  assert lines["initial weights"]["x"] == [1.0, 5.0] and lines["initial weights"]["y"] == [0.1, 0.1]
  bands = [(low["x"], low["y"], high["y"]) for low, high in zip(plot["data"], plot["data"][1:],
                                                               strict=False)
           if high.get("fill") == "tonexty"]
  assert bands == [([1.0, 5.0], [0.05, 0.05], [0.2, 0.2]), ([2.0], [0.25], [0.75]),
                   ([1.0, 5.0], [0.0625, 0.625], [0.25, 0.875])]


def curves_of(run_dir):
  """Returns the values of the curves of a run's report, by panel and name."""
  plots = plots_of(report.write_report(run_dir).read_text())
  return {title: {trace["name"]: trace["y"] for trace in plot["data"] if "name" in trace}
          for title, plot in plots.items()}


def test_imitation_has_its_panels(run_dir):
  curves = curves_of(run_dir)
  loss = curves["Loss: cross-entropy of learnt and held-out games, L2"]
  assert loss == {"cross entropy": [3.0], "held out": [3.5]}
  assert curves["Accuracy by argument, learnt games"] == {"delay": [0.5]}
  assert curves["Accuracy by argument, held-out games"] == {"delay": [0.25]}
  learner = "Learner, agent steps per second"
  assert curves["Agent steps per second"] == {"actor": [900.0], "learner": [1500.0]}
  assert curves[learner] == {learner: [800.0]}


def test_every_kind_of_tag_is_drawn(run_dir):
  curves = curves_of(run_dir)
  policy = "Policy-gradient loss (V-trace)"
  assert curves[policy] == {policy: [2.0, None, 1.0]}  # nan is a gap
  assert curves["Normalised entropy by argument"] == {
    "function": [0.5, 0.375], "delay": [0.25, 0.125]}
  assert curves["KL divergence from the teacher by argument, nats"] == {"function": [0.25]}
  assert curves["Mean value prediction by reward"] == {"win-loss": [-0.5]}
  assert curves["Value loss by reward"] == {"win-loss": [0.25]}
  assert curves["Agent steps per second"] == {"actor": [900.0], "learner": [1500.0]}
  waiting = "Fraction of time the learner waits for data"
  assert curves[waiting] == {waiting: [0.375]}
  assert curves["First"] == {"First": [7.0]}
  assert len(curves) == 14 and {"rush", "only trained"} < set(curves)


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path, width):
  """The config's short values wrap; the scores' rows stand as blocks on a phone."""
  page = report.render_page("run", ROWS, {f"config_key_{i}": i for i in range(9)})
  overflows, text = measure(page, width, tmp_path, boxes="html, .card, table")
  assert overflows == 0 and "+63 points" in text


def columns_of(rows):
  page = report.render_page("run", rows, {})
  header = re.search(r"<thead>(.*?)</thead>", page)[1]
  return re.findall(r"<th>(.*?)</th>", header), re.findall(r"data-column='(.*?)'", page)


def test_columns_without_a_score_are_left_out():
  last = Row(2.0, 2, "score/eval/x", 0.5, 0.4, 0.6)
  initial, first = Row(2.0, 2, "score/initial/x", 0.1, 0.0, 0.2), last._replace(seconds=1.0)
  assert columns_of([last]) == (["against", "last measured"], ["last measured"])
  assert columns_of([last, initial])[0] == ["against", "initial weights", "last measured", "change"]
  assert columns_of([first, last])[0] == ["against", "first measured", "last measured", "change"]
  names, cells = columns_of([first, last, initial])
  assert cells == names[1:] and len(cells) == 4  # a phone shows each cell with its column's name


def folds_of(page):
  """Returns the sections that can be folded, and their state."""
  return {title: state for state, title in re.findall(
    r"<details(.*?)><summary><h2>(.*?)</h2>", page)}


def test_sections_are_folded_but_for_scores_and_losses():
  page = report.render_page("run", ROWS, {"a": 1})
  assert folds_of(page) == {
    "Scores over time": " open", "Losses": " open class='wide'", "Policy": "", "Values": "",
    "Imitation": "", "Speed": "", "Odd kind": "", "Config": " open"}
  young = report.render_page("run", [row for row in ROWS if row.tag.startswith("imit")], {})
  assert folds_of(young) == {"Imitation": " open"}


def test_the_axes_of_a_section_span_its_own_rows():
  rows = [Row(60.0 * minute, 1, tag, float(minute)) for tag, minutes in (
    ("imitation/loss/total", (2, 4)), ("loss/total", (5, 10))) for minute in minutes]
  ranges = {title: plot["layout"]["xaxis"]["range"]
            for title, plot in plots_of(report.render_page("run", rows, {})).items()}
  assert ranges == {"Total loss": [4.9, 10.1],
                    "Loss: cross-entropy of learnt and held-out games, L2": [1.96, 4.04]}


def test_plots_have_texts_that_stand_for_them(run_dir):
  labels = re.findall(r"role='img' aria-label='(.*?)'", report.write_report(run_dir).read_text())
  assert labels[0] == "rush: initial weights 10%, training 50%, evaluation 12% to 75%"
  assert len(labels) == 14


@pytest.mark.parametrize("kept", [None, *sorted({row.tag for row in ROWS})])
def test_any_tag_may_be_the_only_one(kept):
  page = report.render_page("run", [row for row in ROWS if row.tag == kept], {})
  check_self_contained(page)
  assert ("No figures are recorded yet." in page) == (kept is None)
  assert bool(plots_of(page)) == (kept is not None and not kept.startswith(
    ("total/", "score/initial", "illegal/")))  # all values of `illegal` are 0
  assert ("Without a change" in page) == (kept == "illegal/delay")


@pytest.mark.parametrize(("name", "text", "message"), [
  ("results.csv", None, r"results\.csv: no such file"),
  ("results.csv", "a,b\n", r"results\.csv: not a results file"),
  ("results.csv", results.HEADER + "\n1,2\n", r"results\.csv:2: expected 6 fields"),
  ("config.json", "{", r"config\.json: not JSON"),
  ("config.json", "[" * 100_000, r"config\.json: not JSON"),
  ("config.json", "[1]", r"config\.json: expected a JSON object, found list")])
def test_damaged_input_is_refused_and_the_earlier_page_kept(run_dir, name, text, message):
  (run_dir / "report.html").write_text("earlier")
  if text is None:
    (run_dir / name).unlink()
  else:
    (run_dir / name).write_text(text)
  with pytest.raises((FileNotFoundError, UserError), match=message):
    report.write_report(run_dir)
  assert (run_dir / "report.html").read_text() == "earlier"


def test_a_failed_write_leaves_no_file(run_dir):
  (run_dir / "report.html").mkdir()
  with pytest.raises(OSError):
    report.write_report(run_dir)
  assert sorted(file.name for file in run_dir.iterdir()) == [
    "config.json", "report.html", "results.csv"]


@pytest.mark.slow
@needs_browser
def test_browser_draws_plots_once_their_section_is_open(run_dir, tmp_path):
  """In a narrow window the scores alone are open at first."""
  def drawn(page):
    path = tmp_path / "page.html"
    path.write_text(page)
    dom = dump(path.as_uri(), tmp_path / "profile")
    return len(re.findall(r"class=\"plot js-plotly-plot\"", dom))

  page = report.write_report(run_dir).read_text()
  assert drawn(page) == 2
  opened = "<script>document.querySelectorAll('details').forEach(each => each.open = true)</script>"
  assert drawn(page.replace("</body>", f"{opened}</body>")) == len(plots_of(page)) == 14
