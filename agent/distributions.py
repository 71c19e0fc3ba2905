"""Action distributions: masks, sampling, log-probs, entropy and KL divergence.

Logits are masked and tempered: float32, divided by the temperature, and `NEGATIVE` for illegal
choices. Acting and learning compute them with the same functions, so equal parameters give the
learner the log-probs of the behaviour policy (Vinyals et al. 2019, Methods).

Functions are written for one step; callers vmap. Log-prob, entropy and divergence read the logits
once and store no second array of their size: a step of the published agent has 65,536 location
logits and 64 x 513 unit logits. Values and gradients are finite for any label.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from starleague.agent import coordinates, vocabulary
from starleague.agent.types import (
  ALLIANCE_SELF,
  COLUMN,
  DISPLAY_PLACEHOLDER,
  NUM_DELAYS,
  Action,
  Array,
)
from starleague.agent.vocabulary import Arguments

NEGATIVE = -1e9  # logit of an illegal choice: far below any network's, far above float32's minimum
_ILLEGAL_BELOW = 0.5 * NEGATIVE


# Masks of legal choices.


def legal_functions(available_actions: Array, masked: bool) -> Array:
  """Returns the mask of legal functions.

  Args:
    available_actions: [A] bool.
    masked: whether only available functions are legal. In the published agent, availability is an
      input only.

  Returns:
    [A] bool; `no_op`, index 0, is always legal.
  """
  if not masked:
    return jnp.ones(available_actions.shape, bool)
  return jnp.asarray(available_actions, bool).at[0].set(True)


def legal_delays() -> Array:
  """Returns [128] bool: every delay except 0, with which the game would never advance."""
  return jnp.arange(NUM_DELAYS) > 0


def existing_entities(entity_count: Array, max_entities: int) -> jax.Array:
  """Returns [E] bool: the rows that hold an entity."""
  return jnp.arange(max_entities) < entity_count


def legal_units(entities: Array, entity_count: Array, function: Array, rule: str) -> Array:
  """Returns the mask of entities that may be selected for a function.

  Args:
    entities: [E, F] integers.
    entity_count: [] integer.
    function: [] integer function index.
    rule: "existing": every entity, as published; "own": the player's, except passengers, ordered
      structures and effects, which take no commands; "capable": of these, those whose type can
      execute the function, or all if none can. The last two fall back to every entity if the
      player has none.

  Returns:
    [E] bool.

  Raises:
    ValueError: the rule is unknown.
  """
  existing = existing_entities(entity_count, entities.shape[0])
  if rule == "existing":
    return existing
  if rule not in ("own", "capable"):
    raise ValueError(
      f'unit mask {rule!r}: expected "existing", "own" or "capable"')
  unit_type = entities[:, COLUMN["unit_type"]].astype(jnp.int32)
  own = (existing & (entities[:, COLUMN["alliance"]] == ALLIANCE_SELF)
         & (entities[:, COLUMN["is_in_cargo"]] == 0) & (unit_type != vocabulary.EFFECT_TYPE)
         & (entities[:, COLUMN["display_type"]] != DISPLAY_PLACEHOLDER))
  legal = jnp.where(own.any(), own, existing)
  if rule == "own":
    return legal
  function = jnp.clip(function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  types = jnp.asarray(vocabulary.EXECUTORS)[function]
  capable = own & types[jnp.clip(unit_type, 0, vocabulary.NUM_UNIT_TYPES - 1)]
  return jnp.where(capable.any(), capable, legal)


def legal_picks(units: Array, picked: Array, first: Array, ended: Array) -> Array:
  """Returns the mask of one pick of the unit pointer: the entities and, last, the end token.

  No entity is picked twice. The end token is not legal first, unless no entity is. Once it is
  picked, only it is legal.

  Args:
    units: [E] bool: entities that may be selected.
    picked: [E] bool: entities already picked.
    first: [] bool, whether this is the first pick.
    ended: [] bool, whether the end token has been picked.

  Returns:
    [E + 1] bool.
  """
  free = units & ~picked & ~ended
  end = ended | ~first | ~units.any()
  return jnp.append(free, end)


def legal_targets(entities: Array, entity_count: Array, function: Array, on_screen: bool) -> Array:
  """Returns the mask of legal target units.

  Args:
    entities: [E, F] integers.
    entity_count: [] integer.
    function: [] integer function index.
    on_screen: whether functions of `vocabulary.ON_SCREEN` reach only own entities and those in the
      camera's view. Otherwise, and if there are none of these, every entity is legal.

  Returns:
    [E] bool; row 0 is legal if there is no entity.
  """
  legal = existing_entities(entity_count, entities.shape[0])
  if on_screen:
    own = entities[:, COLUMN["alliance"]] == ALLIANCE_SELF
    near = legal & (own | (entities[:, COLUMN["is_on_screen"]] != 0))
    legal = jnp.where(_needs_screen(function) & near.any(), near, legal)
  return legal.at[0].set(legal[0] | ~legal.any())


def legal_locations(camera: Array, function: Array, size: int, on_screen: bool) -> Array:
  """Returns the mask of legal cells of the location grid.

  Args:
    camera: [4] integers: left, top, right, bottom on the 256 grid; right and bottom are exclusive.
    function: [] integer function index.
    size: L.
    on_screen: whether functions of `vocabulary.ON_SCREEN` reach only cells whose centres are in the
      camera's view. Otherwise, and if there are none of these, every cell is legal.

  Returns:
    [L * L] bool.
  """
  if not on_screen:
    return jnp.ones(size * size, bool)
  shown = coordinates.shown(camera, size).reshape(-1)
  return shown | ~(_needs_screen(function) & shown.any())


def _needs_screen(function: Array) -> Array:
  function = jnp.clip(function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  return jnp.asarray(vocabulary.ON_SCREEN)[function]


def apply_mask(logits: Array, legal: Array, temperature: float = 1.0) -> Array:
  """Masks and tempers logits: float32, `NEGATIVE` for illegal choices.

  Args:
    logits: [..., N] any float.
    legal: [..., N] bool.
    temperature: above 0; 0.8 in the published agent for every argument except the delay.
  """
  return jnp.where(legal, logits.astype(jnp.float32) / temperature, NEGATIVE)


def num_legal(logits: Array) -> Array:
  """Returns the number of legal choices of [..., N] masked logits: [...] int32."""
  return jnp.sum(logits > _ILLEGAL_BELOW, axis=-1, dtype=jnp.int32)


# Sampling.


def sample(key: Array, logits: Array) -> Array:
  """Samples from [..., N] masked logits: [...] int32."""
  return jax.random.categorical(key, logits).astype(jnp.int32)


def sample_by_rows(key: Array, logits: Array, rows: int) -> Array:
  """Samples like `sample` with fewer random numbers: first a row of choices, then a choice in it.

  Args:
    key: a random key.
    logits: [N] masked logits: `rows` rows of equal length, concatenated.
    rows: number of rows; about the square root of N is fastest.

  Returns:
    [] int32.
  """
  grid = logits.reshape(rows, -1)
  row_key, column_key = jax.random.split(key)
  row = sample(row_key, jax.nn.logsumexp(grid, axis=-1))
  return row * grid.shape[1] + sample(column_key, grid[row])


def mode(logits: Array) -> Array:
  """Returns the most likely of [..., N] masked logits, the first among equals: [...] int32."""
  return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def executed_picks(units: Array, end: int) -> Array:
  """Returns the mask of executed picks: those up to and including the first end token.

  Args:
    units: [K] integers.
    end: the end token, E.

  Returns:
    [K] bool.
  """
  ends = (units == end).astype(jnp.int32)
  return jnp.cumsum(ends) - ends == 0


# One categorical. Logits are shifted by their maximum. Masked logits, about -1e9, only pass through
# exp, which gives exactly 0, and never enter a sum, where they would absorb all other terms.


def _shifted(logits: Array) -> tuple[Array, Array]:
  """Returns logits minus their maximum, and their exponentials; both are 0 if illegal."""
  legal = logits > _ILLEGAL_BELOW
  top = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
  shifted = jnp.where(legal, logits - top, 0.0)
  return shifted, jnp.where(legal, jnp.exp(shifted), 0.0)


def _is_label(logits: Array, label: Array) -> Array:
  size = logits.shape[-1]
  label = jnp.clip(label.astype(jnp.int32), 0, size - 1)
  return jnp.arange(size) == label[..., None]


def categorical_log_prob(logits: Array, label: Array) -> Array:
  """Computes the log-prob of [...] labels under [..., N] masked logits; about -1e9 if illegal.

  Labels are clipped to 0 to N - 1.
  """
  # A comparison instead of a gather: it fuses into the same pass over the logits, and its gradient
  # is a select. The gradient of a gather is a scatter, which accelerators execute serially.
  top = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
  shifted = logits - top
  chosen = jnp.sum(jnp.where(_is_label(logits, label), shifted, 0.0), axis=-1)
  return chosen - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1))


def categorical_entropy(logits: Array) -> Array:
  """Computes entropy / log(number of legal choices) of [..., N] masked logits; 0 if only one."""
  shifted, weights = _shifted(logits)
  total = jnp.sum(weights, axis=-1)
  total = jnp.where(total > 0.0, total, 1.0)  # 0 if every choice is masked
  entropy = jnp.log(total) - jnp.sum(weights * shifted, axis=-1) / total
  count = num_legal(logits)
  return jnp.where(count > 1, entropy / jnp.log(jnp.maximum(count, 2)), 0.0)


def categorical_kl(teacher_logits: Array, student_logits: Array) -> Array:
  """Computes KL(teacher || student) of [..., N] masked logits, in nats: [...].

  The student's mask also applies to the teacher. Otherwise a choice that only the teacher may make
  would cost about 1e9.
  """
  teacher = jnp.where(student_logits > _ILLEGAL_BELOW, teacher_logits, NEGATIVE)
  teacher_shifted, teacher_weights = _shifted(teacher)
  student_shifted, student_weights = _shifted(student_logits)
  teacher_total = jnp.sum(teacher_weights, axis=-1)
  student_total = jnp.sum(student_weights, axis=-1)
  some = teacher_total > 0.0  # False if every choice is masked
  teacher_total = jnp.where(some, teacher_total, 1.0)
  student_total = jnp.where(some, student_total, 1.0)
  cross = jnp.sum(teacher_weights * (teacher_shifted - student_shifted), axis=-1) / teacher_total
  return jnp.where(some, cross - jnp.log(teacher_total) + jnp.log(student_total), 0.0)


# Whole actions.


def _per_argument(one: Callable[[str], Array], reduce: Callable[[Array, Array], Array],
                  logits: Arguments, action: Action, unused: float | bool = 0.0) -> Arguments:
  """Applies `one` to each argument's name; `reduce` maps values and mask of picks to one value."""
  executed = executed_picks(action.units, logits.units.shape[-1] - 1)
  function = jnp.clip(action.function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  used = vocabulary.argument_mask(function)
  values = Arguments(*map(one, Arguments._fields))
  values = values._replace(units=reduce(values.units, executed))
  return jax.tree.map(lambda value, use: jnp.where(use, value, unused), values, used)


def _sum_over_picks(values: Array, executed: Array) -> Array:
  return jnp.sum(jnp.where(executed, values, 0.0))


def log_prob(logits: Arguments, action: Action) -> Arguments:
  """Computes the log-prob of each argument of an action.

  Args:
    logits: masked logits: function [A], delay [128], queued [2], repeat [3], units [K, E + 1],
      target_unit [E], location [L * L].
    action: the action of one step.

  Returns:
    Arguments of [] float32; 0 for unused arguments. Units is the sum over executed picks, including
    the end token. An illegal choice gives about -1e9.
  """
  def one(field: str) -> Array:
    return categorical_log_prob(getattr(logits, field), getattr(action, field))

  return _per_argument(one, _sum_over_picks, logits, action)


def entropy(logits: Arguments, action: Action) -> Arguments:
  """Computes the normalised entropy of each argument: over log(legal choices), from 0 to 1.

  Args:
    logits: as for `log_prob`.
    action: the action of one step that conditions the logits.

  Returns:
    Arguments of [] float32; 0 for unused arguments and those with one legal choice. Units is the
    mean over executed picks.
  """
  def mean(values: Array, executed: Array) -> Array:
    return _sum_over_picks(values, executed) / jnp.sum(executed)  # at least the first pick

  return _per_argument(
    lambda field: categorical_entropy(getattr(logits, field)), mean, logits, action)


def kl(teacher_logits: Arguments, student_logits: Arguments, action: Action) -> Arguments:
  """Computes KL(teacher || student) of each argument, in nats.

  Args:
    teacher_logits: the teacher's masked logits, conditioned on the action.
    student_logits: the student's, conditioned on the same action.
    action: the action of one step.

  Returns:
    Arguments of [] float32; 0 for unused arguments. Units is the sum over executed picks.
  """
  def one(field: str) -> Array:
    return categorical_kl(getattr(teacher_logits, field), getattr(student_logits, field))

  return _per_argument(one, _sum_over_picks, student_logits, action)


def is_legal(logits: Arguments, action: Action) -> Arguments:
  """Returns whether each argument's choice is legal; True for unused arguments.

  Args:
    logits: as for `log_prob`.
    action: the action of one step.

  Returns:
    Arguments of [] bool; units is whether all executed picks are legal. Human actions can violate
    the masks; supervised learning gives such arguments zero weight.
  """
  def one(field: str) -> Array:
    value, label = getattr(logits, field), getattr(action, field).astype(jnp.int32)
    inside = (label >= 0) & (label < value.shape[-1])
    return inside & jnp.any(_is_label(value, label) & (value > _ILLEGAL_BELOW), axis=-1)

  def every(values: Array, executed: Array) -> Array:
    return jnp.all(values | ~executed)

  return _per_argument(one, every, logits, action, unused=True)
