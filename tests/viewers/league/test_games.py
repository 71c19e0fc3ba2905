"""Pages of kept replays."""

import pytest

from starleague.common.errors import UserError
from starleague.environments.skirmish.games import replays
from starleague.viewers.league.games import ReplayPages
from starleague.viewers.watch import page as watch_page


def test_missing_and_damaged_files_are_named(facts, tmp_path):
  kept = ReplayPages(tmp_path)
  with pytest.raises(UserError, match="game-0: not saved yet"):
    kept.page(facts.replays[0]._replace(path=None))
  with pytest.raises(UserError, match=r"replays/game-0\.npz: no such file"):
    kept.page(facts.replays[0])
  (tmp_path / "bad.npz").write_bytes(b"PK")
  with pytest.raises(UserError, match=r"bad\.npz"):
    kept.page(facts.replays[0]._replace(path="bad.npz"))


@pytest.mark.slow
def test_the_newest_readable_games_are_rendered(facts, tmp_path):
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  replay = replays.record(pair, seed=3, max_steps=40)
  replays.save(tmp_path / "game.npz", replay)
  kept = [facts.replays[i]._replace(path=path)
          for i, path in enumerate(("game.npz", "game.npz", "missing.npz", None))]
  found = ReplayPages(tmp_path).pages(kept, 1)
  assert list(found) == ["game-1"]
  assert found["game-1"] == watch_page.render_page(replay, replays.resimulate(replay))
