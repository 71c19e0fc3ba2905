"""Shows the page of a league: live on this machine, or as one file.

  python -m starleague.experiments.dashboard runs/NAME
  python -m starleague.experiments.dashboard runs/NAME --static league.html

The page has the payoff matrix, ratings, family tree, matchmaking, learning curves and kept games.
It reads the files of a run and changes none of them, also while the run goes on.
"""

import contextlib
import logging

from absl import flags

from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import process_runner
from starleague.viewers.league import games, page, reading

ARGUMENTS = [("RUN_DIR",)]

flags.declare_key_flag("page_port")
_STATIC = flags.DEFINE_string(
  "static", None, "File to write: the page as it is now, self-contained. Nothing is served.")
_STATIC_REPLAYS = flags.DEFINE_integer(
  "static_replays", 4, "Kept games in the file of --static, the newest.", lower_bound=0)


def _serve(run_dir: str) -> None:
  run_flags.require_page_port()
  reader = reading.LeagueReader(run_dir)
  from starleague.viewers.league import live  # imports Dash, which --static does not need
  logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else it logs every request
  newest = reading.Newest(lambda: live.contents(reader.facts()), reader.stamp)
  app = live.make_app(reader.name, newest, games.ReplayPages(run_dir).page)
  server = live.make_http_server(app, run_flags.PAGE_PORT.value)
  print(f"url=http://{live.HOST}:{server.port}/", flush=True)
  server.serve_forever()


def main(run_dir: str) -> None:
  """Serves or writes the page of a run's league."""
  run_flags.only_with(_STATIC, _STATIC_REPLAYS)
  if _STATIC.value is not None:
    if run_flags.PAGE_PORT.present:
      raise UserError("--page_port serves the page, --static writes it to a file: give one of them")
    run_flags.make_parent(_STATIC)
    path = page.write(run_dir, _STATIC.value, _STATIC_REPLAYS.value)
    print(f"page={path} kilobytes={path.stat().st_size / 1000:.1f}")
    return
  process_runner.interrupt_on_sigterm()
  with contextlib.suppress(KeyboardInterrupt):
    _serve(run_dir)
  print("stopped")


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
