"""A student's games whose states a scripted teacher labels (DAgger, Ross et al. 2011).

The student plays player 0, and a demonstrator plays player 1. At each of the student's decisions
its teacher, another demonstrator, sees the same view and names the action that it would take: the
label, which the record holds in place of the action taken. A share of the decisions is the
teacher's own: there its action is taken.

A label's delay lasts until the teacher would act again: it looks at the game as often as if it
played, also while the student waits. The record of the next decision holds it as its delay.

A student's own actions may be the labels instead: its games are then demonstrations for another
agent (policy distillation, Rusu et al. 2016, from samples), and its teacher gives it an MMR only.
The teacher may also take over at a given step and play to the end. The record then shows how to
continue from the student's states (roll-in by the student, roll-out by the teacher; Chang et al.
2015).

The program is that of `demonstrations`, whose opponent index it has: the number of the pairing.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import demonstrations, rewards, rollouts, rows
from starleague.agent import types
from starleague.agent.policy import Policy
from starleague.agent.vocabulary import Arguments
from starleague.data.games import waits as waiting
from starleague.environments import base, chunks

STUDENT = 0  # the player whose states are labelled
NEVER = np.iinfo(np.int32).max  # a step after the end of each game


class Plan(NamedTuple):
  """What the players of a game will do, [games, ...]."""

  step: jax.Array  # int32: environment steps of the game so far
  action: types.Action  # [.., 2, ...]: of the scripted players, for the student the label
  planned: jax.Array  # [.., 2] bool: a decision is to be observed and recorded
  since: jax.Array  # [.., 2] int32: step of the last recorded decision; -1: none
  looks_at: jax.Array  # [.., 2] int32: step at which the scripted player looks again
  resumes: jax.Array  # [.., 2] int32: step at which it found something to do; -1: not yet
  own: jax.Array  # [.., 2] bool: the next decision is the scripted player's own
  label_delay: jax.Array  # [.., 2] int32, loops: of the label before
  share: jax.Array  # float32: of the student's decisions that its teacher takes
  takes_over: jax.Array  # int32: step from which its teacher takes all of them
  target: types.Statistics  # z that the student observes


class StudentOutput(NamedTuple):
  """`StepOutput` with the recorded action."""

  action: types.Action  # taken
  log_prob: Arguments
  logits: Arguments
  state: types.CoreState
  label: types.Action  # recorded


class _Times(NamedTuple):
  """The time of a look, [games, 2] each; steps are those of the environment."""

  now: jax.Array  # int32
  due: jax.Array  # bool
  since: jax.Array  # int32, as of the plan
  planned: jax.Array  # bool


def pairings(count: int) -> np.ndarray:
  """Returns all pairs of a teacher and an opponent: [count * count, 2] int32."""
  return np.array([(i, j) for i in range(count) for j in range(count)], np.int32)


def _initial_plan(games: int, max_selected: int) -> Plan:
  plan = demonstrations.initial_plan(games, max_selected)
  nothing = jnp.zeros((games, 2), jnp.int32)
  target = jax.tree.map(
    lambda x: jnp.zeros((games, *x.shape), x.dtype), types.statistics_spec())
  return Plan(*plan, resumes=nothing - 1, own=jnp.ones((games, 2), bool), label_delay=nothing,
              share=jnp.ones((games,)), takes_over=jnp.full((games,), NEVER), target=target)


def prepare(state: rollouts.RolloutState, share: float, target: types.Statistics | None = None,
            takes_over: int = NEVER) -> rollouts.RolloutState:
  """Returns the state of games that begin, with the share of the teachers' own decisions.

  Args:
    state: of `Rollouts.init`; may have leading axes.
    share: 1: teachers play alone; 0: the student does.
    target: z that the student observes, [games, ...]; None: zeros.
    takes_over: environment step from which the teacher takes all decisions.
  """
  def put(new: types.Array, old: jax.Array) -> jax.Array:
    values = np.broadcast_to(np.asarray(new, old.dtype), old.shape)
    # Where and as the program has it, or its first call would compile again.
    return jax.device_put(values, old.sharding if old.committed else None)

  plan = state.plan._replace(
    share=put(np.asarray(share), state.plan.share),
    takes_over=put(np.asarray(takes_over), state.plan.takes_over))
  if target is not None:
    plan = plan._replace(target=jax.tree.map(put, target, plan.target))
  return state._replace(plan=plan)


def _look(setup: demonstrations.Setup, taught: bool, key: jax.Array, game: Any, plan: Plan,
          opponent: jax.Array, advanced: jax.Array) -> Plan:
  """Returns the plans after the scripted players have looked; see `rollouts.Decider`.

  Args:
    setup: of the program.
    taught: whether the teacher labels the student's own decisions.
    key, game, plan, opponent, advanced: see `rollouts.Decider`.
  """
  turn_key, key = jax.random.split(key)
  due = jnp.asarray(jax.vmap(setup.environment.due)(game))
  acted = plan.planned & ~due
  step = plan.step + advanced
  times = _Times(jnp.broadcast_to(step[:, None], due.shape), due,
                 jnp.where(acted, plan.step[:, None], plan.since), plan.planned & ~acted)
  turn = jax.random.bernoulli(turn_key, plan.share[:, None], due.shape)
  begins = (times.since < 0) & ~times.planned
  student = jnp.arange(2) == STUDENT
  over = (step >= plan.takes_over)[:, None]
  own = jnp.where(acted | begins, turn, plan.own) | ~student | over
  new = due & ~times.planned
  # While the student waits, its teacher looks for the end of the label's delay.
  ahead = taught & ~new & ~times.planned & (times.since >= 0) & (plan.resumes < 0) & student
  looks = (new & ~own) | ((new | ahead) & (times.now >= plan.looks_at))
  decided = new & looks
  if not taught:
    looks &= own  # the student's own decisions need no label
  action = demonstrations.act(setup, key, game, plan.action, opponent, looks)
  return _planned(setup, plan._replace(step=step, own=own), times, action, decided, looks)


def _planned(setup: demonstrations.Setup, plan: Plan, times: _Times, action: types.Action,
             new: jax.Array, looks: jax.Array) -> Plan:
  """Returns the plans of players, some of which have looked.

  Args:
    setup: of the program.
    plan: before.
    times: of this look.
    action: [games, 2, ...] what they would do, where `looks`.
    new: [games, 2] bool: they look at a new decision.
    looks: [games, 2] bool: they look.
  """
  now, since = times.now, times.since
  idle = action.function == waiting.NO_OP
  following = now - (-action.delay.astype(jnp.int32) // setup.loops_per_step)
  waiting_on = idle & ((following - since) * setup.loops_per_step <= types.MAX_DELAY)
  chosen = new & ~(waiting_on & plan.own & (since >= 0))
  expected = looks & (now >= plan.looks_at)
  resumes = jnp.where(expected & ~waiting_on & (plan.resumes < 0), now, plan.resumes)
  looks_at = jnp.where(expected & waiting_on, following, plan.looks_at)
  delay = jnp.where(resumes >= 0, resumes, looks_at) - since
  label_delay = jnp.clip(delay * setup.loops_per_step, 1, types.MAX_DELAY)
  return plan._replace(
    action=rows.select(chosen, action, plan.action), planned=times.planned | chosen, since=since,
    looks_at=jnp.where(chosen, following, looks_at), resumes=jnp.where(chosen, -1, resumes),
    label_delay=jnp.where(times.planned, plan.label_delay, label_delay))


def _make_decide(policy: Policy, chunk: int) -> Callable[..., StudentOutput]:
  """Returns the function that takes decisions; see `rollouts.Decider`."""
  every = types.PSEUDO_REWARDS

  def decide(params, keys, game, player, pairing, observation, privileged, core,
             plan: Plan) -> StudentOutput:
    del game, pairing, privileged
    here = jnp.arange(len(player)), player
    label = jax.tree.map(lambda x: x[here], plan.action)
    student = player == STUDENT
    shown = jax.vmap(lambda z: rewards.condition(z, jnp.ones(len(every), bool)))(plan.target)
    seen = observation._replace(statistics=shown)

    def infer(row: jax.Array, _: Any) -> Any:
      output = jax.vmap(policy.step, in_axes=(None, 0, 0, 0))(
        params, *jax.tree.map(lambda x: x[row], (keys, seen, core)))
      return output.action, output.state

    # Teachers that play to the end need no inference.
    alone = (plan.share >= 1) | (plan.step >= plan.takes_over)
    action, state = chunks.update_chosen(infer, student & ~alone, (label, core), chunk)
    taken = rows.select(plan.own[here], label, action)
    delay = jnp.where(student, plan.label_delay[here].astype(label.delay.dtype), label.delay)
    zeros = Arguments(*[jnp.zeros(len(player))] * len(Arguments._fields))
    return StudentOutput(taken, zeros, zeros, state, label._replace(delay=delay))

  return decide


def make_students(environment: base.Environment, policy: Policy,
                  players: Sequence[demonstrations.Player], pairs: np.ndarray,
                  config: rollouts.RolloutConfig, scripted_player: rollouts.ScriptedPlayer,
                  max_selected: int, loops_per_step: int,
                  pack_step: Callable[[types.Step], Any] = lambda step: step,
                  taught: bool = True) -> rollouts.Rollouts:
  """Makes the compiled program that plays and labels batches of a student's games.

  Args:
    environment: pure functions of a game's state.
    policy: the student.
    players: the scripted players.
    pairs: [P, 2] int32, indices of `players`: the teacher and the opponent of each pairing.
    config: sizes.
    scripted_player: (script, key, state, player) -> action, unbatched.
    max_selected: K, units that an action selects.
    loops_per_step: game loops of an environment step.
    pack_step: applied on the device to the steps [inference_batch, ...] of an iteration.
    taught: whether labels are the teacher's; else they are the actions taken.

  Returns:
    Rollouts whose `params` are the student's. A state of `init` goes through `prepare`. Records
    have log-probabilities of zero. Those of a taught player 0 have the delay of the label before.
  """
  setup = demonstrations.make_setup(
    environment, players, pairs, scripted_player, loops_per_step, config.chunk)
  decider = rollouts.Decider(
    _make_decide(policy, config.chunk), policy.initial_state, demonstrations.plays_both,
    functools.partial(demonstrations.strength, setup),
    initial_plan=functools.partial(_initial_plan, max_selected=max_selected),
    look=functools.partial(_look, setup, taught), ready=lambda plan: plan.planned,
    recorded=lambda output: output.label if taught else output.action)
  return rollouts.make_program(environment, decider, config, None, pack_step)
