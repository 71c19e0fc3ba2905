"""The progress bar without a terminal: a line every ten seconds, and one at the end."""

import io

from starleague.experiments.run.progress import bar


def test_lines_are_ten_seconds_apart():
  seconds, file = iter([0, 3, 11, 12, 20, 25, 25]), io.StringIO()
  with bar.Bar("demonstrations", 30, "games", file=file, clock=lambda: next(seconds)) as shown:
    for done in (1, 8, 9, 19, 30, 30):
      shown.update(done, f"{10 * done} decisions")
  assert file.getvalue().splitlines() == [
    "demonstrations games=8/30 elapsed=11s 80 decisions",
    "demonstrations games=30/30 elapsed=25s 300 decisions"]
