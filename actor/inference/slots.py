"""Slots: the memory through which a game's row and the inference service exchange a step.

A row is one player of one game, or one copy of a companion's task. Its slot holds a header, the
step in the columns of the wire format, and the answer. Writing and reading copy bytes only: nothing
is serialised or unpickled.
"""

import functools
import math
import struct
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.inference import actions
from starleague.agent import types
from starleague.data import wire

_ALIGNMENT = 64  # bytes of a cache line: slots of two processes share none
_DTYPES = wire.Columns(*map(np.dtype, ("uint8", "uint8", "int16", "int32", "float32")))
# Of decreasing size: each column is aligned to its own dtype.
_ORDER = ("float32", "int32", "int16", "uint8", "bits")


class Header(NamedTuple):
  """What the service must know of a request, beside the step itself; each int32."""

  first: types.Leaf  # 1: the first observation of a game, which starts from the initial core state
  last: types.Leaf  # 1: the terminal observation, which is recorded and not acted on
  player: types.Leaf  # whose parameters act, from 0
  seed: types.Leaf  # with `number`: of the noise of this action; equal ones act equally
  number: types.Leaf  # of the row's actions in this game
  recorded: types.Leaf  # 1: the step belongs to a trajectory; 0: nobody learns from it


_HEADER = struct.Struct(f"={len(Header._fields)}i")


class Format(NamedTuple):
  """The places of a slot's parts, in bytes."""

  columns: dict[str, slice]  # by field of wire.Columns
  request: int  # size of header, step and padding, from byte 0
  answer: slice
  size: int  # of a slot


@functools.lru_cache(maxsize=16)
def slot_format(form: wire.Form) -> Format:
  """Returns the places of a slot's parts for steps of a form and their actions; cached."""
  widths = wire.layout(form).widths
  end = len(Header._fields) * 4
  columns = {}
  for name in _ORDER:
    start, end = end, end + getattr(widths, name) * getattr(_DTYPES, name).itemsize
    columns[name] = slice(start, end)
  request = _aligned(end, 8)
  size = request + 4 * _answer_width(form)
  return Format(columns, request, slice(request, size), _aligned(size, _ALIGNMENT))


def _aligned(size: int, alignment: int) -> int:
  return -(-size // alignment) * alignment


def _answer_width(form: wire.Form) -> int:
  return sum(math.prod(x.shape) for x in jax.tree.leaves(actions.acted_spec(form)[0]))


@functools.lru_cache(maxsize=16)
def _answer_leaves(form: wire.Form) -> tuple[list[tuple[slice, jax.ShapeDtypeStruct]], Any]:
  """Returns the place of each leaf of an action in an answer, its spec, and the tree; cached."""
  leaves, structure = jax.tree.flatten(actions.acted_spec(form)[0])
  ends = np.cumsum([math.prod(x.shape) for x in leaves]).tolist()
  return [(slice(start, end), like)
          for start, end, like in zip([0, *ends], ends, leaves, strict=False)], structure


class Slot:
  """One slot, seen from its game."""

  def __init__(self, memory: np.ndarray, form: wire.Form):
    """Takes the slot's memory, [size] uint8, and the form of the steps."""
    places = slot_format(form)
    self._header = memory[:4 * len(Header._fields)].view(np.int32)
    self._columns = wire.Columns(**{
      name: memory[place].view(getattr(_DTYPES, name)) for name, place in places.columns.items()})
    self._answer = memory[places.answer].view(np.int32)
    self._form = form

  def write(self, header: Header, step: Any) -> None:
    """Writes a request.

    Args:
      header: of the request.
      step: unbatched numpy arrays; its action and log-probs are not read.

    Raises:
      ValueError: a leaf does not fit the form; names it.
    """
    wire.check_steps(step, self._form)
    self._header[:] = header
    for memory, column in zip(self._columns, wire.pack_steps(step), strict=True):
      memory[:] = column

  def read(self) -> Any:
    """Returns the answer to the last request, in the dtypes of the form's action."""
    return unpack_answers(self._answer, self._form)


class Rows:
  """All slots of a client as one batch, seen from its game."""

  def __init__(self, memory: np.ndarray, form: wire.Form):
    """Takes the slots' memory, [n, size] uint8, and the form of the steps."""
    places = slot_format(form)
    self._header = memory[:, :4 * len(Header._fields)].view(np.int32)
    self._columns = host_columns(memory, form)
    self._answers, self._form = memory[:, places.answer].view(np.int32), form

  def write(self, headers: Header, steps: Any) -> None:
    """Writes the requests of all slots.

    Args:
      headers: [n] or one value for all, each.
      steps: numpy arrays [n, ...]; their actions and log-probs are not read.

    Raises:
      ValueError: a leaf does not fit the form; names it.
    """
    wire.check_steps(steps, self._form)
    for place, value in enumerate(headers):
      self._header[:, place] = value
    for memory, column in zip(self._columns, wire.pack_steps(steps), strict=True):
      memory[:] = column

  def read(self) -> Any:
    """Returns the answers to the last requests, leaves [n, ...]."""
    return unpack_answers(self._answers, self._form)


def header(request: np.ndarray) -> Header:
  """Returns the header of one request [bytes] uint8, as Python's numbers."""
  return Header._make(_HEADER.unpack_from(request.data))


def headers(requests: np.ndarray) -> Header:
  """Returns the headers of requests [n, bytes] uint8: leaves [n] int32."""
  return Header(*requests[:, :_HEADER.size].view(np.int32).T)


def host_columns(requests: np.ndarray, form: wire.Form) -> wire.Columns:
  """Returns the steps of requests [n, bytes] uint8 as views of them: columns [n, width]."""
  return wire.Columns(**{
    name: requests[:, place].view(getattr(_DTYPES, name))
    for name, place in slot_format(form).columns.items()})


def device_columns(requests: jax.Array, form: wire.Form) -> wire.Columns:
  """Returns `host_columns` of requests [n, bytes] under jit: one array goes to the device."""
  columns = {}
  for name, place in slot_format(form).columns.items():
    dtype, found = getattr(_DTYPES, name), requests[:, place]
    columns[name] = found if dtype == np.uint8 else jax.lax.bitcast_convert_type(
      found.reshape(len(found), -1, dtype.itemsize), dtype)
  return wire.Columns(**columns)


def device_answers(action: Any) -> jax.Array:
  """Returns actions, a tree of [n, ...], as rows [n, width] int32, under jit."""
  leaves = jax.tree.leaves(action)
  return jnp.concatenate(
    [x.reshape(len(x), -1).astype(jnp.int32) for x in leaves], axis=1)


def unpack_answers(answers: np.ndarray, form: wire.Form) -> Any:
  """Returns answers [..., width] int32 as actions [...] in the dtypes of the form's action."""
  leaves, structure = _answer_leaves(form)
  lead = answers.shape[:-1]
  # An empty index makes a number of an array without axes.
  return jax.tree.unflatten(structure, [
    answers[..., place].astype(like.dtype).reshape((*lead, *like.shape))[()]
    for place, like in leaves])
