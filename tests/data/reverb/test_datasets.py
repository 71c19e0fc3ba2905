"""Datasets of a data server: tables that do not fit are refused."""

import pytest

from starleague.agent import config as agent_config
from starleague.data.reverb import datasets, transport, writer
from tests.data.reverb.clients import make_writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH, packed


@pytest.mark.parametrize("config, unroll_length, message", [
  (CONFIG, 5, r"field 'bits' of table 'main' of localhost:\d+: found uint8\[3, 802\], "
              r"expected uint8\[6, 802\]"),
  (agent_config.full(), UNROLL_LENGTH, r"field 'bits' .*found uint8\[3, 802\]")])
def test_a_mismatch_is_found_before_anything_is_sampled(serve, config, unroll_length, message):
  address = serve()
  sender = make_writer(address)
  sender.send("main", packed(0))
  sender.flush()
  with pytest.raises(transport.SignatureMismatchError, match=message):
    datasets.dataset(address, 1, "main", config, unroll_length)
  with pytest.raises(writer.SignatureMismatchError, match=message):
    writer.TrajectoryWriter(address, "main", config, unroll_length, 1)
  _, info = transport.connect(address, 5)
  assert info["main"].num_unique_samples == 0


def test_an_unknown_player_is_refused_with_the_known_tables(serve):
  address = serve()
  with pytest.raises(transport.SignatureMismatchError, match=(
      r"no table 'zerg' of localhost:\d+; it has \['main', 'parameters/main'\]")):
    datasets.dataset(address, 1, "zerg", CONFIG, UNROLL_LENGTH)
