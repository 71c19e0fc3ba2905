"""The `small` preset: three races on three maps, for two cores."""

import ml_collections

from starleague.experiments.configs import medium


def get_config(init: str = "imitation") -> ml_collections.ConfigDict:
  """Returns the config of a run; see `mini.get_config`."""
  config = medium.get_config(init)
  config.update({
    "preset": "small",
    "demonstrations": {"players": "demo_5000,demo_6000,demo_7000", "games": 2600},
    # Rates of imitation that trained the weights of `medium`.
    "imitation": {
      "learning_rate": 2e-3,
      "seconds": 2 * 3600.0,
      "fine_tune_learning_rate": 2e-4,
      "fine_tune_seconds": 600.0,
    },
  })
  return config
