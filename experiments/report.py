"""Writes the report of a run, `RUN_DIR/report.html`.

  python -m starleague.experiments.report RUN_DIR
"""

import sys
from collections.abc import Sequence

from absl import app

from starleague.viewers.report import page


def main(argv: Sequence[str]) -> None:
  """Entry point: the folder is the one argument."""
  if len(argv) != 2:
    raise app.UsageError("name the folder of one run, as runs/NAME")
  try:
    print(page.write_report(argv[1]))
  except (OSError, ValueError) as error:
    sys.exit(f"report: {error}")


if __name__ == "__main__":
  app.run(main)
