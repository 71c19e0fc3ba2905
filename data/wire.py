"""The wire format of steps, trajectories and parameters: a few flat columns for sixty leaves.

A step is one row in each of five columns, one per dtype; booleans and the binary planes of the
minimap take one bit each. Packing is exact. It works on numpy arrays and, under jit, on JAX arrays:
an actor may pack on its device and fetch five arrays instead of sixty. Integers of a trajectory are
sent as differences between consecutive steps, modulo their range, which loses nothing: most of a
game does not change in a step, and zeros compress well.

The form of the steps is AlphaStar's, given by an AgentConfig, or that of another system, given by a
`StepFormat`.

Parameters travel as one vector of bytes, with a hash of their tree, shapes and dtypes.
"""

import dataclasses
import functools
import hashlib
import math
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from starleague.agent import types
from starleague.agent.config import AgentConfig

Array = jax.Array | np.ndarray
Tree = Any  # of arrays
Leaf = TypeVar("Leaf")
BINARY_PLANES = tuple(
  types.MINIMAP_PLANES.index(name) for name in ("creep", "alerts", "pathable", "buildable"))
_OTHER_PLANES = tuple(i for i in range(len(types.MINIMAP_PLANES)) if i not in BINARY_PLANES)


class Columns(NamedTuple, Generic[Leaf]):
  """Steps as rows: one leaf per dtype, arrays [..., width] with the leading axes of the steps."""

  bits: Leaf  # uint8, eight booleans each
  uint8: Leaf
  int16: Leaf
  int32: Leaf
  float32: Leaf


_DTYPES = Columns[DTypeLike](np.uint8, np.uint8, np.int16, np.int32, np.float32)
_UNPACKED = _DTYPES._replace(bits=np.bool_)


class Packed(NamedTuple, Generic[Leaf]):
  """A trajectory on the wire: columns [T + 1, width], integers as differences in time.

  A batch has columns [T + 1, B, width] and state [B, width]; see `BATCH_AXES`.
  """

  bits: Leaf  # uint8
  uint8: Leaf
  int16: Leaf
  int32: Leaf
  float32: Leaf
  state: Leaf  # [width] float32: the core state before the first step


BATCH_AXES = dict.fromkeys(Columns._fields, 1) | {"state": 0}  # of the fields of a Packed batch


@dataclasses.dataclass(frozen=True)
class StepFormat:
  """The steps of a system other than AlphaStar's agent.

  Attributes:
    step: a NamedTuple with the fields `reward` and `discount`, [] float32, and others: trees of
      jax.ShapeDtypeStruct without dicts; dtypes bool, uint8, int16, int32 and float32. The
      inference service also needs `action` and `behaviour`, which it sets.
    state: the core state before a step: a tree of float32 ShapeDtypeStruct with at least one leaf,
      which may be empty, [0].
  """

  step: Any
  state: Any


Form = AgentConfig | StepFormat


class ColumnField(NamedTuple):
  """The place of a step's leaf in the columns."""

  column: str  # of Columns
  slice: slice  # of its last axis, in booleans for `bits`
  shape: tuple[int, ...]
  dtype: np.dtype


class Layout(NamedTuple):
  """The places of all leaves in the columns."""

  fields: dict[str, ColumnField]  # by path ("observation.entities"), in the order of the leaves
  widths: Columns[int]  # of each column; `bits` in bytes
  num_bits: int


def _split_minimap(step: Any) -> Any:
  """Replaces `minimap` by a pair: the binary planes as booleans, the other planes unchanged.

  Steps of other systems stay as they are.
  """
  if not isinstance(step, types.Step):
    return step
  minimap = step.observation.minimap
  binary, other = minimap[..., BINARY_PLANES, :, :], minimap[..., _OTHER_PLANES, :, :]
  return step._replace(
    observation=step.observation._replace(minimap=(binary.astype(bool), other)))


def _join_minimap(step: types.Step) -> types.Step:
  """The inverse of `_split_minimap`."""
  binary, other = step.observation.minimap
  planes = jnp.concatenate([binary.astype(np.uint8), other], axis=-3)
  order = np.argsort(BINARY_PLANES + _OTHER_PLANES)
  return step._replace(observation=step.observation._replace(minimap=planes[..., order, :, :]))


def step_spec(form: Form) -> Any:
  """Returns shapes and dtypes of a step."""
  if isinstance(form, StepFormat):
    return form.step
  return types.step_spec(form.max_entities, form.map_size, form.max_selected)


def state_spec(form: Form) -> Any:
  """Returns shapes and dtypes of the core state before a step."""
  return form.state if isinstance(form, StepFormat) else types.core_state_spec(form)


@functools.lru_cache(maxsize=16)
def _template(form: Form) -> tuple[Any, dict[str, jax.ShapeDtypeStruct]]:
  """Returns a step of specs with the minimap split, and its leaves by path."""
  step = step_spec(form)
  if isinstance(step, types.Step):
    planes = step.observation.minimap.shape[1:]
    step = step._replace(observation=step.observation._replace(minimap=(
      jax.ShapeDtypeStruct((len(BINARY_PLANES), *planes), np.bool_),
      jax.ShapeDtypeStruct((len(_OTHER_PLANES), *planes), np.uint8))))
  leaves = jax.tree_util.tree_leaves_with_path(step)
  return step, {jax.tree_util.keystr(path, simple=True, separator="."): leaf
                for path, leaf in leaves}


def _column(dtype: DTypeLike) -> str:
  return "bits" if dtype == np.bool_ else np.dtype(dtype).name


@functools.lru_cache(maxsize=16)
def layout(form: Form) -> Layout:
  """Returns the places of a step's leaves in the columns; cached.

  Raises:
    ValueError: a leaf has a dtype that no column has; names it.
  """
  ends = dict.fromkeys(Columns._fields, 0)
  fields = {}
  for path, leaf in _template(form)[1].items():
    column = _column(leaf.dtype)
    if column not in ends:
      raise ValueError(f"leaf {path!r} of the steps: found {column}, expected bool, uint8, int16, "
                       "int32 or float32.")
    start, ends[column] = ends[column], ends[column] + math.prod(leaf.shape)
    fields[path] = ColumnField(column, slice(start, ends[column]), leaf.shape, np.dtype(leaf.dtype))
  num_bits = ends["bits"]
  return Layout(fields, Columns(**ends | {"bits": -(-num_bits // 8)}), num_bits)


def _check_planes(minimap: np.ndarray) -> None:
  highest = minimap.max(axis=(-1, -2), initial=0)
  for plane in BINARY_PLANES:
    found = highest[..., plane].max(initial=0)
    if found > 1:
      raise ValueError(
        f"minimap plane {types.MINIMAP_PLANES[plane]!r} must hold 0 and 1 only, found {found}: it "
        "travels as one bit.")


def check_steps(step: Any, form: Form) -> None:
  """Checks that steps with any leading axes have the leaves that their form specifies.

  A leaf of another dtype would travel in a column where `unpack_steps` does not expect it.

  Raises:
    ValueError: names the first leaf that differs, with found and expected dtype and shape.
  """
  leading = tuple(step.discount.shape)
  kind = "this format" if isinstance(form, StepFormat) else f"preset {form.name!r}"
  for (path, leaf), expected in zip(
      jax.tree_util.tree_leaves_with_path(step), jax.tree.leaves(step_spec(form)), strict=True):
    if leaf.shape != leading + expected.shape or leaf.dtype != expected.dtype:
      name = jax.tree_util.keystr(path, simple=True, separator=".")
      raise ValueError(
        f"leaf {name!r} of the steps: found {leaf.dtype}{list(leaf.shape)}, expected "
        f"{np.dtype(expected.dtype)}{list(leading + expected.shape)}; make steps as "
        f"wire.step_spec of {kind} says.")


def pack_steps(step: Any) -> Columns:
  """Packs steps with any leading axes `...` into columns [..., width].

  Exact if the binary planes hold 0 and 1 only. Numpy arrays give numpy arrays; JAX arrays (or
  tracers) give JAX arrays.

  Raises:
    ValueError: a binary plane holds another value; checked for numpy arrays only.
  """
  xp: Any = np if isinstance(step.discount, np.ndarray) else jnp
  if xp is np and isinstance(step, types.Step):
    _check_planes(step.observation.minimap)
  leading = step.discount.shape
  parts: dict[str, list[Array]] = {
    name: [xp.zeros((*leading, 0), dtype)] for name, dtype in _UNPACKED._asdict().items()}
  for leaf in jax.tree.leaves(_split_minimap(step)):
    parts[_column(leaf.dtype)].append(leaf.reshape(*leading, math.prod(leaf.shape[len(leading):])))
  columns = {name: xp.concatenate(leaves, axis=-1) for name, leaves in parts.items()}
  return Columns(**columns | {"bits": xp.packbits(columns["bits"], axis=-1)})


def unpack_steps(columns: Columns, form: Form) -> Any:
  """The inverse of `pack_steps`, under jit: columns [..., width] to steps with those axes."""
  where = layout(form)
  leading = columns.float32.shape[:-1]
  bits = jnp.unpackbits(jnp.asarray(columns.bits), axis=-1, count=where.num_bits).astype(bool)
  columns = columns._replace(bits=bits)
  leaves = [getattr(columns, field.column)[..., field.slice].reshape(*leading, *field.shape)
            for field in where.fields.values()]
  step = jax.tree.unflatten(jax.tree.structure(_template(form)[0]), leaves)
  return _join_minimap(step) if isinstance(step, types.Step) else step


def pack_state(state: Any, num_leading: int = 0) -> Any:
  """Packs core states into vectors: leaves [..., ...] float32 to [..., n].

  Args:
    state: numpy or JAX arrays.
    num_leading: number of leading axes `...`.
  """
  leaves = jax.tree.leaves(state)
  xp: Any = np if isinstance(leaves[0], np.ndarray) else jnp
  return xp.concatenate([x.reshape(*x.shape[:num_leading], math.prod(x.shape[num_leading:]))
                         for x in leaves], axis=-1)


def unpack_state(vector: Array, form: Form) -> Any:
  """The inverse of `pack_state`: [..., n] to leaves [..., ...]."""
  leaves, treedef = jax.tree.flatten(state_spec(form))
  ends = np.cumsum([math.prod(leaf.shape) for leaf in leaves])[:-1]
  return jax.tree.unflatten(treedef, [
    part.reshape(*vector.shape[:-1], *leaf.shape)
    for part, leaf in zip(jnp.split(jnp.asarray(vector), ends, axis=-1), leaves, strict=True)])


def difference(x: np.ndarray) -> np.ndarray:
  """Computes each row minus the previous one, modulo the dtype's range; rows are the first axis.

  Writing is bound by compression: it is 1.3 times (mini, T = 16) to 4.8 times (full, T = 64) as
  fast as without differences. Reading is not slower.
  """
  out = np.empty_like(x)
  out[0] = x[0]
  np.subtract(x[1:], x[:-1], out=out[1:])
  return out


def summed(columns: Columns[np.ndarray], path: str, form: Form) -> np.ndarray:
  """Returns an integer field of steps whose integers are differences in time.

  Args:
    columns: [steps, width].
    path: of the field, as "observation.player".
    form: of the steps.

  Returns:
    [steps, width of the field].
  """
  field = layout(form).fields[path]
  x = getattr(columns, field.column)[:, field.slice]
  return np.cumsum(x, axis=0, dtype=x.dtype)


def _running_sum(x: jax.Array) -> jax.Array:
  """The inverse of `difference`. On a CPU, a scan is ten times as fast as `jnp.cumsum`."""
  def add(total, row):
    return (total + row,) * 2
  return jax.lax.scan(add, jnp.zeros_like(x[0]), x)[1]


def make_terminal(columns: Columns, index: tuple, config: AgentConfig) -> None:
  """Makes steps of AlphaStar's agent terminal, in place: no action, discount 0, weight 0.

  Args:
    columns: numpy arrays [..., width], not differences.
    index: of the steps, over all leading axes.
    config: the AgentConfig of the steps.
  """
  for path, field in layout(config).fields.items():
    column = getattr(columns, field.column)
    if path == "action.units":
      column[(*index, field.slice)] = config.max_entities  # the end token
    elif path.split(".")[0] in ("action", "log_prob", "discount", "weight"):
      column[(*index, field.slice)] = 0


def seal(columns: Columns, state: np.ndarray) -> Packed:
  """Converts rows of a trajectory [T + 1, width] and the state before them to the wire format."""
  rows = [x if x.dtype == np.float32 else difference(x) for x in columns]
  return Packed(*[*rows, state])


def pack(trajectory: types.Trajectory) -> Packed:
  """Packs a trajectory of numpy arrays; exact."""
  return seal(pack_steps(trajectory.steps), pack_state(trajectory.initial_state))


def unpack(packed: Packed, form: Form) -> types.Trajectory:
  """The inverse of `pack`, under jit; also of a batch.

  Args:
    packed: columns [T + 1, width] and state [n], or [T + 1, B, width] and [B, n].
    form: of the steps.

  Returns:
    A trajectory with leaves [T + 1, ...], or [T + 1, B, ...] and a state [B, ...].
  """
  columns = [x if x.dtype == np.float32 else _running_sum(x) for x in map(jnp.asarray, packed[:-1])]
  return types.Trajectory(
    steps=unpack_steps(Columns(*columns), form),
    initial_state=unpack_state(packed.state, form))


def packed_spec(form: Form, unroll_length: int) -> Packed[jax.ShapeDtypeStruct]:
  """Returns shapes and dtypes of a packed trajectory with T = `unroll_length`."""
  columns = [jax.ShapeDtypeStruct((unroll_length + 1, width), dtype)
             for width, dtype in zip(layout(form).widths, _DTYPES, strict=True)]
  state = sum(math.prod(x.shape) for x in jax.tree.leaves(state_spec(form)))
  return Packed(*[*columns, jax.ShapeDtypeStruct((state,), np.float32)])


def empty_batch(form: Form, unroll_length: int, batch_size: int) -> Packed[np.ndarray]:
  """Returns a batch of zeros: with weight 0, its steps have no effect on the parameters."""
  return Packed(**{
    name: np.zeros((*x.shape[:axis], batch_size, *x.shape[axis:]), x.dtype)
    for (name, x), axis in zip(packed_spec(form, unroll_length)._asdict().items(),
                               BATCH_AXES.values(), strict=True)})


def parameters_hash(params: Tree) -> bytes:
  """Computes 32 bytes that differ if two trees differ in structure, names, shapes or dtypes."""
  lines = [f"{jax.tree_util.keystr(path)} {tuple(x.shape)} {np.dtype(x.dtype).name}"
           for path, x in jax.tree_util.tree_leaves_with_path(params)]
  return hashlib.sha256("\n".join(lines).encode()).digest()


def parameters_size(params: Tree) -> int:
  """Returns the number of bytes of `flatten_parameters(params)`."""
  return sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in jax.tree.leaves(params))


def flatten_parameters(params: Tree) -> np.ndarray:
  """Concatenates the bytes of all leaves in the order of the tree: [n] uint8."""
  leaves = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in jax.tree.leaves(params)]
  return np.concatenate(leaves) if leaves else np.zeros((0,), np.uint8)


def unflatten_parameters(vector: np.ndarray, template: Tree) -> Tree:
  """The inverse of `flatten_parameters`.

  Args:
    vector: [n] uint8.
    template: a tree whose leaves have the shapes and dtypes (arrays or ShapeDtypeStructs).

  Returns:
    A tree of numpy arrays, copies of the vector's parts.

  Raises:
    ValueError: the size of the vector differs from the template's.
  """
  expected = parameters_size(template)
  if vector.size != expected:
    raise ValueError(
      f"parameters of {vector.size} bytes do not fit a tree of {expected} bytes; they were made "
      "by another configuration of the agent: use that one.")
  leaves, treedef = jax.tree.flatten(template)
  ends = np.cumsum([parameters_size(x) for x in leaves])[:-1]
  parts = np.split(vector, ends)
  return jax.tree.unflatten(treedef, [
    part.copy().view(x.dtype).reshape(x.shape) for part, x in zip(parts, leaves, strict=True)])
