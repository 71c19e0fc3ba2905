"""What an action's logits mean: legal choices, sampling, log-probs, entropy and divergence.

Logits here are those that are sampled from: float32, divided by the temperature, `NEGATIVE` where
a choice is illegal. Acting and learning build them through the same functions, so that at equal
parameters the learner finds the behaviour policy's log-probs again (Vinyals et al. 2019, Methods).

Everything is written for one step; callers vmap. Each of log-prob, entropy and divergence reads the
logits once and keeps no second array of their size: a step of the published agent has 65 536
location logits and 64 x 513 unit logits. All of them are safe in value and gradient for any label.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from starleague.agent import coordinates, vocabulary
from starleague.agent.types import ALLIANCE_SELF, COLUMN, NUM_DELAYS, Action, Array
from starleague.agent.vocabulary import Arguments

NEGATIVE = -1e9  # an illegal choice's logit; far below any network's, far above float32's end
_ILLEGAL_BELOW = 0.5 * NEGATIVE


# Legality: which choices each argument has.


def legal_functions(available_actions: Array, masked: bool) -> Array:
  """Which functions may be chosen.

  Args:
    available_actions: [A] bool.
    masked: whether only available functions may be chosen; the published agent sees availability
      as an input only.

  Returns:
    [A] bool; `no_op`, index 0, is always legal.
  """
  if not masked:
    return jnp.ones(available_actions.shape, bool)
  return available_actions.astype(bool).at[0].set(True)


def legal_delays() -> Array:
  """[128] bool: every delay in game loops but 0, which would let the agent act without end."""
  return jnp.arange(NUM_DELAYS) > 0


def existing_entities(entity_count: Array, max_entities: int) -> Array:
  """[E] bool: the rows that hold an entity."""
  return jnp.arange(max_entities) < entity_count


def legal_units(entities: Array, entity_count: Array, function: Array, rule: str) -> Array:
  """Which entities may be selected to execute a function.

  Args:
    entities: [E, F] integers.
    entity_count: [] integer.
    function: [] integer function index.
    rule: "existing" for every entity, as published; "own" for the player's; "capable" for those of
      the player's whose type can execute the function, or all of the player's where none can. Both
      narrower rules fall back to every entity where the player has none.

  Returns:
    [E] bool.

  Raises:
    ValueError: for another rule.
  """
  existing = existing_entities(entity_count, entities.shape[0])
  if rule == "existing":
    return existing
  if rule not in ("own", "capable"):
    raise ValueError(
      f'The rule for units is {rule!r}; expected "existing", "own" or "capable".')
  own = existing & (entities[:, COLUMN["alliance"]] == ALLIANCE_SELF)
  legal = jnp.where(own.any(), own, existing)
  if rule == "own":
    return legal
  unit_type = entities[:, COLUMN["unit_type"]].astype(jnp.int32)
  function = jnp.clip(function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  types = jnp.asarray(vocabulary.CAPABLE)[function]
  capable = own & types[jnp.clip(unit_type, 0, vocabulary.NUM_UNIT_TYPES - 1)]
  return jnp.where(capable.any(), capable, legal)


def legal_picks(units: Array, picked: Array, first: Array, ended: Array) -> Array:
  """Which choices one pick of the unit pointer has: the entities and, last, the end token.

  No entity is picked twice. The end token is never first, unless there is nothing else to pick;
  once the end token is picked, only it can be.

  Args:
    units: [E] bool, the entities that may be selected.
    picked: [E] bool, those already picked.
    first: [] bool, whether this is the first pick.
    ended: [] bool, whether the end token has been picked.

  Returns:
    [E + 1] bool.
  """
  free = units & ~picked & ~ended
  end = ended | ~first | ~units.any()
  return jnp.append(free, end)


def legal_targets(entities: Array, entity_count: Array, function: Array, on_screen: bool) -> Array:
  """Which entities a function may be aimed at.

  Args:
    entities: [E, F] integers.
    entity_count: [] integer.
    function: [] integer function index.
    on_screen: whether functions of `vocabulary.ON_SCREEN` reach only the player's own entities and
      those that the camera shows; else, and where there are none of these, every entity.

  Returns:
    [E] bool; row 0 stands in where there is no entity.
  """
  legal = existing_entities(entity_count, entities.shape[0])
  if on_screen:
    own = entities[:, COLUMN["alliance"]] == ALLIANCE_SELF
    near = legal & (own | (entities[:, COLUMN["is_on_screen"]] != 0))
    legal = jnp.where(_needs_screen(function) & near.any(), near, legal)
  return legal.at[0].set(legal[0] | ~legal.any())


def legal_locations(camera: Array, function: Array, size: int, on_screen: bool) -> Array:
  """Which cells of the location grid a function may be aimed at.

  Args:
    camera: [4] integers: left, top, right, bottom on the 256 grid, the last two past it.
    function: [] integer function index.
    size: L.
    on_screen: whether functions of `vocabulary.ON_SCREEN` reach only cells whose middles the camera
      shows; else, and where it shows none, every cell.

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
  """The logits that are sampled from: float32, tempered, `NEGATIVE` where illegal.

  Args:
    logits: [..., N] any float.
    legal: [..., N] bool.
    temperature: above 0; 0.8 in the published agent for every argument but the delay.
  """
  return jnp.where(legal, logits.astype(jnp.float32) / temperature, NEGATIVE)


def num_legal(logits: Array) -> Array:
  """[...] int32: how many choices [..., N] masked logits leave."""
  return jnp.sum(logits > _ILLEGAL_BELOW, axis=-1, dtype=jnp.int32)


# Choosing.


def sample(key: Array, logits: Array) -> Array:
  """[...] int32: a choice drawn from [..., N] masked logits."""
  return jax.random.categorical(key, logits).astype(jnp.int32)


def sample_by_rows(key: Array, logits: Array, rows: int) -> Array:
  """Draws as `sample` does, from few random numbers: first a row of the choices, then one in it.

  Args:
    key: a random key.
    logits: [N] masked logits, `rows` rows of equal length one after another.
    rows: how many; about the square root of N is quickest.

  Returns:
    [] int32.
  """
  grid = logits.reshape(rows, -1)
  row_key, column_key = jax.random.split(key)
  row = sample(row_key, jax.nn.logsumexp(grid, axis=-1))
  return row * grid.shape[1] + sample(column_key, grid[row])


def mode(logits: Array) -> Array:
  """[...] int32: the likeliest choice of [..., N] masked logits, the lowest index among equals."""
  return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def executed_picks(units: Array, end: int) -> Array:
  """Which picks of the unit pointer were made: those up to and with the first end token.

  Args:
    units: [K] integers.
    end: the end token, E.

  Returns:
    [K] bool.
  """
  ends = (units == end).astype(jnp.int32)
  return jnp.cumsum(ends) - ends == 0


# One categorical. Logits are shifted by their maximum, so that masked ones, about -1e9, meet only
# exp (where they give an exact 0) and never a sum, where they would drown everything else.


def _shifted(logits: Array) -> tuple[Array, Array]:
  """Logits less their maximum, 0 where illegal, and the exponentials, 0 where illegal."""
  legal = logits > _ILLEGAL_BELOW
  top = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
  shifted = jnp.where(legal, logits - top, 0.0)
  return shifted, jnp.where(legal, jnp.exp(shifted), 0.0)


def _is_label(logits: Array, label: Array) -> Array:
  size = logits.shape[-1]
  label = jnp.clip(label.astype(jnp.int32), 0, size - 1)
  return jnp.arange(size) == label[..., None]


def categorical_log_prob(logits: Array, label: Array) -> Array:
  """[...]: log-prob of `label` [...] under [..., N] masked logits; about -1e9 if it is illegal.

  Labels outside 0 to N - 1 are read as the nearest inside.
  """
  # A comparison rather than a gather: it joins the same pass over the logits, and its gradient is
  # a select where a gather's is a scatter, which accelerators do serially.
  top = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
  shifted = logits - top
  chosen = jnp.sum(jnp.where(_is_label(logits, label), shifted, 0.0), axis=-1)
  return chosen - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1))


def categorical_entropy(logits: Array) -> Array:
  """[...]: entropy of [..., N] masked logits over log(number of legal choices), 0 where one is."""
  shifted, weights = _shifted(logits)
  total = jnp.sum(weights, axis=-1)
  total = jnp.where(total > 0.0, total, 1.0)  # every choice masked
  entropy = jnp.log(total) - jnp.sum(weights * shifted, axis=-1) / total
  count = num_legal(logits)
  return jnp.where(count > 1, entropy / jnp.log(jnp.maximum(count, 2)), 0.0)


def categorical_kl(teacher_logits: Array, student_logits: Array) -> Array:
  """[...]: KL(teacher || student) of [..., N] masked logits, in nats.

  Choices that the student may not make are taken from the teacher too: a difference of masks is no
  lesson, and would cost about 1e9.
  """
  teacher = jnp.where(student_logits > _ILLEGAL_BELOW, teacher_logits, NEGATIVE)
  teacher_shifted, teacher_weights = _shifted(teacher)
  student_shifted, student_weights = _shifted(student_logits)
  teacher_total = jnp.sum(teacher_weights, axis=-1)
  student_total = jnp.sum(student_weights, axis=-1)
  some = teacher_total > 0.0  # else every choice is masked
  teacher_total = jnp.where(some, teacher_total, 1.0)
  student_total = jnp.where(some, student_total, 1.0)
  cross = jnp.sum(teacher_weights * (teacher_shifted - student_shifted), axis=-1) / teacher_total
  return jnp.where(some, cross - jnp.log(teacher_total) + jnp.log(student_total), 0.0)


# A whole action.


def _per_argument(one: Callable, reduce: Callable, logits: Arguments, action: Action,
                  unused: float | bool = 0.0) -> Arguments:
  """Applies `one` to each argument's name; `reduce` makes one value of all picks' and which count."""
  executed = executed_picks(action.units, logits.units.shape[-1] - 1)
  function = jnp.clip(action.function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  used = vocabulary.argument_mask(function)
  values = Arguments(*map(one, Arguments._fields))
  values = values._replace(units=reduce(values.units, executed))
  return jax.tree.map(lambda value, use: jnp.where(use, value, unused), values, used)


def _sum_over_picks(values: Array, executed: Array) -> Array:
  return jnp.sum(jnp.where(executed, values, 0.0))


def log_prob(logits: Arguments, action: Action) -> Arguments:
  """Log-prob of each argument of an action.

  Args:
    logits: masked logits: function [A], delay [128], queued [2], repeat [3], units [K, E + 1],
      target_unit [E], location [L * L].
    action: the action of one step.

  Returns:
    Arguments of [] float32; units is the sum over executed picks, the end token's with them; 0
    where the function does not take the argument. An illegal choice gives about -1e9.
  """
  def one(field):
    return categorical_log_prob(getattr(logits, field), getattr(action, field))

  return _per_argument(one, _sum_over_picks, logits, action)


def entropy(logits: Arguments, action: Action) -> Arguments:
  """Entropy of each argument, from 0 to 1: over log(number of legal choices).

  Args:
    logits: as for `log_prob`.
    action: the action of one step, whose prefix the logits were conditioned on.

  Returns:
    Arguments of [] float32; units is the mean over executed picks; 0 where the function does not
    take the argument or leaves it one choice.
  """
  def mean(values, executed):
    return _sum_over_picks(values, executed) / jnp.sum(executed)  # the first is always executed

  return _per_argument(
    lambda field: categorical_entropy(getattr(logits, field)), mean, logits, action)


def kl(teacher_logits: Arguments, student_logits: Arguments, action: Action) -> Arguments:
  """KL(teacher || student) of each argument, in nats.

  Args:
    teacher_logits: the teacher's masked logits, conditioned on the action's prefix.
    student_logits: the student's, conditioned on the same.
    action: the action of one step.

  Returns:
    Arguments of [] float32; units is the sum over executed picks; 0 where the function does not
    take the argument.
  """
  def one(field):
    return categorical_kl(getattr(teacher_logits, field), getattr(student_logits, field))

  return _per_argument(one, _sum_over_picks, student_logits, action)


def is_legal(logits: Arguments, action: Action) -> Arguments:
  """Whether each argument's choice is one that the masks allow; True where the function takes none.

  Args:
    logits: as for `log_prob`.
    action: the action of one step.

  Returns:
    Arguments of [] bool; units is whether every executed pick is legal. Human actions can break
    the masks; supervised learning gives such an argument no weight.
  """
  def one(field):
    value, label = getattr(logits, field), getattr(action, field).astype(jnp.int32)
    inside = (label >= 0) & (label < value.shape[-1])
    return inside & jnp.any(_is_label(value, label) & (value > _ILLEGAL_BELOW), axis=-1)

  def every(values, executed):
    return jnp.all(values | ~executed)

  return _per_argument(one, every, logits, action, unused=True)
