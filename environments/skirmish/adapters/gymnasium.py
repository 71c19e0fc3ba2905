"""Skirmish as a `gymnasium.Env`: one player against a scripted one, an agent or a function.

  environment = SkirmishEnv("rusher")
  observation, info = environment.reset(seed=1)
  action = environment.action_space.sample(info["action_mask"])
  observation, reward, terminated, truncated, info = environment.step(action)

Also `gymnasium.make(ID, opponent="L5", tier="default")`, with the ID of this module.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from starleague.environments.skirmish.adapters import spaces
from starleague.environments.skirmish.games import dm_environment, replay_format, replays
from starleague.environments.skirmish.games.dm_environment import RANDOM, SkirmishEnvironment

# `gymnasium.make` imports the module before the colon.
ID = f"{__name__}:starleague/Skirmish-v0"


class SkirmishEnv(gymnasium.Env):
  """One player's side of consecutive games; see `spaces` for observations and actions.

  A step lasts until the player is due again: 8 game loops at least, by the action's `delay`. The
  reward is +1 for a win and -1 for a loss, 0 for a draw and before the end. `info["action_mask"]`
  has the masks of the next action.
  """

  metadata: dict[str, Any] = {"render_modes": []}

  def __init__(self, opponent: dm_environment.Opponent = "rusher", *, tier: str = "mini",
               races: Sequence[str] = (RANDOM, RANDOM), map_name: str = RANDOM):
    """Makes the environment.

    Args:
      opponent: a scripted player's name, a `replays.Controller` made for the tier's sizes, or a
        function of the opponent's `types.Observation`; see `SkirmishEnvironment`.
      tier: a name of `GAME_CONFIGS`.
      races: of the player and of the opponent, or "random".
      map_name: a map of the tier, or "random".

    Raises:
      ValueError: an unknown tier, race, map or player.
    """
    self._game = spaces.game_config(tier)
    self._options: dict[str, Any] = {
      "opponent": opponent, "game": self._game, "races": tuple(races), "map_name": map_name}
    self._games = SkirmishEnvironment(**self._options)
    self._seeded = False
    self.observation_space = spaces.observation_space(self._game)
    self.action_space = spaces.action_space(self._game)

  def reset(self, *, seed: int | None = None,
            options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Starts the next game; equal seeds give equal series of games. `options` are not used."""
    super().reset(seed=seed)
    if seed is not None or not self._seeded:
      drawn = int(self.np_random.integers(replay_format.MOST_SEED + 1))
      self._games = SkirmishEnvironment(**self._options, seed=drawn)
      self._seeded = True
    observation = self._games.reset().observation
    return spaces.observation_value(observation), self._info(observation)

  def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
    """Plays until the player is due again or the game is over.

    Raises:
      TypeError, ValueError: the action is not in the action space.
      gymnasium.error.ResetNeeded: no game is under way.
    """
    if not self._games.playing:
      raise gymnasium.error.ResetNeeded("no game is under way: call reset first")
    timestep = self._games.step(spaces.action_from(action, self._games.action_spec()))
    return (spaces.observation_value(timestep.observation), float(timestep.reward),
            timestep.last(), False, self._info(timestep.observation))

  def _info(self, observation: Any) -> dict[str, Any]:
    return {"action_mask": spaces.action_mask(observation, self._game),
            "game_loop": int(np.asarray(observation.game_loop))}

  def replay(self) -> replays.Replay:
    """Returns the replay of the current game so far.

    Raises:
      ValueError: no game has started.
    """
    return self._games.replay()


gymnasium.register(ID.partition(":")[2], entry_point=f"{__name__}:{SkirmishEnv.__name__}")
