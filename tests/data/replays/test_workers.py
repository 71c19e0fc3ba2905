"""Decoders in child processes: order, limits, and files that hang, grow or kill them."""

import multiprocessing

import pytest

from starleague.data.replays import refusals, workers
from starleague.data.replays.decode import decode
from starleague.data.replays.refusals import Refusal
from tests.data.replays import decoders
from tests.data.replays.games import Game

LIMITS = workers.Limits(seconds=20.0, megabytes=300)


def write(folder, **games):
  paths = []
  for name, game in games.items():
    paths.append(folder / f"{name}.SC2Replay")
    paths[-1].write_bytes(game if isinstance(game, bytes) else game.replay())
  return [str(path) for path in paths]


@pytest.mark.slow
def test_children_that_hang_grow_or_die_are_replaced(tmp_path):
  """Every file has an answer, in order, and all others are decoded."""
  paths = write(tmp_path, a=Game(), hang=Game(), b=Game(seed=1), grow=Game(), die=Game(),
                c=b"\xff\xd8\xff\xe0 JFIF", d=Game(seed=2))
  ready = Refusal(refusals.DUPLICATE, "known")
  jobs = [*((path, None) for path in paths), ("e", ready), (str(tmp_path / "absent"), None)]
  found = list(workers.decode_all(jobs, 2, LIMITS._replace(seconds=6.0), decoders.misbehaving))
  assert [path for path, _ in found] == [*paths, "e", str(tmp_path / "absent")]
  reasons = [rows.reason if isinstance(rows, Refusal) else "read" for _, rows in found]
  assert reasons == ["read", refusals.TIME_LIMIT, "read", refusals.MEMORY_LIMIT,
                     refusals.DECODER_DIED, refusals.NOT_A_REPLAY, "read", refusals.DUPLICATE,
                     refusals.UNREADABLE]
  assert found[1][1].detail == "decoding took longer than 6 s"
  assert found[3][1].detail == "decoding took more than 300 MiB"
  assert found[4][1].detail == "the decoder died, exit status 3"
  assert not multiprocessing.active_children()


def test_rows_survive_the_way_between_processes(tmp_path):
  path, = write(tmp_path, a=Game())
  (_, found), = workers.decode_all([(path, None)], 1, LIMITS)
  assert found == decode(Game().replay(), path)


def test_answers_with_too_many_rows_are_refused(tmp_path):
  paths = write(tmp_path, long=Game(), a=Game())
  (_, refused), (_, found) = workers.decode_all(
    [(path, None) for path in paths], 1, LIMITS, decoders.misbehaving)
  assert isinstance(refused, Refusal) and refused.reason == refusals.TOO_LARGE
  size, detail = refused.detail.split(" ", 1)
  assert 40_000_000 <= int(size) < 40_010_000
  assert detail == "bytes of rows, expected at most 33554432"
  assert found == decode(Game().replay(), paths[1])


def test_no_files_need_no_answers():
  assert list(workers.decode_all([], 1, LIMITS)) == []
  assert workers.tally(["a", "b", "b"]) == {"b": 2, "a": 1}
