"""Pages of the kept replays of a league."""

import functools
import os
import pathlib
from collections.abc import Sequence

from starleague.common.errors import UserError
from starleague.league.league_file import Replay

_SC2_SUFFIX = ".SC2Replay"
_REMEMBERED = 8  # pages, about 0.3 MB each


class ReplayPages:
  """Renders the pages of a run's replays; remembers the latest."""

  def __init__(self, run_dir: str | os.PathLike[str]):
    """Paths of replays are relative to the run's folder."""
    self._folder = pathlib.Path(run_dir)
    self._render = functools.lru_cache(_REMEMBERED)(_render)

  def page(self, replay: Replay) -> str:
    """Returns the page of a replay as HTML.

    Raises:
      UserError: its file is missing or damaged; names the file.
    """
    if replay.path is None:
      raise UserError(f"Replay {replay.id}: not saved yet. Try again later.")
    return self._render(self._folder / replay.path)

  def pages(self, replays: Sequence[Replay], number: int) -> dict[str, str]:
    """Returns the pages of the newest saved replays by id; unreadable ones are left out."""
    found: dict[str, str] = {}
    for replay in reversed(replays):
      if len(found) == number:
        break
      try:
        found[replay.id] = self.page(replay)
      except UserError:
        continue
    return found


def _render(path: pathlib.Path) -> str:
  if not path.is_file():
    raise UserError(f"{path}: no such file; the league kept a replay there.")
  if path.suffix == _SC2_SUFFIX:
    raise UserError(f"{path}: a replay of StarCraft II; open it in the game.")
  # They import JAX, which the page of a league needs for nothing else.
  from starleague.environments.skirmish.games import replays
  from starleague.viewers.watch import page
  try:
    replay = replays.load(path)
    return page.render_page(replay, replays.resimulate(replay))
  except replays.ReplayError as error:
    raise UserError(f"{path}: {error}") from error
