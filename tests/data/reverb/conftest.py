"""Data servers in the process of the tests."""

import pytest

from starleague.data.reverb.server import make_server, make_tables
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH


@pytest.fixture
def serve():
  """Starts servers of one player, and stops them afterwards."""
  servers = []

  def start(*, players=("main",), port=None, checkpoint_dir=None, **options):
    options = {"min_size": 1, "tolerance": 4} | options
    tables = make_tables(players, CONFIG, UNROLL_LENGTH, **options)
    servers.append(make_server(tables, port, checkpoint_dir))
    return f"localhost:{servers[-1].port}"

  start.servers = servers
  yield start
  for server in servers:
    server.stop()
