"""`small`, taught by the scripted player that changes its plan: the whole game, without z.

On two cores it takes five and a half hours: one hour of recording, labels and imitation, the rest
of reinforcement.
"""

import ml_collections

from starleague.experiments.configs import small


def get_config(init: str = "imitation") -> ml_collections.ConfigDict:
  """Returns the config of a run; see `mini.get_config`."""
  config = small.get_config(init)
  config.update({
    "seconds": 15600.0,
    "environment": {"opponents": "L7,L8,rush,timing,macro,defence,siege,air"},
    "actor": {
      # By squared losing rates: an agent unlearns what it rarely needs. Match-ups by variance:
      # games of those that are always lost may teach little.
      "matchmaking": "squared",
      "self_play": 0.0,
      "uniform": 0.3,
      "race_matchmaking": "variance",
      "draw_reward": -0.5,
      # What the agent sees decides its plan, not z.
      "pseudo_probability": 0.0,
    },
    "demonstrations": {
      "players": "adaptive",
      "opponents": "L7,L8,rush,timing,macro,defence,siege,air",
      "games": 4500,
      "labels": 1600,
    },
    "imitation": {
      "names": "adaptive",
      "keep_build_order": 0.0,
      "keep_cumulative": 0.0,
      "seconds": 1500.0,
      "labels_seconds": 540.0,
      "fine_tune_seconds": 120.0,
    },
    # Later stages have better teachers than the imitator.
    "learner": {"stages": 4},
  })
  return config
