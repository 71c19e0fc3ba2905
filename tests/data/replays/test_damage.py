"""Damaged replays: every kind of damage is named in one line."""

import random
import struct
import zlib

import pytest

from starleague.data.replays import decode, refusals
from tests.data.replays import encoding, games
from tests.data.replays.games import Game


def reason(data):
  """Returns the reason for which bytes are refused; they must be refused in one line."""
  with pytest.raises(refusals.Refusal) as error:
    decode.decode(data, "a.SC2Replay")
  assert error.value.reason in refusals.REASONS
  assert "\n" not in str(error.value) and len(str(error.value)) < 300
  return error.value.reason


@pytest.mark.parametrize("data", [
  b"", b"\n", b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(5000), b"PK\x03\x04" + bytes(100),
  b"MPQ\x1a" + bytes(100), b"MPQ"], ids=["empty", "text", "jpeg", "zip", "map", "short"])
def test_other_files_are_no_replays(data):
  assert reason(data) == refusals.NOT_A_REPLAY


def test_every_truncation_is_refused():
  data = Game().replay()
  for size in [*range(0, 1100, 13), *range(1100, len(data), 97), len(data) - 1]:
    assert reason(data[:size]) in (refusals.NOT_A_REPLAY, refusals.DAMAGED), size


FAR = 2**61  # game loops or tags that no table holds


@pytest.mark.parametrize("changes", [
  {"tracker": (*games.TRACKER, games.born(1400, FAR, 1, "Zealot", 47, 28))},
  {"tracker": (*games.TRACKER, games.born(1400, -1, 1, "Zealot", 47, 28))},
  {"tracker": (*games.TRACKER, *(games.upgrade(i * FAR, 1, "BlinkTech") for i in range(1, 6)))},
  {"loops": FAR}, {"loops": -1}], ids=["tag", "negative tag", "loop", "length", "negative length"])
def test_numbers_that_no_table_holds_are_refused(changes):
  """They would end the whole run where its rows are written, or fill the memory."""
  assert reason(Game(**changes).replay()) == refusals.DAMAGED


def test_flipped_bits_are_refused_or_harmless():
  """Over the whole file: either the game decodes, or one line says that it does not."""
  data, rng = Game().replay(), random.Random(1)
  refused = 0
  for _ in range(400):
    place = rng.choice([rng.randrange(1024, len(data)), rng.randrange(0, 200)])
    damaged = bytearray(data)
    damaged[place] ^= 1 << rng.randrange(8)
    try:
      decode.decode(bytes(damaged), "a.SC2Replay")
    except refusals.Refusal as refusal:
      refused += 1
      assert refusal.reason in refusals.REASONS and len(refusal.detail) < 300
  assert 100 < refused < 400


def test_flipped_bits_of_streams_are_refused_or_harmless():
  """Damage that the archive's checksums would hide: streams that are packed after it."""
  files, rng = Game().files(), random.Random(2)
  for _ in range(400):
    name = rng.choice(sorted(files))
    content = bytearray(files[name])
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    try:
      decode.decode(encoding.archive({**files, name: bytes(content)}, Game().header()), "a")
    except refusals.Refusal as refusal:
      assert refusal.reason in refusals.REASONS and len(refusal.detail) < 300


def test_bombs_cost_no_more_than_they_may():
  """Sizes that lie, a sector of gigabytes, and a file of more than the limit."""
  zeros = b"\x02" + zlib.compress(bytes(200 << 20), 9)
  name = "tracker_events"
  assert reason(Game().replay(**{name: (0x81000200, zeros, 1 << 20)})) == refusals.DAMAGED
  assert reason(Game().replay(**{name: (0x81000200, zeros, 200 << 20)})) == refusals.TOO_LARGE
  sector = struct.pack("<2I", 8, 8 + len(zeros)) + zeros
  assert reason(Game().replay(**{name: (0x80000200, sector, 4000)})) == refusals.DAMAGED
  assert reason(Game().replay(**{name: (0x80000200, b"x", 0xFFFFFFFF)})) == refusals.TOO_LARGE


def test_lengths_that_lie_inside_streams():
  """Arrays, blobs and integers longer than the stream end at once."""
  tracker = Game().files()["replay.tracker.events"]
  for lie in (b"\x05\x02\x00\x00" + b"\xff" * 9, b"\xff" * 5000, tracker[:50] + b"\xfe" * 500):
    assert reason(Game().replay(tracker_events=lie)) == refusals.DAMAGED
