"""The heads: autoregressive prediction of an action's arguments.

Order: function, delay, queued, repeat, units, then target unit or location. The autoregressive
embedding carries earlier choices to later heads (Vinyals et al. 2019, Extended Data and detailed
architecture).

`sample` chooses an action; `teacher_force` computes the logits of a given action. Both run on one
step within a transform, and share all functions: equal parameters give equal logits.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from starleague.agent import distributions, vocabulary
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical, location, selected_units, target_unit
from starleague.agent.heads import function as function_head
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Action, Array, action_spec
from starleague.agent.vocabulary import Arguments

__all__ = ["HeadInputs", "sample", "teacher_force"]

# (argument, its masked logits) -> the choice, [] integer.
_Choose = Callable[[str, Array], Array]
# (autoregressive embedding, function, whether it takes units) -> picks, logits, new embedding.
_Pick = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


def _decode(config: AgentConfig, inputs: HeadInputs, choose: _Choose,
            pick: _Pick) -> tuple[Arguments, Arguments]:
  """Applies the heads in order; returns the choices and their masked logits."""
  function_logits = function_head.logits(config, inputs)
  function = choose("function", function_logits)
  used = vocabulary.argument_mask(jnp.clip(function, 0, vocabulary.NUM_FUNCTIONS - 1))
  embedding = function_head.embedding(config, inputs, function)

  delay_logits = categorical.delay_logits(config, embedding)
  delay = choose("delay", delay_logits)
  embedding = embedding + categorical.embedding(config, "delay", delay)

  queued_logits = categorical.queued_logits(config, embedding)
  queued = choose("queued", queued_logits)
  embedding = embedding + categorical.embedding(config, "queued", queued, used.queued)

  repeat_logits = categorical.repeat_logits(config, embedding)
  repeat = choose("repeat", repeat_logits)
  embedding = embedding + categorical.embedding(config, "repeat", repeat, used.repeat)

  units, units_logits, embedding = pick(embedding, function, used.units)
  target_logits = target_unit.logits(config, inputs, embedding, function)
  location_logits = location.logits(config, inputs, embedding, function)
  choices = Arguments(
    function, delay, queued, repeat, units, choose("target_unit", target_logits),
    choose("location", location_logits))
  single = jax.tree.map(lambda choice, use: jnp.where(use, choice, 0), choices, used)
  logits = Arguments(
    function_logits, delay_logits, queued_logits, repeat_logits, units_logits, target_logits,
    location_logits)
  return single._replace(units=units), logits


def sample(config: AgentConfig, key: Array, inputs: HeadInputs,
           greedy: bool = False) -> tuple[Action, Arguments, Arguments]:
  """Samples an action for one step.

  Args:
    config: sizes and options.
    key: a random key; every argument and every unit pick uses its own split.
    inputs: outputs of the encoders and the core for the step.
    greedy: whether to take the most likely choice of each argument instead of sampling.

  Returns:
    The action, in the dtypes of `types.action_spec`; the log-prob of each argument; its masked,
    tempered logits, as in `distributions.log_prob`.
  """
  keys = Arguments(*jax.random.split(key, len(Arguments._fields)))

  def choose(field: str, logits: Array) -> Array:
    if greedy:
      return distributions.mode(logits)
    if field == "location":
      return distributions.sample_by_rows(keys.location, logits, config.location_size)
    return distributions.sample(getattr(keys, field), logits)

  def pick(embedding: Array, function: Array, used: Array) -> tuple[Array, Array, Array]:
    return selected_units.sample(config, keys.units, inputs, embedding, function, used, greedy)

  choices, logits = _decode(config, inputs, choose, pick)
  spec = action_spec(config.max_selected)
  action = Action(*(x.astype(s.dtype) for x, s in zip(choices, spec, strict=True)))
  return action, distributions.log_prob(logits, action), logits


def teacher_force(config: AgentConfig, inputs: HeadInputs, action: Action) -> Arguments:
  """Computes each argument's logits, conditioned on the given action's earlier arguments.

  Args:
    config: sizes and options.
    inputs: outputs of the encoders and the core for the step.
    action: any labels, legal or not, give finite logits.

  Returns:
    Masked, tempered logits, as in `distributions.log_prob`.
  """
  def choose(field: str, logits: Array) -> Array:
    del logits
    return getattr(action, field).astype(jnp.int32)

  def pick(embedding: Array, function: Array, used: Array) -> tuple[Array, Array, Array]:
    logits, embedding = selected_units.teacher_force(
      config, inputs, embedding, function, used, action.units)
    return action.units, logits, embedding

  return _decode(config, inputs, choose, pick)[1]
