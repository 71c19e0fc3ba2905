"""Writes the report of a run, `RUN_DIR/report.html`.

  python -m starleague.experiments.report RUN_DIR
"""

from starleague.experiments.run.config import entry
from starleague.viewers.report import page

ARGUMENTS = [("RUN_DIR",)]


def main(run_dir: str) -> None:
  """Writes the report and prints its path."""
  print(page.write_report(run_dir))


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
