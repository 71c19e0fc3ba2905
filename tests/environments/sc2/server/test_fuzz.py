"""Random messages: each gets a response with status and id, and none ends the session."""

import asyncio
import collections
import random

import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.session import Session
from tests.environments.sc2.server import messages, play

KINDS = tuple(field.name for field in sc_pb.Request.DESCRIPTOR.oneofs_by_name["request"].fields)
# Requests that take long or start others are rarer.
USUAL = tuple(kind for kind in KINDS if kind not in ("create_game", "quit", "start_replay"))


def _message(draw):
  """A message and how it was made."""
  way = draw.choices(("bytes", "damaged", "filled"), (2, 3, 5))[0]
  if way == "bytes":
    return way, draw.randbytes(draw.randrange(64))
  kinds = USUAL if draw.random() < 0.95 else KINDS
  data = messages.request(draw, kinds).SerializeToString()
  return way, data if way == "filled" else messages.damaged(draw, data)


def _check(session, data, answer):
  """Asserts what every response holds, and returns it."""
  response = sc_pb.Response.FromString(answer)
  assert response.HasField("status") and response.status == session.status
  assert not any(error.startswith("Internal error") for error in response.error), (
    response.error, data)
  try:
    request = sc_pb.Request.FromString(data)
  except Exception:
    assert response.error and response.error[0].startswith("Could not parse")
    return response
  assert request.HasField("id") == response.HasField("id")
  assert request.id == response.id
  kind, answered = request.WhichOneof("request"), response.WhichOneof("response")
  assert answered in (kind, None) and bool(answered) != bool(response.error)
  return response


async def _replay(session, draw, game):
  """Starts the replay of a whole game, and often plays it to its natural end."""
  await play.ask(session, start_replay=sc_pb.RequestStartReplay(
    replay_data=game, observed_player_id=draw.randrange(3), options=play.interface()))
  if draw.random() < 0.7:
    await play.ask(session, step=sc_pb.RequestStep(count=1000))
    assert session.status == sc_pb.ended


async def fuzz(count, seed):
  """Sends messages; returns how many of each way of making were answered, and with what."""
  draw, tally = random.Random(seed), collections.Counter()
  recorder = Session(wait_seconds=0.01)
  game = await play.win(recorder)
  await recorder.drop()
  session = Session(wait_seconds=0.01)
  await play.start(session)
  for _ in range(count):
    if session.status == sc_pb.quit:
      session = Session(wait_seconds=0.01)
    if session.status in (sc_pb.launched, sc_pb.ended) and draw.random() < 0.1:
      await play.start(session)  # most messages meet a game
    if draw.random() < 0.01:
      await _replay(session, draw, game)
      tally["replays"] += 1
    way, data = _message(draw)
    response = _check(session, data, await session.answer(data))
    tally[way, "error" if response.error else "answer"] += 1
  await session.drop()
  return tally


@pytest.mark.parametrize("count", [
  300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_message_ends_the_server(count):
  tally = asyncio.run(fuzz(count, seed=count))
  print(dict(tally))
  assert tally.pop("replays") > 0 and sum(tally.values()) == count
  for way in ("bytes", "damaged", "filled"):
    assert tally[way, "error"] > 0
  assert tally["filled", "answer"] > count / 10
