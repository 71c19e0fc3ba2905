"""The `mini` preset: AlphaStar on Skirmish, on a laptop of two cores, in half an hour."""

import ml_collections


def get_config() -> ml_collections.ConfigDict:
  """Every setting of a run; `--config.KEY=VALUE` changes one, an unknown key is refused."""
  return ml_collections.ConfigDict({
    "preset": "mini",  # an agent preset, see starleague.agent.config
    "seed": 0,
    "seconds": 1800.0,  # training time, evaluation and start-up not counted
    "unroll_length": 16,  # T
    "environment": {
      "tier": "mini",
      # Scripted players of the tier, met in training and in evaluation.
      "opponents": "passive,rusher,builder,random_player",
    },
    "actor": {
      "processes": 1,
      "threads": 1,  # of XLA in one process; 0: one a core
      "niceness": 10,  # 0 to 19: an actor uses the time that the learner leaves
      "games": 128,  # played at once by one process
      "inference_batch": 64,
      "iterations": 32,  # a compiled call plays this many inference batches
      "self_play": 0.25,  # share of games against the live agent; the rest are scripted players
      "matchmaking": "variance",  # which scripted player: see starleague.league.pfsp
      "uniform": 0.2,  # share of scripted players' games dealt evenly: one never beaten is met too
      "parameter_interval_s": 10.0,
      "pseudo_probability": 0.5,  # of each pseudo-reward in a game
      "pseudo_rewards": "build_order,built_units",  # mini has no upgrades and no effects
      "demonstrators": "rusher,builder",  # opponents of whose won games z is taken
      "pseudo_scale": 0.1,  # what a unit of distance to z is worth
    },
    "data": {
      "min_size": 64,  # trajectories before any is learnt from
      "tolerance": 128,  # trajectories by which actors may run ahead of the learner
      "samples_per_item": 2,
      "timeout_s": 300.0,
    },
    "learner": {
      "batch_size": 32,  # sequences, of all hosts together
      "accumulate": 1,  # parts of a device's share, one after the other: less memory
      "learning_rate": 1e-3,
      "b1": 0.0,
      "b2": 0.99,
      "eps": 1e-5,
      "max_norm": 1.0,
      "td_lambda": 0.8,
      "policy_cost": 5.0,
      "baseline_cost": 10.0,
      "upgo_cost": 1.0,
      "entropy": 5e-2,  # with a tenth of it a run lost again what it had learnt
      "teacher_kl": 0.0,
      "publish_interval_s": 10.0,
      "checkpoint_interval_s": 60.0,
      "log_interval_s": 5.0,
      "keep_last": 3,
      "keep_every": 0,  # updates; 0 keeps none beyond the last
      "max_skipped": 20,  # consecutive non-finite updates before the run stops
    },
    "evaluation": {"games": 200},  # against each scripted player
  })
