"""Processes of games: every order is reported once; dead and stalled ones are replaced."""

import math
import time

import pytest

from starleague.actor import game_processes, games
from starleague.actor.game_processes import GameProcesses, GamesError
from tests.actor import playing

STALLED_S = 1000.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
  """Kills a process soon that does not end its game: these sleep."""
  monkeypatch.setattr(game_processes, "_END_S", 0.5)


def play(target, folder, seeds, count=2):
  requests = [games.GameRequest(seed=seed) for seed in seeds]
  processes = GameProcesses(
    count, target, (str(folder),), lambda: requests.pop(0) if requests else None, STALLED_S)
  found, end = [], time.monotonic() + 900
  assert processes.busy()
  try:
    while len(found) < len(seeds):
      found += processes.poll()
      for process in processes._playing:
        if process.request and process.request.seed == 2 and (folder / "2").exists():
          process.since = -math.inf  # it has begun to stall, long ago
      assert time.monotonic() < end, found
      time.sleep(0.01)
    assert not processes.busy()
  finally:
    processes.close()
  return found


@pytest.mark.slow
def test_every_order_is_reported_once_and_the_dead_and_stalled_are_void(tmp_path):
  found = play(playing.obedient, tmp_path, [1, 2, 3, 4, 5, 6, 7])
  reports = {request.seed: report for request, report in found}
  assert sorted(request.seed for request, _ in found) == [1, 2, 3, 4, 5, 6, 7]
  assert "ended with status 7" in reports[1].reason and reports[1].result is None
  assert "not ended within 1000 s" in reports[2].reason and reports[2].result is None
  assert reports[3] == games.Report(None, reason="it hangs")
  assert [reports[seed].result for seed in (4, 5, 6, 7)] == [0, 1, -1, 0]
  assert [reports[seed].loops for seed in (4, 5, 6, 7)] == [4, 5, 6, 7]


@pytest.mark.slow
def test_what_cannot_be_repeated_ends_everything(tmp_path):
  with pytest.raises(GamesError, match="StarCraft II is not installed"):
    play(playing.hopeless, tmp_path, [4, 5])


@pytest.mark.slow
def test_many_void_matches_in_a_row_are_an_error(tmp_path):
  with pytest.raises(GamesError, match="10 matches in a row are void.*ended with status 3"):
    play(playing.dying, tmp_path, range(100))


@pytest.mark.parametrize("message", [
  games.GameRequest("zerg:hard", 7, (2, 3), 1, True, (0, 1)), games.Report(-1, 900, 50),
  games.Report(None, reason="it hangs", final=True)])
def test_messages_are_json(message):
  assert games.decode(type(message), games.encode(message)) == message


@pytest.mark.parametrize("message", [b"[]", b'{"rank": 1}', b"", b"\x80\x04K\x01."])
def test_other_messages_are_refused(message):
  with pytest.raises(ValueError):
    games.decode(games.Report, message)
