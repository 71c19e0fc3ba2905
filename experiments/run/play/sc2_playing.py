"""One game of StarCraft II between agents, built-in bots and people."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import pretrained, types
from starleague.agent.config import AgentConfig
from starleague.common.errors import UserError
from starleague.environments import base
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents as run_agents
from starleague.experiments.run.play.choose_players import AGENT, PRETRAINED

HUMAN = "human"


class Agent(NamedTuple):
  """An agent that plays."""

  config: AgentConfig
  params: Any
  mmr: int


class Ended(NamedTuple):
  """The end of a game."""

  result: int  # 1, 0 or -1, of the first player
  loops: int  # game loops


def find_agent(name: str, run_dir: str | None, preset: str) -> Agent:
  """Returns an agent with its weights.

  Args:
    name: AGENT, the newest weights of a run, or PRETRAINED.
    run_dir: of the run.
    preset: of the pretrained weights.

  Raises:
    UserError: there are no such weights.
  """
  if name == PRETRAINED:
    if preset not in pretrained.names():
      raise UserError(f"--preset: expected one of {', '.join(pretrained.names())}, which have "
                      f"pretrained weights, found {preset!r}")
    weights = pretrained.load_pretrained(preset)
    return Agent(
      agent_config.on_map(weights.config, None), weights.params, weights.origin.mmr)
  if run_dir is None:
    raise UserError(f"'{AGENT}' is the newest weights of a run: name the run with --run_dir")
  config = settings.load(run_dir)
  parts = registry.make_playing_parts(config)
  params, _ = run_agents.load(parts, pathlib.Path(run_dir), run_agents.TRAINED)
  return Agent(parts.config, params, parts.mmr)


def order_players(names: Sequence[str],
                  races: Sequence[str]) -> tuple[tuple[str, str], tuple[str, str]]:
  """Returns the players with an agent first, and their races in the same order.

  Args:
    names: of both players.
    races: of both players, as the user names them.

  Raises:
    UserError: none of them is an agent, a name is empty, or there are not two races.
  """
  if not all(names):
    raise UserError(f"players: expected two names, found {' and '.join(map(repr, names))}")
  if len(races) != 2:
    raise UserError(f"--races: expected two, found {','.join(races)}")
  (first, race), (second, other) = sorted(
    zip(names, races, strict=True), key=lambda player: player[0] not in (AGENT, PRETRAINED))
  if first not in (AGENT, PRETRAINED):
    raise UserError(f"players: one of them must be {AGENT} or {PRETRAINED}, found "
                    f"{' and '.join(names)}")
  return (first, second), (race, other)


def make_match_up(agents: Mapping[int, Agent], races: Sequence[int]) -> base.MatchUp:
  """Returns a match-up in which each agent observes its own MMR.

  Args:
    agents: by player; the first player is one. Another one's MMR is not observed.
    races: of both players, indices of types.RACES.
  """
  return base.make_match_up(
    races, mmr=[agents.get(player, agents[0]).mmr for player in range(2)])


def play(environment: base.Environment, agents: Mapping[int, Agent], match_up: base.MatchUp,
         seed: int, replay: pathlib.Path | None = None) -> Ended:
  """Plays a game to its end.

  Args:
    environment: of StarCraft II.
    agents: by player; the others play by themselves.
    match_up: of the game.
    seed: of the game and of the agents' noise.
    replay: path of the replay; written also if the user interrupts the game, not if it fails.

  Raises:
    UserError: the game is not installed, or fails, or its replay cannot be written.
  """
  policies = {player: agent.make_policy(found.config) for player, found in agents.items()}
  cores = {player: policy.initial_state() for player, policy in policies.items()}
  steps = {player: jax.jit(policy.step) for player, policy in policies.items()}
  key = jax.random.key(seed)
  state = environment.reset(np.asarray(seed), match_up)
  try:
    for number in range(np.iinfo(np.int32).max):
      if environment.outcome(state).over:
        break
      due = np.asarray(environment.due(state))
      actions = {}
      for player in np.flatnonzero(due).tolist():
        observation, _ = environment.observe(state, np.asarray(player))
        noise = jax.random.fold_in(jax.random.fold_in(key, number), player)
        output = steps[player](agents[player].params, noise, observation, cores[player])
        actions[player], cores[player] = jax.tree.map(np.asarray, output.action), output.state
      state = environment.advance(environment.act(state, _both(actions), due))
  except KeyboardInterrupt:
    _save(state, replay)
    raise
  _save(state, replay)
  observation, _ = environment.observe(state, np.asarray(0))
  result = int(np.sign(np.asarray(environment.outcome(state).reward)[0]))
  return Ended(result, int(observation.game_loop))


def _save(state: Any, replay: pathlib.Path | None) -> None:
  if replay is not None:
    state.save_replay(replay)


def _both(actions: Mapping[int, types.Action]) -> types.Action:
  """Stacks the actions of two players; one that does not act gets any."""
  some = next(iter(actions.values()))
  return jax.tree.map(lambda *x: np.stack(x), *(actions.get(player, some) for player in range(2)))
