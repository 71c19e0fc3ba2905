"""The `small` preset: three races on three maps, for two cores."""

import ml_collections

from starleague.experiments.configs import mini


def get_config(init: str = "imitation") -> ml_collections.ConfigDict:
  """Returns the config of a run; see `mini.get_config`."""
  config = mini.get_config(init)
  config.update({
    "preset": "small",
    "seconds": 8 * 3600.0,
    "unroll_length": 32,
    "environment": {
      "tier": "default",
      "opponents": "L0,L1,L2,L3,L4,L5,L6,L7,L8,rush,timing,defence,macro,siege,air",
    },
    "actor": {
      "games": 64,
      "inference_batch": 32,
      "iterations": 16,
      "pseudo_rewards": "build_order,built_units,upgrades,effects",
      "demonstrators": "rush,timing,defence,macro,siege,air",
    },
    "demonstrations": {"players": "demo_5000,demo_6000,demo_7000", "games": 2600},
    "imitation": {
      "seconds": 2 * 3600.0,
      "labels_seconds": 2400.0,
      "fine_tune_learning_rate": 2e-4,
      "fine_tune_seconds": 600.0,
      "evaluate_interval_s": 600.0,
      "checkpoint_interval_s": 300.0,
    },
    "learner": {"learning_rate": 3e-4, "checkpoint_interval_s": 300.0},
    "evaluation": {"games": 20, "temperature": 0.5},
  })
  return config
