"""The synchronous update: gradients on every device, averaged, applied by Adam.

All of `pmap`, donation and the placement of arrays on devices is in this file. A state is either a
*host state* (numpy leaves, one copy, saved and restored) or a *replicated state* (leaves
`[D, ...]`, one copy per device, the input and output of `Update`).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from starleague.data.trees import Tree, is_key
from starleague.learner import flat
from starleague.learner.train_state import TrainState

Batch = TypeVar("Batch", bound=NamedTuple)  # fields are arrays or trees of arrays
# The axis of the trajectories in every leaf of a batch's field, by field.
BatchAxes = Mapping[str, int]
TRAJECTORY_AXES: BatchAxes = {"steps": 1, "initial_state": 0}  # of types.Trajectory
LossFn = Callable[..., tuple[jax.Array, Any]]  # see `make_update`
AXIS = "device"


def shard_batch(batch: Batch, num_devices: int, axes: BatchAxes = TRAJECTORY_AXES) -> Batch:
  """Splits a host batch by device.

  Args:
    batch: numpy or JAX arrays `[..., B, ...]`.
    num_devices: D. Device d gets trajectories d * B / D to (d + 1) * B / D - 1.
    axes: the axis of B in each field.

  Returns:
    The batch with arrays `[D, ..., B / D, ...]`; views where numpy allows.

  Raises:
    ValueError: leaves differ in B, or B is not a multiple of D.
  """
  size = _batch_size(batch, axes)
  if size % num_devices:
    raise ValueError(f"a batch of {size} trajectories cannot be split over {num_devices} devices; "
                     f"use a batch of {max(1, size // num_devices) * num_devices}")

  def split(x, axis):
    shape = (*x.shape[:axis], num_devices, size // num_devices, *x.shape[axis + 1:])
    x = x.reshape(shape)
    return np.moveaxis(x, axis, 0) if isinstance(x, np.ndarray) else jnp.moveaxis(x, axis, 0)

  return _map_batch(split, batch, axes)


def replicate(tree: Tree, devices: Sequence[jax.Device] | None = None,
              from_first: bool = False) -> Tree:
  """Copies a tree of host arrays and typed keys to every device: leaves `[D, ...]`.

  A compiled program makes the copies instead of `device_put`, for two reasons. Its outputs have the
  sharding of an update's outputs, so that the update compiles once. They also share no memory with
  `tree`, which an update that donates the copies would otherwise overwrite.

  Args:
    tree: leaves without the leading axis; the same on every host.
    devices: devices of all hosts; None: all devices.
    from_first: every host gets the values of the first device's host, bit for bit; other hosts'
      trees only determine shapes and dtypes.
  """
  devices = _devices(devices)
  count = len(_local(devices))
  leaves, treedef = jax.tree.flatten(tree)
  if not leaves:  # pmap refuses to map over nothing
    return tree
  implementations = [jax.random.key_impl(x) if is_key(x) else None for x in leaves]
  data = [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in leaves]

  def place(data):
    if from_first:
      data = [_of_first(x) for x in data]
    return [x if impl is None else jax.random.wrap_key_data(x, impl=impl)
            for x, impl in zip(data, implementations, strict=True)]

  copies = [np.broadcast_to(x, (count, *x.shape)) for x in data]
  return jax.tree.unflatten(
    treedef, jax.pmap(place, axis_name=AXIS, devices=devices)(copies))


def _of_first(x: jax.Array) -> jax.Array:
  """Broadcasts the first device's bits to all devices, as a sum in which all others are 0."""
  bits = jax.lax.bitcast_convert_type(x, jnp.dtype(f"uint{8 * x.dtype.itemsize}"))
  bits = jax.lax.psum(jnp.where(jax.lax.axis_index(AXIS) == 0, bits, 0), AXIS)
  return jax.lax.bitcast_convert_type(bits, x.dtype)


def unreplicate(tree: Tree) -> Tree:
  """Returns the first device's copy of a replicated tree, as numpy arrays and typed keys.

  Waits for the update that computes it. The arrays are copies: a view of a device's memory, numpy's
  default on CPU, would prevent the next update from reusing that memory.
  """
  def first(x):
    if is_key(x):
      return jax.random.wrap_key_data(first(jax.random.key_data(x)), impl=jax.random.key_impl(x))
    return np.array(x.addressable_shards[0].data)[0]

  return jax.tree.map(first, tree)


@dataclasses.dataclass(frozen=True)
class Update:
  """A compiled update and the devices it runs on; see `make_update`."""

  devices: tuple[jax.Device, ...]  # of all hosts
  local_devices: tuple[jax.Device, ...]  # of this host
  batch_axes: BatchAxes
  _run: jax.stages.Wrapped

  def place(self, batch: Batch) -> Batch:
    """Places this host's batch on its devices, without waiting for the transfer.

    On CPU the devices may read the batch's own memory: do not write to it afterwards.

    Raises:
      ValueError: B is not a multiple of this host's number of devices.
    """
    mesh = jax.sharding.Mesh(np.array(self.local_devices), (AXIS,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(AXIS))
    return jax.device_put(
      shard_batch(batch, len(self.local_devices), self.batch_axes), sharding)

  def place_carry(self, carry: Tree) -> Tree:
    """Places a carry of host arrays [B, ...] on this host's devices: [D, B / D, ...].

    A compiled program makes it, for the reason given in `replicate`.
    """
    count = len(self.local_devices)
    rows = jax.tree.map(lambda x: np.reshape(x, (count, -1, *np.shape(x)[1:])), carry)
    return jax.pmap(lambda x: x, axis_name=AXIS, devices=self.devices)(rows)

  def replicate(self, tree: Tree, from_first: bool = False) -> Tree:
    """Copies a host tree to this update's devices; see `replicate`."""
    return replicate(tree, self.devices, from_first)

  def make_vote(self) -> Callable[[float], Callable[[], float]]:
    """Returns an all-host consensus: vote(x) returns a function that returns the largest x.

    Values are rounded to float32. All hosts must vote equally often. A vote is a program on the
    devices, queued between updates: cast before an update is started and read after, it completes
    while that update runs.
    """
    if self.local_devices == self.devices:
      return lambda x: lambda: float(np.float32(x))
    largest = jax.pmap(lambda x: jax.lax.pmax(x, AXIS), axis_name=AXIS,
                       devices=self.devices, out_axes=None)

    def vote(x: float) -> Callable[[], float]:
      answer = largest(np.full(len(self.local_devices), x, np.float32))
      return lambda: float(answer)

    return vote

  def __call__(self, state: TrainState, batch: NamedTuple,
               *fixed: Tree) -> tuple[TrainState, dict[str, jax.Array]]:
    """Starts one update; returns its new state and metrics, without a carry: see `carried`."""
    state, metrics, _ = self._run(state, batch, fixed)
    return state, metrics

  def carried(self, state: TrainState, batch: NamedTuple,
              *fixed: Tree) -> tuple[TrainState, dict[str, jax.Array], Tree]:
    """Starts one update; returns before the devices are done.

    Args:
      state: replicated; donated, so that it must not be used again.
      batch: from `place`. It is not donated: no output could reuse its memory, and a batch with
        values that are not finite must remain available for the diagnosis.
      *fixed: replicated constant trees that the loss reads (a teacher's parameters).

    Returns:
      The new state; metrics {name: [] array on a device}, means over all devices; and the carry of
      the loss, [D, B / D, ...] on the devices of its trajectories, () if the loss has none. A carry
      may be part of the next batch as it is.
    """
    return self._run(state, batch, fixed)

  def lower(self, state: TrainState, batch: NamedTuple, *fixed: Tree) -> jax.stages.Lowered:
    """Lowers the update for arguments of these shapes, for compilation ahead of time.

    Args:
      state: shapes of one device's copy.
      batch: shapes of one device's share, steps `[T + 1, b, ...]`.
      *fixed: shapes of one device's copies.

    Returns:
      A jax.stages.Lowered, also for devices of a described TPU topology.
    """
    def on_all(tree):
      return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((len(self.local_devices), *x.shape), x.dtype), tree)

    return self._run.lower(on_all(state), on_all(batch), on_all(fixed))


def make_update(loss_fn: LossFn, optimizer: optax.GradientTransformation,
                devices: Sequence[jax.Device] | None = None, accumulate: int = 1,
                batch_axes: BatchAxes = TRAJECTORY_AXES, carries: bool = False,
                finish: Callable[[Tree, Tree], Tree] | None = None) -> Update:
  """Builds the synchronous update over all devices.

  Every device computes the gradient of its share of the batch; gradients and metrics are averaged.
  If the loss, the gradient's norm or the norm of the parameters' change is not finite, all devices
  keep their parameters and optimizer states, and the update counts as skipped.

  Args:
    loss_fn: (params, key, batch, *fixed) -> (loss [], {name: []}), pure, where the batch is a part
      of b trajectories. The loss must be a mean over them: the average of the shares' gradients is
      then that of the whole batch. All metrics are averaged likewise. The key differs
      by step and by share.
    optimizer: see `make_optimizer`.
    devices: devices of all hosts; None: all devices.
    accumulate: number of parts of a device's share. Their gradients are computed one after the
      other and averaged, so that only one part's activations are in memory. Parts and their keys
      depend on devices times parts alone, not on their distribution.
    batch_axes: the axis of the trajectories in each field of a batch.
    carries: whether loss_fn returns (loss [], ({name: []}, carry)). The carry is a tree of arrays
      [b, ...], one row per trajectory. It is not averaged: see `Update.carried`.
    finish: (parameters after the optimizer, carry of a device's share) -> parameters, equal on all
      devices: it reduces the carry over the axis `AXIS`. For parameters that no gradient trains,
      such as PopArt's statistics. None: no change.

  Returns:
    An `Update`. Its metrics are those of loss_fn, and loss, gradient_norm (before clipping),
    update_norm, step, skipped and consecutive_skipped.

  Raises:
    ValueError: `accumulate` is not positive.
  """
  if accumulate < 1:
    raise ValueError(f"accumulate: expected at least 1, found {accumulate}")
  all_devices = _devices(devices)
  gradients = _gradients_of(loss_fn if carries else _without_carry(loss_fn), accumulate, batch_axes)

  def run(state: TrainState, batch: NamedTuple,
          fixed: tuple[Tree, ...]) -> tuple[TrainState, dict[str, jax.Array], Tree]:
    key = jax.random.fold_in(state.key, state.step)
    grads, metrics, carry = gradients(state.params, key, batch, fixed)
    # Gradients are one matrix from here on: one reduction over devices, one norm, one pass of the
    # optimizer.
    grads, metrics = jax.lax.pmean((flat.flatten(grads), metrics), AXIS)
    state, applied = _apply(optimizer, state, grads, metrics["loss"],
                            None if finish is None else lambda params: finish(params, carry))
    return state, {**metrics, **applied}, carry

  # Metrics are equal on all devices: one copy is returned.
  compiled = jax.pmap(run, axis_name=AXIS, devices=all_devices, donate_argnums=(0,),
                      out_axes=(0, None, 0))
  return Update(tuple(all_devices), tuple(_local(all_devices)), batch_axes, compiled)


def _apply(optimizer: optax.GradientTransformation, state: TrainState, grads: jax.Array,
           loss: jax.Array,
           finish: Callable[[Tree], Tree] | None) -> tuple[TrainState, dict[str, jax.Array]]:
  """Applies a gradient, or skips the update if a value is not finite.

  Args:
    optimizer: of the parameters as one matrix, see `flat`.
    state: the state before the update.
    grads: such a matrix, averaged over devices.
    loss: [], averaged over devices.
    finish: changes the parameters after the optimizer; None: no change.

  Returns:
    The new state and the metrics of the update.
  """
  updates, opt_state = optimizer.update(grads, state.opt_state, flat.flatten(state.params))
  params = optax.apply_updates(state.params, flat.unflatten(updates, state.params))
  if finish is not None:
    params = finish(params)
  # A norm is finite only if each square is. Adam's moments then are finite too: an infinite one
  # would never decay.
  gradient_norm, update_norm = optax.tree.norm(grads), optax.tree.norm(updates)
  finite = _all_finite((loss, gradient_norm, update_norm, () if finish is None else params))
  params, opt_state = jax.tree.map(lambda new, old: jnp.where(finite, new, old),
                                   (params, opt_state), (state.params, state.opt_state))
  skip = 1 - finite.astype(jnp.int32)
  state = TrainState(
    params, opt_state, step=state.step + 1,
    key=state.key, skipped=state.skipped + skip,
    consecutive_skipped=(state.consecutive_skipped + 1) * skip)
  return state, {
    "gradient_norm": gradient_norm, "update_norm": jnp.where(finite, update_norm, 0),
    "step": state.step, "skipped": state.skipped,
    "consecutive_skipped": state.consecutive_skipped}


def _without_carry(loss_fn: LossFn) -> LossFn:
  """Returns a loss function with an empty carry."""
  def loss(*args: Any) -> tuple[jax.Array, tuple[Mapping[str, jax.Array], Tree]]:
    value, metrics = loss_fn(*args)
    return value, (metrics, ())

  return loss


def _gradients_of(loss_fn: LossFn, accumulate: int, axes: BatchAxes) -> Callable:
  """Returns (params, key, batch, fixed) -> (gradients, metrics, carry) of a device's share.

  Gradients and metrics are means over the share's parts; the carry has all its rows.
  """
  value_and_grad = jax.value_and_grad(loss_fn, has_aux=True)

  def gradients(params, key, batch, fixed):
    size = _batch_size(batch, axes)
    if size % accumulate:
      raise ValueError(f"a device's {size} trajectories cannot be split into {accumulate} parts; "
                       "choose a batch size that is a multiple of devices times parts")
    first = jax.lax.axis_index(AXIS) * accumulate
    part_size = size // accumulate

    def part(index):
      rows = _map_batch(lambda x, axis: jax.lax.dynamic_slice_in_dim(
        x, index * part_size, part_size, axis), batch, axes)
      part_key = jax.random.fold_in(key, first + index)
      (loss, (metrics, carry)), grads = value_and_grad(params, part_key, rows, *fixed)
      return grads, {**metrics, "loss": loss}, carry

    if accumulate == 1:
      return part(0)

    def add(total, index):
      grads, *outputs = part(index)
      return jax.tree.map(jnp.add, total, grads), outputs

    total, (metrics, carry) = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params),
                                           jnp.arange(accumulate))
    return (jax.tree.map(lambda x: x / accumulate, total),
            jax.tree.map(lambda x: x.mean(axis=0), metrics),
            jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), carry))

  return gradients


def _map_batch(function: Callable[[Any, int], Any], batch: Batch, axes: BatchAxes) -> Batch:
  """Applies function(leaf, batch axis) to every leaf."""
  return batch._replace(**{
    field: jax.tree.map(lambda x, axis=axes[field]: function(x, axis), part)
    for field, part in batch._asdict().items()})


def _batch_size(batch: NamedTuple, axes: BatchAxes) -> int:
  sizes = [(field + jax.tree_util.keystr(path), x.shape[axes[field]])
           for field, part in batch._asdict().items()
           for path, x in jax.tree_util.tree_leaves_with_path(part)]
  for name, size in sizes:
    if size != sizes[0][1]:
      raise ValueError(f"batch leaf {name}: expected {sizes[0][1]} trajectories as in "
                       f"{sizes[0][0]}, found {size}")
  return sizes[0][1]


def _all_finite(tree: Tree) -> jax.Array:
  flags = [jnp.isfinite(x).all() for x in jax.tree.leaves(tree)
           if jnp.issubdtype(x.dtype, jnp.inexact)]
  return jnp.stack(flags).all()


def _devices(devices: Sequence[jax.Device] | None) -> list[jax.Device]:
  return list(jax.devices() if devices is None else devices)


def _local(devices: Sequence[jax.Device]) -> list[jax.Device]:
  return [device for device in devices if device.process_index == jax.process_index()]
