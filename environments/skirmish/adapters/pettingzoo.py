"""Skirmish as a `pettingzoo.ParallelEnv`: both players observe and act.

  environment = SkirmishParallelEnv()
  observations, infos = environment.reset(seed=1)
  while environment.agents:
    actions = {agent: environment.action_space(agent).sample(infos[agent]["action_mask"])
               for agent in environment.agents}
    observations, rewards, terminations, truncations, infos = environment.step(actions)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pettingzoo
from gymnasium.spaces import Dict

from starleague.agent import types
from starleague.environments.skirmish.adapters import spaces
from starleague.environments.skirmish.games import dm_environment, live, replay_format, replays
from starleague.environments.skirmish.games.dm_environment import RANDOM

AGENTS = ("player_0", "player_1")


class SkirmishParallelEnv(pettingzoo.ParallelEnv):
  """Both sides of consecutive games; see `spaces` for observations and actions.

  A step lasts until a player is due again: 8 game loops at least, by the actions' delays. A player
  that is not due yet gives an action too, without effect; `infos[agent]["due"]` tells. The reward
  is +1 for a win and -1 for a loss, 0 for a draw and before the end. `infos[agent]["action_mask"]`
  has the masks of the next action.
  """

  metadata: dict[str, Any] = {"render_modes": [], "name": "skirmish_v0", "is_parallelizable": True}

  def __init__(self, tier: str = "mini", *, races: Sequence[str] = (RANDOM, RANDOM),
               map_name: str = RANDOM):
    """Makes the environment.

    Args:
      tier: a name of `GAME_CONFIGS`.
      races: of the two players, or "random".
      map_name: a map of the tier, or "random".

    Raises:
      ValueError: an unknown tier, race or map.
    """
    self._game = spaces.game_config(tier)
    self._options = (tier, tuple(races), map_name)
    dm_environment.draw_match_up(np.random.default_rng(0), *self._options)
    self._spec = dm_environment.action_spec(self._game)
    self._rng: np.random.Generator | None = None
    self._live: live.LiveGame | None = None
    self.render_mode = None
    self.possible_agents = list(AGENTS)
    self.agents: list[str] = []
    self.observation_spaces = {
      agent: spaces.observation_space(self._game) for agent in AGENTS}
    self.action_spaces = {agent: spaces.action_space(self._game) for agent in AGENTS}

  def observation_space(self, agent: str) -> Dict:
    """Returns an agent's space of observations."""
    return self.observation_spaces[agent]

  def action_space(self, agent: str) -> Dict:
    """Returns an agent's space of actions."""
    return self.action_spaces[agent]

  def reset(self, seed: int | None = None,
            options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Starts the next game; equal seeds give equal series of games. `options` are not used."""
    if seed is not None or self._rng is None:
      self._rng = np.random.default_rng(seed)
    match_up = dm_environment.draw_match_up(self._rng, *self._options)
    self._live = live.LiveGame(
      self._game, match_up, int(self._rng.integers(replay_format.MOST_SEED + 1)))
    self.agents = list(AGENTS)
    return self._views(self._live)

  def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Plays until a player is due again or the game is over.

    Raises:
      TypeError, ValueError: an action is not in the action space, or the actions are not those of
        both agents.
    """
    game = self._live
    if game is None or not self.agents:
      raise ValueError("no game is under way: call reset first")
    if set(actions) != set(AGENTS):
      raise ValueError(f"actions: expected those of {' and '.join(AGENTS)}, found "
                       f"{', '.join(map(str, actions)) or 'none'}")
    taken = {player: self._action(agent, actions[agent]) for player, agent in enumerate(AGENTS)}
    game.step({player: taken[player] for player in np.flatnonzero(game.due).tolist()})
    while game.winner < 0 and not game.due.any():
      game.step({})
    over = game.winner >= 0
    rewards = {agent: float(game.winner == player) - float(game.winner == 1 - player)
               for player, agent in enumerate(AGENTS)}
    observations, infos = self._views(game)
    if over:
      self.agents = []
    return (observations, rewards, dict.fromkeys(AGENTS, over), dict.fromkeys(AGENTS, False),
            infos)

  def _action(self, agent: str, value: Any) -> types.Action:
    try:
      return spaces.action_from(value, self._spec)
    except (TypeError, ValueError) as error:
      raise type(error)(f"{agent}'s {error}") from error

  def _views(self, game: live.LiveGame) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns both agents' observations and infos."""
    shown = [live.observe(game, player) for player in range(len(AGENTS))]
    infos = {
      agent: {"action_mask": spaces.action_mask(observation, self._game), "due": bool(due),
              "game_loop": int(np.asarray(observation.game_loop))}
      for agent, observation, due in zip(AGENTS, shown, game.due, strict=True)}
    return dict(zip(AGENTS, map(spaces.observation_value, shown), strict=True)), infos

  def replay(self) -> replays.Replay:
    """Returns the replay of the current game so far.

    Raises:
      ValueError: no game has started.
    """
    if self._live is None:
      raise ValueError("no game has started: call reset first")
    return self._live.replay(AGENTS)
