"""A progress bar for launch files: live on a terminal, one line every 10 s elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from starleague.common.text import count, duration
from starleague.experiments.run.progress.display import LOG_INTERVAL_SECONDS


class Bar:
  """Context that shows how much of a known total is done."""

  def __init__(self, title: str, total: int, unit: str, *, file: IO[str] | None = None,
               clock: Callable[[], float] = time.monotonic):
    """Opens the bar.

    Args:
      title: what is done, a word or two.
      total: of `unit`.
      unit: a plural noun such as "games".
      file: the output; default: standard output.
      clock: seconds, monotonic.
    """
    self._title, self._total, self._unit = title, total, unit
    self._file = sys.stdout if file is None else file
    self._clock = clock
    self._began = self._logged = clock()
    self._logged_at = -1  # done at the last line
    self._bar: Progress | None = None
    console = Console(file=self._file)
    if console.is_terminal and not console.is_dumb_terminal:
      self._bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
      self._task = self._bar.add_task(title, total=total, text="")

  def __enter__(self) -> "Bar":
    if self._bar is not None:
      self._bar.start()
    return self

  def __exit__(self, *exc_info: object) -> None:
    if self._bar is not None:
      self._bar.stop()

  def update(self, done: int, detail: str = "") -> None:
    """Shows what is done: at once on a terminal, else after 10 s or at the end.

    Args:
      done: of the total.
      detail: further figures, a few words.
    """
    if self._bar is not None:
      text = f"{count(done)} of {count(self._total)} {self._unit} {detail}"
      self._bar.update(self._task, completed=done, text=text)
      return
    now = self._clock()
    ends = done >= self._total and self._logged_at < done
    if ends or now - self._logged >= LOG_INTERVAL_SECONDS:
      print(f"{self._title} {self._unit}={done}/{self._total} "
            f"elapsed={duration(now - self._began)} {detail}".rstrip(), file=self._file, flush=True)
      self._logged, self._logged_at = now, done
