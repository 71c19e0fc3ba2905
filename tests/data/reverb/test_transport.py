"""Connections to a data server: signatures, absent servers, retries."""

import pytest

from starleague.data import wire
from starleague.data.reverb import parameters, transport
from tests.data.reverb.clients import PARAMS, make_dataset, make_writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH


def test_first_differing_field_is_named():
  class Info:
    signature = None

  expected = wire.packed_spec(CONFIG, UNROLL_LENGTH)._asdict()
  with pytest.raises(transport.SignatureMismatchError, match=(
      "field 'bits' of table 'main' of here:1: found no such field, expected uint8")):
    transport.check_signature({"main": Info()}, "main", "here:1", expected)


@pytest.mark.parametrize("connect", [
  make_writer, lambda address, **options: make_dataset(address, 1, **options),
  lambda address, **options: parameters.ParameterPublisher(address, "main", **options),
  lambda address, **options: parameters.ParameterFetcher(address, "main", PARAMS, **options)])
def test_an_absent_server_is_named_with_the_attempts(connect):
  with pytest.raises(transport.ServerUnavailableError, match=(
      r"localhost:1 does not answer: .*start it again.*\(1 attempts in")):
    connect("localhost:1", deadline_s=1)


def test_retry_doubles_its_waits_until_the_deadline():
  now, waits = [0.0], []

  def sleep(seconds):
    waits.append(seconds)
    now[0] += seconds

  def call():
    raise OSError("refused")

  with pytest.raises(transport.ServerUnavailableError, match=(
      r"no luck \(6 attempts in 23.0 s; the last error: refused\)")):
    transport.retry(call, errors=OSError, deadline_s=30, what="no luck", first_wait_s=1,
                    longest_wait_s=8, clock=lambda: now[0], sleep=sleep)
  assert waits == [1, 2, 4, 8, 8]


def test_retry_returns_the_first_answer():
  answers = iter([OSError(), OSError(), 7])

  def call():
    answer = next(answers)
    if isinstance(answer, OSError):
      raise answer
    return answer

  assert transport.retry(call, errors=OSError, deadline_s=30, what="", sleep=lambda _: None) == 7
