"""The client: what it refuses, unreachable servers and those of another version."""

import pytest

from starleague.league import messages
from starleague.league.client import GrpcTransport, LeagueClient, LeagueUnavailableError
from starleague.league.players import LeagueError
from tests.league.leagues import MAIN, free_port


def test_a_client_refuses_a_wrong_request_before_it_is_sent(client):
  client._transport.call = None
  with pytest.raises(LeagueError, match=r"request of matches is refused: .* at `\$.count`"):
    client.matches(MAIN, 0)
  with pytest.raises(LeagueError, match="is too large, expected at most"):
    client.scores(MAIN, ["x" * 100] * 200_000)


def test_a_client_refuses_a_wrong_answer(client, monkeypatch):
  monkeypatch.setattr(client._transport, "call", lambda method, message: b'[["1-1", 5]]')
  with pytest.raises(LeagueError, match="answer of matches is refused"):
    client.matches(MAIN)


def test_no_answer_within_the_deadline_names_the_address():
  address = f"127.0.0.1:{free_port()}"
  lonely = LeagueClient(GrpcTransport(address, deadline_s=0.5))
  with pytest.raises(LeagueUnavailableError, match=f"at {address} did not answer orders within 0"):
    lonely.orders()
  lonely.close()


def test_a_server_of_another_version_is_named(serving, monkeypatch):
  monkeypatch.setattr(messages, "SERVICE", "starleague.League99")
  newer = LeagueClient(GrpcTransport(serving.address, deadline_s=20.0))
  with pytest.raises(LeagueError, match="has no starleague.League99/orders: it is of another"):
    newer.orders()
  newer.close()
