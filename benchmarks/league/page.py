"""The page of a simulated league: time until it is drawn, against the plain form of its heat map.

    python -m benchmarks.league.page [--players 1000] [--rounds 3]
    python -m benchmarks.league.page --screenshots docs/images [--replay game.npz]

Times run in a headless, fresh Chromium to the payoff matrix on the screen, live (Dash) and from the
file: from the request, and from the end of loading the scripts (`drawing_s`), when the file begins
to unpack plotly. Reading the league and computing its ratings come before and are printed as well.
The plain form is plotly's heat map with lists of numbers and hover texts. --screenshots writes
pictures of a league of 60 snapshots.
"""

import argparse
import collections
import http.server
import logging
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

import flask
import numpy as np
import psutil
from PIL import Image

from starleague.league.payoff import wilson_interval
from starleague.viewers import pages
from starleague.viewers.league import live, matrix, page, reading
from starleague.viewers.league.facts import Facts
from starleague.viewers.plots import Figure
from tests.viewers.league import simulated_league

_CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars"]
# Sends the times when scripts are loaded, and when the payoff matrix is shown: drawn cells, and a
# frame after them.
_LOADED = "<script>window.loaded = performance.now();</script>"
_PROBE = """<script>
const wait = setInterval(() => {
  const images = [...document.querySelectorAll(".js-plotly-plot image")];
  if (!images.some(image => image.href.baseVal.length > 1000)) return;
  clearInterval(wait);
  requestAnimationFrame(() => requestAnimationFrame(
    () => fetch(`/drawn?loaded=${window.loaded}&drawn=${performance.now()}`)));
}, 10);
</script></body>"""
_OWN_SCRIPT = "<script>// The script of the league's page"


def _probed(text: str) -> str:
  """Returns a page that sends its times."""
  return text.replace(_OWN_SCRIPT, _LOADED + _OWN_SCRIPT).replace("</body>", _PROBE)


def plain_heat_map(facts: Facts) -> Figure:
  """Returns the heat map as plotly's users usually write it: numbers and texts in lists."""
  order = matrix.orders(facts)["rating"]
  names = [facts.players[i].name for i in order]
  games, points = facts.games[np.ix_(order, order)], facts.points[np.ix_(order, order)]
  scores = np.where(games > 0, points / np.where(games > 0, games, 1), np.nan)
  z = [[None if np.isnan(score) else score for score in row] for row in scores.tolist()]
  texts = []
  for i, row in enumerate(zip(points.tolist(), games.tolist(), strict=True)):
    line = []
    for j, (won, total) in enumerate(zip(*row, strict=True)):
      low, high = wilson_interval(won, total)
      line.append(f"{names[i]} against {names[j]}: {low:.0%} to {high:.0%}, {total:.0f} games")
    texts.append(line)
  return {"data": [{"type": "heatmap", "x": names, "y": names, "z": z, "text": texts,
                    "hovertemplate": "%{z:.0%} %{text}<extra></extra>"}],
          "layout": {"height": 620}}


class Drawn(NamedTuple):
  """The cost of drawing a page.

  Attributes:
    seconds: from the request to the matrix on the screen, with a fresh browser.
    drawing_s: the part after all scripts are loaded.
    cpu_s: of the browser's process that runs the page; less than `seconds` where the machine is
      busy with other work.
  """

  seconds: float
  drawing_s: float
  cpu_s: float


def _times(address: str) -> tuple[float, float]:
  """Returns the seconds until the matrix was shown, and those after the scripts, from a request."""
  loaded, drawn = (float(value) / 1000 for _, value in urllib.parse.parse_qsl(
    urllib.parse.urlsplit(address).query))
  return drawn, drawn - loaded


def _browse(address: str, drawn: Callable[[], tuple[float, float] | None],
            limit_s: float = 120.0) -> Drawn:
  """Opens a page in a fresh Chromium; `drawn` returns the times that the page reports."""
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    browser = psutil.Popen(
      [*_CHROMIUM, f"--user-data-dir={profile}", "--remote-debugging-port=0", address],
      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
      end = time.monotonic() + limit_s
      while (times := drawn()) is None:
        if time.monotonic() > end:
          raise TimeoutError(f"{address} was not drawn in {limit_s} seconds.")
        time.sleep(0.02)
      spent = [child.cpu_times() for child in browser.children(recursive=True)
               if "--type=renderer" in child.cmdline()]
      return Drawn(*times, max(each.user + each.system for each in spent))
    finally:
      browser.kill()
      browser.wait()


class _FileServer(http.server.ThreadingHTTPServer):
  """Serves one page and notes the time that it reports."""

  def __init__(self, text: str):
    super().__init__(("127.0.0.1", 0), _Handler)
    self.text = text.encode()
    self.drawn: tuple[float, float] | None = None


class _Handler(http.server.BaseHTTPRequestHandler):
  server: _FileServer

  def do_GET(self) -> None:
    self.send_response(200)
    self.send_header("Content-Type", "text/html; charset=utf-8")
    self.end_headers()
    self.wfile.write(self.server.text if self.path == "/" else b"")
    if self.path.startswith("/drawn"):  # last: the browser is killed now
      self.server.drawn = _times(self.path)

  def log_message(self, format: str, *args: object) -> None:
    """Logs nothing."""


def draw_file(text: str) -> Drawn:
  """Draws a page that a plain server serves."""
  server = _FileServer(_probed(text))
  thread = threading.Thread(target=server.serve_forever)
  thread.start()
  try:
    return _browse(f"http://127.0.0.1:{server.server_port}/", lambda: server.drawn)
  finally:
    server.shutdown()
    thread.join()


def draw_live_page(contents: live.Contents) -> Drawn:
  """Draws the live page."""
  drawn: list[tuple[float, float]] = []
  app = live.make_app("simulated", reading.Newest(lambda: contents, lambda: 0), lambda replay: "")
  app.index_string = _probed(app.index_string)

  @app.server.get("/drawn")
  def note():
    drawn.append(_times(flask.request.full_path))
    return ""

  server = live.make_http_server(app, 0)
  thread = threading.Thread(target=server.serve_forever)
  thread.start()
  try:
    return _browse(f"http://127.0.0.1:{server.port}/", lambda: drawn[0] if drawn else None)
  finally:
    server.shutdown()
    thread.join()


def plain_page(facts: Facts) -> str:
  """Returns a page of the plain heat map alone."""
  from plotly.offline import get_plotlyjs
  figure = pages.json_element(plain_heat_map(facts))
  return (f"<!doctype html><body><div id='plot'></div><script>{get_plotlyjs()}</script>{_LOADED}"
          f"<script>Plotly.newPlot('plot', {figure});</script></body>")


def timed(function: Callable[[], object]) -> tuple[float, object]:
  """Returns the seconds that a function takes, and its result."""
  begin = time.perf_counter()
  result = function()
  return time.perf_counter() - begin, result


def measure(players: int, rounds: int) -> None:
  """Prints the times of a league, medians of interleaved rounds."""
  facts = simulated_league.simulate(max(players - 15, 0))
  with tempfile.TemporaryDirectory() as folder:
    simulated_league.write(folder, facts)
    reader = reading.LeagueReader(folder)
    reads = [timed(reader.facts)[0] for _ in range(rounds)]
  makes, drawn = [], collections.defaultdict(list)
  plain = plain_page(facts)
  text = page.render(facts, {})
  for _ in range(rounds):
    seconds, contents = timed(lambda: live.contents(facts))
    makes.append(seconds)
    drawn["live"].append(draw_live_page(contents))
    drawn["file"].append(draw_file(text))
    drawn["plain"].append(draw_file(plain))
  print(f"players={len(facts.players)} read_s={statistics.median(reads):.2f} "
        f"figures_s={statistics.median(makes):.2f} file_mb={len(text) / 1e6:.1f} "
        f"plain_mb={len(plain) / 1e6:.1f}")
  drawing = {}
  for name, found in drawn.items():
    median = Drawn(*(statistics.median(part) for part in zip(*found, strict=True)))
    print(name, " ".join(f"{field}={value:.2f}" for field, value in median._asdict().items()))
    drawing[name] = median.drawing_s
  print(f"plain/live={drawing['plain'] / drawing['live']:.1f} "
        f"plain/file={drawing['plain'] / drawing['file']:.1f} (drawing)")


def take_screenshots(folder: pathlib.Path, replay: str | None) -> None:
  """Writes pictures of the page of a small league, wide and narrow."""
  with tempfile.TemporaryDirectory() as name:
    run_dir = pathlib.Path(name) / "simulated"
    facts = simulated_league.simulate(60)
    run_dir.mkdir()
    if replay:
      (run_dir / "replays").mkdir()
      for kept in facts.replays:
        shutil.copy(replay, run_dir / str(kept.path))
    simulated_league.write(run_dir, facts)
    path = page.write(run_dir, replays=1)
    # A window has at least 500 pixels, a frame any number.
    frame = path.with_name("frame.html")
    frame.write_text("<!doctype html><body style='margin: 0'><iframe src='league.html' width='390' "
                     "height='1600' style='border: 0'></iframe>")
    for file, shown, width, height in (("league.png", path, 1280, 2000),
                                       ("league-narrow.png", frame, 390, 1600)):
      subprocess.run(
        [*_CHROMIUM, f"--user-data-dir={name}/profile", f"--window-size={width},{height}",
         "--virtual-time-budget=8000", f"--screenshot={folder / file}", shown.as_uri()],
        check=True, timeout=120, stderr=subprocess.DEVNULL)
      with Image.open(folder / file) as picture:  # 256 colours take a third of the space
        few = picture.convert("RGB").quantize(
          method=Image.Quantize.MAXCOVERAGE, kmeans=5,
          dither=Image.Dither.NONE)
      few.save(folder / file, optimize=True)
      print(folder / file)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--players", type=int, default=1000)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--screenshots", type=pathlib.Path)
  parser.add_argument("--replay", help="a game of Skirmish, as one of the page's kept games")
  arguments = parser.parse_args()
  logging.getLogger("werkzeug").setLevel(logging.ERROR)
  if arguments.screenshots:
    take_screenshots(arguments.screenshots.resolve(), arguments.replay)
  else:
    measure(arguments.players, arguments.rounds)


if __name__ == "__main__":
  main()
