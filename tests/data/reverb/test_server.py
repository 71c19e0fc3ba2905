"""The data server and its clients: writer, dataset, parameters."""

import subprocess
import sys
import threading
import time

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from starleague.data.records import Records
from starleague.data.reverb import datasets, parameters, sampler, transport, writer
from starleague.data.reverb.server import make_server, make_tables

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2
PARAMS = {"torso": {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}, "b": np.float32([0.5])}


def packed(number: int) -> wire.Packed:
  """Returns a trajectory of zeros with a number in it."""
  zeros = wire.pack(types.zeros(types.trajectory_spec(CONFIG, UNROLL_LENGTH)))
  zeros.int32[0, 0] = number
  return zeros


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


def make_writer(address, **options):
  return writer.TrajectoryWriter(
    address, "main", CONFIG, UNROLL_LENGTH, 2, **{"deadline_s": 10} | options)


def make_dataset(address, batch_size, **options):
  return datasets.dataset(
    address, batch_size, "main", CONFIG, UNROLL_LENGTH, **{"deadline_s": 10} | options)


def test_a_closed_dataset_waits_for_reverb_until_a_sample_comes(serve):
  address = serve()
  data = make_dataset(address, 1)
  time.sleep(0.5)
  data.close()
  assert sampler.waiting()
  sender = make_writer(address)
  sender.send("main", packed(1))
  sender.flush()
  deadline = time.monotonic() + 30
  while sampler.waiting() and time.monotonic() < deadline:
    time.sleep(0.05)
  assert not sampler.waiting()


def test_each_trajectory_is_sampled_exactly_twice(serve):
  address = serve(tolerance=16)
  sender = make_writer(address)
  for number in range(12):
    sender.send("main", packed(number))
  sender.flush()
  with make_dataset(address, 4, deadline_s=1) as batches:
    numbers = [next(batches).int32[0, :, 0] for _ in range(6)]
    assert sorted(np.concatenate(numbers)) == sorted([*range(12)] * 2)
    with pytest.raises(transport.StarvedError, match=(
        "'main' of .* gave no batch of 4 .* it holds 0 trajectories, sampling needs 1, "
        "12 were ever written")):
      next(batches)


def test_each_trajectory_goes_to_its_player(serve):
  """Row 0 plays a game as "rival", then one as "main"; row 1 is not recorded."""
  address = serve(players=("main", "rival"), samples_per_item=1)
  length = 2 * UNROLL_LENGTH + 1
  shape = (2 * length, 2)
  zeros = jax.tree.map(lambda x: np.zeros((*shape, *x.shape), x.dtype), types.step_spec(
    CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected))
  begins = np.isin(np.arange(2 * length), (0, length))
  loops = np.broadcast_to(np.arange(2 * length)[:, None], shape)
  records = Records(
    row=np.broadcast_to(np.arange(2), shape), first=np.broadcast_to(begins[:, None], shape),
    last=np.broadcast_to(np.roll(begins, -1)[:, None], shape),
    core_state=types.CoreState(*[np.zeros((*shape, CONFIG.core_layers, CONFIG.core_size),
                                          np.float32)] * 2),
    step=zeros._replace(observation=zeros.observation._replace(
      game_loop=loops.astype(zeros.observation.game_loop.dtype))))
  player = np.where(np.arange(2 * length)[:, None] < length, 1, 0) + np.array([0, -9])
  sender = writer.TrajectoryWriter(address, ("main", "rival"), CONFIG, UNROLL_LENGTH, 2)
  assert sender.write(records, player) == 4
  sender.flush()
  for name, starts in (("main", {length, length + UNROLL_LENGTH}), ("rival", {0, UNROLL_LENGTH})):
    with datasets.dataset(address, 2, name, CONFIG, UNROLL_LENGTH, deadline_s=10) as batches:
      found = wire.unpack(next(batches), CONFIG).steps.observation.game_loop
    assert set(np.asarray(found)[0].tolist()) == starts


def test_batch_is_time_major_and_exact(serve):
  address = serve()
  random = np.random.default_rng(0)
  spec = wire.packed_spec(CONFIG, UNROLL_LENGTH)
  sent = wire.Packed(*[random.integers(0, 9, x.shape).astype(x.dtype) for x in spec])
  sender = make_writer(address)
  sender.send("main", sent)
  sender.flush()
  with make_dataset(address, 2) as batches:
    batch = next(batches)
  assert batch.state.shape == (2, *spec.state.shape)
  for name, x, y in zip(wire.Packed._fields, batch, sent, strict=True):
    assert x.dtype == y.dtype
    expected = np.stack([y, y], axis=0 if name == "state" else 1)
    np.testing.assert_array_equal(x, expected, err_msg=name)


def test_writer_waits_for_the_learner_and_loses_nothing(serve):
  """The limiter takes min_size + tolerance trajectories ahead of the learner, none is evicted."""
  address = serve(min_size=1, tolerance=2)
  sender = make_writer(address, deadline_s=1, max_in_flight=1)
  with pytest.raises(writer.StarvedError, match="their learner is behind"):
    for number in range(20):
      sender.send("main", packed(number))
  assert 3 <= number <= 6
  sent = number + 1  # the last one is in flight
  with make_dataset(address, 2, deadline_s=1) as batches:
    numbers = np.concatenate([next(batches).int32[0, :, 0] for _ in range(sent)])
  assert sorted(numbers) == sorted([*range(sent)] * 2)


def test_the_stop_event_ends_a_wait_for_the_limiter(serve):
  address = serve(min_size=1, tolerance=1)
  stop = threading.Event()
  sender = make_writer(address, deadline_s=60, max_in_flight=1, stop=stop)
  threading.Timer(0.5, stop.set).start()
  start = time.monotonic()
  for number in range(10):
    sender.send("main", packed(number))
  assert time.monotonic() - start < 10


def test_steps_become_trajectories_in_the_table(serve):
  """A game of 5 steps, T = 2: trajectories start at 0, 2 and, moved back, 3."""
  address = serve()
  step_spec = types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected)
  state_spec = types.core_state_spec(CONFIG)

  def zeros(leaf):
    return np.zeros((6, 1, *leaf.shape), leaf.dtype)

  step, state = jax.tree.map(zeros, (step_spec, state_spec))
  step.observation.game_loop[:, 0] = range(6)
  moment = np.arange(6)[:, None]
  records = Records(row=np.zeros((6, 1), np.int32), first=moment == 0, last=moment == 5,
                    step=step, core_state=state)
  sender = make_writer(address)
  assert sender.write(records) == 3
  sender.flush()
  with make_dataset(address, 6) as batches:
    trajectories = wire.unpack(next(batches), CONFIG)
  loops = np.asarray(trajectories.steps.observation.game_loop).T.tolist()
  assert sorted(loops) == [[0, 1, 2]] * 2 + [[2, 3, 4]] * 2 + [[3, 4, 5]] * 2


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


def test_first_differing_field_is_named():
  class Info:
    signature = None

  expected = wire.packed_spec(CONFIG, UNROLL_LENGTH)._asdict()
  with pytest.raises(transport.SignatureMismatchError, match=(
      "field 'bits' of table 'main' of here:1: found no such field, expected uint8")):
    transport.check_signature({"main": Info()}, "main", "here:1", expected)


def test_the_writer_refuses_a_trajectory_of_another_shape(serve):
  sender = make_writer(serve())
  wrong = packed(0)._replace(int16=np.zeros((2, 7), np.int16))
  with pytest.raises(writer.SignatureMismatchError, match=(
      r"field 'int16' of a trajectory: found int16\[2, 7\], expected int16\[3, \d+\]")):
    sender.send("main", wrong)


def test_an_unknown_player_is_refused_with_the_known_tables(serve):
  address = serve()
  with pytest.raises(transport.SignatureMismatchError, match=(
      r"no table 'zerg' of localhost:\d+; it has \['main', 'parameters/main'\]")):
    datasets.dataset(address, 1, "zerg", CONFIG, UNROLL_LENGTH)


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


def test_tables_that_would_drop_trajectories_are_refused():
  with pytest.raises(ValueError, match=r"at least 42 = .*found 41"):
    make_tables(["main"], CONFIG, UNROLL_LENGTH, min_size=10, tolerance=10, max_size=41)
  with pytest.raises(ValueError, match="distinct"):
    make_tables(["main", "main"], CONFIG, UNROLL_LENGTH)


def test_port_in_use_is_refused(serve):
  address = serve()
  port = int(address.split(":")[1])
  with pytest.raises(OSError, match=f"port {port} is in use"):
    serve(port=port)


def test_a_checkpoint_keeps_unsampled_trajectories(serve, tmp_path):
  address = serve(checkpoint_dir=tmp_path, tolerance=16)
  sender = make_writer(address)
  for number in range(6):
    sender.send("main", packed(number))
  sender.flush()
  parameters.publish(serve.servers[0].localhost_client(), "main", PARAMS, 11)
  before = []
  client = serve.servers[0].localhost_client()
  for sample in client.sample("main", 4, emit_timesteps=False):
    before.append(int(sample.data[sorted(wire.Packed._fields).index("int32")][0, 0]))
  client.checkpoint()
  serve.servers.pop().stop()

  address = serve(checkpoint_dir=tmp_path, tolerance=16)
  assert parameters.ParameterFetcher(address, "main", PARAMS, deadline_s=5)().step == 11
  with make_dataset(address, 8, deadline_s=2) as batches:
    after = next(batches).int32[0, :, 0].tolist()
  assert sorted(before + after) == sorted([*range(6)] * 2)


class Clock:
  now = 0.0

  def __call__(self):
    return self.now


def test_parameters_are_published_and_fetched_at_most_every_interval(serve):
  address, clock = serve(), Clock()
  publisher = parameters.ParameterPublisher(address, "main", clock=clock)
  fetcher = parameters.ParameterFetcher(address, "main", PARAMS, clock=clock, deadline_s=10)
  asked = []

  def publish(step):
    def get():
      asked.append(step)
      return {"torso": {"w": PARAMS["torso"]["w"] + step}, "b": PARAMS["b"]}
    done = publisher(get, step)
    publisher.flush()
    return done

  assert publish(1)
  assert fetcher().step == 1
  clock.now = 9.9
  assert not publish(2)
  clock.now = 10.0
  assert publish(3)
  assert asked == [1, 3]
  clock.now = 9.9
  assert fetcher().step == 1  # fetched at 0
  clock.now = 10.0
  fetched = fetcher()
  assert fetched.step == 3
  np.testing.assert_array_equal(fetched.params["torso"]["w"], PARAMS["torso"]["w"] + 3)
  np.testing.assert_array_equal(fetched.params["b"], PARAMS["b"])
  publisher.close()


def test_parameters_travel_in_pieces(serve, monkeypatch):
  monkeypatch.setattr(parameters, "CELL_BYTES", 10)  # 28 bytes: three pieces, the last padded
  address = serve()
  client, info = transport.connect(address, 5)
  parameters.publish(client, "main", PARAMS, 5)
  fetched = parameters.ParameterFetcher(address, "main", PARAMS, deadline_s=5)()
  np.testing.assert_array_equal(fetched.params["torso"]["w"], PARAMS["torso"]["w"])
  np.testing.assert_array_equal(fetched.params["b"], PARAMS["b"])


def test_parameters_of_another_tree_are_refused(serve):
  address = serve()
  parameters.publish(transport.connect(address, 5)[0], "main", PARAMS, 5)
  template = {"torso": PARAMS["torso"]}
  found, expected = (wire.parameters_hash(x).hex()[:12] for x in (PARAMS, template))
  with pytest.raises(parameters.ParameterMismatchError, match=(
      f"found tree {found} of 28 bytes, expected {expected} of 24 bytes")):
    parameters.ParameterFetcher(address, "main", template, deadline_s=5)()


def test_the_wait_for_a_first_publication_has_a_deadline(serve):
  fetcher = parameters.ParameterFetcher(serve(), "main", PARAMS, deadline_s=1)
  with pytest.raises(parameters.StarvedError, match="no parameters of .main. were published"):
    fetcher()


def test_reverb_is_imported_on_first_use_only():
  """A learner's losses and an actor's games need neither Reverb nor TensorFlow."""
  program = (
    "import sys, starleague.data.reverb.parameters, starleague.data.reverb.writer; "
    "import starleague.data.reverb.server; "
    "print(sorted({'reverb', 'tensorflow'} & set(sys.modules)))")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
  assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
