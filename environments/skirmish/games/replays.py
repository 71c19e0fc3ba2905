"""Replays of Skirmish: what both players did, from which a game is played again to the last bit.

A replay holds no states. It holds how a game began (tier, sizes, match-up, seed), the players'
actions with their steps, and a SHA-256 of the state at the start, every STEPS_PER_HASH environment
steps, and at the end:

  replay = record((scripted_player("rusher"), scripted_player("builder")), seed=3)
  save("game.npz", replay)
  states = resimulate(load("game.npz"))  # raises where the game goes another way

`engine` says why the states are the same; a replay says what it was recorded with.
"""

import functools
from typing import Any

import jax
import numpy as np

from starleague.agent import types
from starleague.agent.policy import Policy
from starleague.environments.base import make_match_up
from starleague.environments.skirmish.bots import players, scripts
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.games.exact import state_hash
from starleague.environments.skirmish.games.live import Controller, record
from starleague.environments.skirmish.games.replay_format import (
  STEPS_PER_HASH,
  Replay,
  ReplayError,
  hash_steps,
  load,
  save,
)
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.config import DEFAULT_GAME_CONFIG, GameConfig
from starleague.environments.skirmish.rules.state import State

__all__ = ["Controller", "Replay", "ReplayError", "load",
           "make_match_up", "policy_player", "record", "resimulate", "save", "scripted_player", "state_hash"]


@functools.cache
def _scripted_decide(game: GameConfig):
  script = players.make_scripted(**game._asdict())

  def decide(params, key, state, player, memory):
    return script(params, key, state, player), memory

  return decide


def scripted_player(name: str, game: GameConfig = DEFAULT_GAME_CONFIG) -> Controller:
  """A scripted player.

  Raises:
    ValueError: there is none of that name.
  """
  known = scripts.names_of(game.tier)
  if name not in known:
    raise ValueError(f"player {name!r} does not exist; expected one of {', '.join(known)}")
  index = known.index(name)
  skill = scripts.scripts_of(game.tier)[index].skill
  return Controller(name, _scripted_decide(game), np.int32(index), mmr=skill.mmr, income=skill.income)


def policy_player(name: str, policy: Policy, params: Any, game: GameConfig = DEFAULT_GAME_CONFIG) -> Controller:
  """An agent, which samples its actions.

  Args:
    name: what it is called in the replay.
    policy: of the sizes of `game`.
    params: its weights.
    game: the arguments of the environment.
  """
  environment = skirmish.make_skirmish(**game._asdict())

  def decide(params, key, state, player, memory):
    observation, _ = environment.observe(state, player)
    output = policy.step(params, key, observation, memory)
    return output.action, output.state

  return Controller(name, decide, params, policy.initial_state())


@exact.on_cpu
def resimulate(replay: Replay) -> State:
  """Plays a replay again, and checks every hash on the way.

  Returns:
    The states [steps + 1, ...], numpy: the first is the start, the last the end.

  Raises:
    ReplayError: the game's rules are others, or the game goes another way: names the first step
      whose hash differs, the hash expected and the one found; or who acts out of turn.
  """
  found = exact.rules_digest(replay.game.tier)
  if found != replay.rules:
    raise ReplayError(
      f"rules of tier {replay.game.tier!r}: expected {replay.rules}, found {found}; the game has "
      "changed since this was recorded: record it again")
  program = exact.make_program(replay.game)
  state = program.reset(exact.keys_of(replay.seed)[0], replay.match_up)
  points = dict(zip(hash_steps(replay.steps), replay.hashes, strict=True))
  _compare(replay, points, 0, state)
  track = exact.make_track(state)
  length = -(-replay.steps // STEPS_PER_HASH) * STEPS_PER_HASH
  actions, acts = exact.nothing_done(replay.game, length)
  acts[replay.step, replay.player] = True
  for values, taken in zip(actions, replay.actions, strict=True):
    values[replay.step, replay.player] = taken
  states = [jax.tree.map(lambda x: np.array(x)[None], state)]
  for first in range(0, replay.steps, STEPS_PER_HASH):
    count = min(STEPS_PER_HASH, replay.steps - first)
    part = slice(first, first + STEPS_PER_HASH)
    part_actions = types.Action(*(values[part] for values in actions))
    track, state = program.run(track, state, part_actions, acts[part], count)
    _compare(replay, points, first + count, state)
    # Copied: the next call writes into `track` itself.
    states.append(jax.tree.map(lambda x, count=count: np.array(x)[:count], track))
  if int(state.winner) != replay.winner:
    raise ReplayError(f"winner: expected {replay.winner}, found {int(state.winner)}")
  found = jax.tree.map(lambda *values: np.concatenate(values), *states)
  _check_turns(found, acts[:replay.steps])
  return found


def _check_turns(states: State, acts: np.ndarray) -> None:
  """Whether just those players act who are due: a delay that was changed shows in no hash else."""
  due = np.asarray(jax.vmap(skirmish.due)(states))[:len(acts)]
  for step, player in np.argwhere(due != acts)[:1]:
    does, is_due = (("does not act", "is") if due[step, player] else ("acts", "is not"))
    raise ReplayError(f"step {step}: player {player + 1} {does}, but by the delay of its action "
                      f"before it {is_due} due: the replay was changed")


def _compare(replay: Replay, points: dict[int, str], step: int, state: State) -> None:
  expected, found = points[step], state_hash(state)
  if expected == found:
    return
  before = [point for point in points if point < step]
  agreed = f"they agree up to step {before[-1]}" if before else "they differ from the start"
  here = exact.recorded_with()
  reason = ("the replay was changed, or the game's code was" if here == replay.recorded_with else
            f"it was recorded with {replay.recorded_with}, this is {here}, which may round "
            "differently")
  raise ReplayError(f"step {step}: the game is not the one recorded: expected the state's hash "
                    f"{expected[:16]}, found {found[:16]}; {agreed}: {reason}")
