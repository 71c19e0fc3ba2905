"""Replays of Skirmish: both players' actions, from which a game is reproduced bit for bit.

A replay holds no states. It holds the start of a game (tier, sizes, match-up, seed), the players'
actions with their steps, and the SHA-256 of the state at the start, every STEPS_PER_HASH
environment steps, and at the end:

  replay = record((scripted_player("rusher"), scripted_player("builder")), seed=3)
  save("game.npz", replay)
  states = resimulate(load("game.npz"))  # raises if the game differs

`exact` explains why the states are equal. A replay states the version of JAX it was recorded with.
"""

import functools
from typing import Any

import jax
import numpy as np

from starleague.agent import predictions, types
from starleague.agent.policy import Policy
from starleague.environments.base import AGENT_MMR, make_match_up
from starleague.environments.skirmish.bots import players, scripts
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.games.exact import state_hash
from starleague.environments.skirmish.games.live import Controller, Decide, Predictor, record
from starleague.environments.skirmish.games.replay_format import (
  STEPS_PER_HASH,
  Replay,
  ReplayError,
  hash_steps,
  load,
  save,
)
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables.tables import DEFAULT_GAME_CONFIG, GameConfig

__all__ = [
  "Controller", "Replay", "ReplayError", "load", "make_match_up", "policy_player", "record",
  "resimulate", "save", "scripted_player", "state_hash"]


@functools.cache
def _scripted_decide(game: GameConfig) -> Decide:
  script = players.make_scripted(**game._asdict())

  def decide(params, key, state, player, memory):
    return script(params, key, state, player), memory

  return decide


def scripted_player(name: str, game: GameConfig = DEFAULT_GAME_CONFIG) -> Controller:
  """Returns the controller of a scripted player.

  Raises:
    ValueError: the tier has no player of that name.
  """
  (index,) = scripts.indices_of((name,), game.tier)
  skill = scripts.scripts_of(game.tier)[index].skill
  return Controller(name, _scripted_decide(game), index, mmr=skill.mmr, income=skill.income)


def policy_player(name: str, policy: Policy, params: Any,
                  game: GameConfig = DEFAULT_GAME_CONFIG,
                  mmr: int = AGENT_MMR) -> Controller:
  """Returns the controller of an agent, which samples its actions.

  Args:
    name: of the player in the replay.
    policy: for the sizes of `game`.
    params: its parameters.
    game: the arguments of the environment.
    mmr: of the agent, as its observations show it.
  """
  return Controller(name, _policy_decide(policy, game), params, policy.initial_state(), mmr,
                    predictor=_policy_predictor(policy, game))


@functools.cache
def _policy_decide(policy: Policy, game: GameConfig) -> Decide:
  """Returns the decisions of a policy with any parameters: they compile once."""
  environment = skirmish.make_skirmish(**game._asdict())

  def decide(params, key, state, player, memory):
    observation, _ = environment.observe(state, player)
    output = policy.step(params, key, observation, memory)
    return output.action, output.state

  return decide


@functools.cache
def _policy_predictor(policy: Policy, game: GameConfig) -> Predictor:
  """Returns the decisions of `_policy_decide` with records, and the program that completes them."""
  environment = skirmish.make_skirmish(**game._asdict())
  spec = predictions.record_spec(
    policy, game.max_entities, game.max_selected, game.location_size)

  def decide(params, key, state, player, memory):
    observation, privileged = environment.observe(state, player)
    output = policy.step(params, key, observation, memory)
    made = predictions.record(output, observation, privileged)
    return output.action, output.state, predictions.pack(made, spec)

  def complete(params, packed):
    return predictions.complete(policy, params, predictions.unpack(packed, spec))

  return Predictor(decide, exact.on_cpu(jax.jit(jax.vmap(complete, (None, 0)))))


@exact.on_cpu
def resimulate(replay: Replay) -> State:
  """Plays a replay again and checks every hash.

  Returns:
    The states [steps + 1, ...], numpy: from the start to the end of the game.

  Raises:
    ReplayError: the rules of the tier are others, a player acts out of turn, or the game differs.
      The message names the first step whose hash differs, the hash expected and the one found.
  """
  rules = exact.rules_digest(replay.game.tier)
  if rules != replay.rules:
    raise ReplayError(
      f"rules of tier {replay.game.tier!r}: expected {replay.rules}, found {rules}; the game has "
      "changed since this was recorded: record it again")
  program = exact.make_program(replay.game)
  state = program.reset(exact.keys_of(replay.seed)[0], replay.match_up)
  hashes = dict(zip(hash_steps(replay.steps), replay.hashes, strict=True))
  _compare(replay, hashes, 0, state)
  track = exact.make_track(state)
  length = -(-replay.steps // STEPS_PER_HASH) * STEPS_PER_HASH
  actions, acts = exact.no_actions(replay.game, length)
  acts[replay.step, replay.player] = True
  for values, taken in zip(actions, replay.actions, strict=True):
    values[replay.step, replay.player] = taken
  states = [jax.tree.map(lambda x: np.array(x)[None], state)]
  for first in range(0, replay.steps, STEPS_PER_HASH):
    count = min(STEPS_PER_HASH, replay.steps - first)
    part = slice(first, first + STEPS_PER_HASH)
    part_actions = types.Action(*(values[part] for values in actions))
    track, state = program.run(track, state, part_actions, acts[part], count)
    _compare(replay, hashes, first + count, state)
    # Copied: the next call overwrites `track`.
    states.append(jax.tree.map(lambda x, count=count: np.array(x)[:count], track))
  if int(state.winner) != replay.winner:
    raise ReplayError(f"winner: expected {replay.winner}, found {int(state.winner)}")
  found = jax.tree.map(lambda *values: np.concatenate(values), *states)
  _check_turns(found, acts[:replay.steps])
  return found


def _check_turns(states: State, acts: np.ndarray) -> None:
  """Checks that exactly the players that are due act: a changed delay need not change a hash."""
  due = np.asarray(jax.vmap(skirmish.due)(states))[:len(acts)]
  for step, player in np.argwhere(due != acts)[:1]:
    does, is_due = (("does not act", "is") if due[step, player] else ("acts", "is not"))
    raise ReplayError(f"step {step}: player {player + 1} {does}, but by the delay of its previous "
                      f"action it {is_due} due: the replay was changed")


def _compare(replay: Replay, hashes: dict[int, str], step: int, state: State) -> None:
  """Compares the hash of the state at a step with the recorded one."""
  expected, found = hashes[step], state_hash(state)
  if expected == found:
    return
  before = [point for point in hashes if point < step]
  agreed = f"they agree up to step {before[-1]}" if before else "they differ from the start"
  here = exact.recorded_with()
  reason = ("the replay was changed, or the game's code was" if here == replay.recorded_with else
            f"it was recorded with {replay.recorded_with}, this is {here}, which may round "
            "differently")
  raise ReplayError(f"step {step}: the game is not the one recorded: expected the state's hash "
                    f"{expected[:16]}, found {found[:16]}; {agreed}: {reason}")
