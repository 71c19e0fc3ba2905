"""An inference service of the counting policy, whose core state and noise are known."""

import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from starleague.actor.inference import Batcher, Client, Header, Listener, Model, Service, sockets
from starleague.agent import config as agent_config
from starleague.agent import types
from tests.actor.clockwork import counting_policy

# The sizes of the counting policy's observations and actions.
CONFIG = dataclasses.replace(
  agent_config.mini(), max_entities=4, map_size=4, max_selected=2, core_layers=1, core_size=2)
KEY = jax.random.key(5)
SIZES = (1, 4)
SLOTS = 6


def make_model(slots: int = SLOTS, sizes: tuple[int, ...] = SIZES) -> Model:
  """Player 0 adds 1 to its core state at each step, player 1 adds 100."""
  model = Model(counting_policy(), CONFIG, slots, sizes, np.float32(0), KEY)
  model.set_params(0, np.float32(1))
  model.set_params(1, np.float32(100))
  return model


def make_step(number: int = 0) -> types.Step:
  step = types.zeros(types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected))
  player = step.observation.player.copy()
  player[0] = number
  return step._replace(observation=step.observation._replace(player=player),
                       discount=np.float32(1), weight=np.float32(1),
                       reward=np.full(len(types.REWARDS), number, np.float32))


def random_step(config: agent_config.AgentConfig, seed: int = 0) -> types.Step:
  """Returns a step of random numbers over the range of each dtype."""
  rng = np.random.default_rng(seed)

  def leaf(spec):
    if spec.dtype == np.float32:
      return rng.normal(size=spec.shape).astype(np.float32)
    if spec.dtype == np.bool_:
      return rng.random(spec.shape) < 0.5
    limits = np.iinfo(spec.dtype)
    return rng.integers(limits.min, limits.max, spec.shape, endpoint=True, dtype=spec.dtype)

  step = jax.tree.map(leaf, types.step_spec(
    config.max_entities, config.map_size, config.max_selected))
  minimap = step.observation.minimap % np.array([255, 4, 2, 5, 2, 2, 2], np.uint8)[:, None, None]
  return step._replace(observation=step.observation._replace(minimap=minimap))


def header(seed: int = 0, number: int = 0, *, player: int = 0, last: bool = False,
           recorded: bool = True) -> Header:
  return Header(int(number == 0), int(last), player, seed, number, int(recorded))


def delay(seed: int, number: int) -> int:
  """The delay that the counting policy draws with the noise of a row's action."""
  key = jax.random.fold_in(jax.random.fold_in(KEY, seed), number)
  return int(jax.random.randint(key, (), 1, 50))


@contextlib.contextmanager
def repeating(step: Callable[[], object], listener: Listener) -> Iterator[None]:
  """Repeats a step in a thread until the end; raises its error there."""
  stop, errors = threading.Event(), []

  def run() -> None:
    try:
      while not stop.is_set():
        step()
    except Exception as error:
      errors.append(error)

  thread = threading.Thread(target=run)
  thread.start()
  try:
    yield
  finally:
    stop.set()
    listener.wake()
    thread.join()
  assert not errors, errors


@contextlib.contextmanager
def serving(model: Model, slots: int, wait_s: float = 0.01,
            on_records: Any = None) -> Iterator[Listener]:
  """Serves in a thread; raises its error at the end."""
  listener = Listener(CONFIG, slots)
  service = Service(model, Batcher(SIZES, wait_s), listener, CONFIG, on_records)
  with contextlib.closing(listener), contextlib.closing(service), \
      repeating(service.run_once, listener):
    yield listener


def connect(listener, slots=2, deadline_s=60.0):
  return Client(listener.address, CONFIG, slots, deadline_s)


def hello(slots, config_hash=None, magic=sockets.MAGIC):
  return sockets.HELLO.pack(magic, config_hash or sockets.format_hash(CONFIG), slots)


def raw(listener, message):
  """Returns a connection after its first message, and the answer."""
  connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  connection.settimeout(60)
  connection.connect(listener.address)
  connection.send(message)
  answer, files, _, _ = socket.recv_fds(connection, 1024, 1)
  return connection, answer


def act_once(listener, slots, slot=0, seed=2):
  """A new client claims slots, and one of them gets the action of its game's noise."""
  client = connect(listener, slots)
  found = client.act({slot: (header(seed), make_step())})
  assert int(found[slot].delay) == delay(seed, 0)
  client.close()


def wait_until_claimed(listener, slots):
  end = time.monotonic() + 60
  while listener.claimed != slots:
    assert time.monotonic() < end, f"{listener.claimed} slots are claimed, expected {slots}"
    time.sleep(0.01)
