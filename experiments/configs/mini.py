"""The `mini` preset: AlphaStar on Skirmish, on a laptop with two cores, in a quarter of an hour."""

import ml_collections

# Changes for a run from random weights, `--config.init=random`.
FROM_RANDOM = {
  "seconds": 1800.0,
  "actor": {"self_play": 0.25, "uniform": 0.2, "pseudo_probability": 0.5},
  "learner": {
    "learning_rate": 1e-3,
    "final_rate": 1.0,
    "entropy": 5e-2,  # with 5e-3 the policy converged prematurely
    "teacher_kl": 0.0,  # the teacher would be the random weights
    "function_kl": 0.0,
    "value_warm_up": 0,
  },
}


def get_config(init: str = "imitation") -> ml_collections.ConfigDict:
  """Returns the config of a run; `--config.KEY=VALUE` changes a key.

  Another game than Skirmish changes some values; its entry in `run/games` lists them, and the
  config group of its own.

  Args:
    init: the value of `config.init`; "random" changes what `FROM_RANDOM` says.
  """
  config = _from_imitation()
  config.init = init
  if config.init == "random":
    config.update(FROM_RANDOM)
  return config


def _from_imitation() -> ml_collections.ConfigDict:
  """Returns the config of a run that starts from imitation."""
  return ml_collections.ConfigDict({
    "preset": "mini",  # sizes of the agent: mini, small or full; see agent.config
    "agent": "",  # changes of the preset, as core_size=192,entity_layers=2
    "seed": 0,  # of initial weights, demonstrations and games
    # Weights that training starts from, and its teacher: "imitation" of recorded games, "random",
    # or "pretrained", those that ship with the preset.
    "init": "imitation",
    "seconds": 480.0,  # of reinforcement learning by `train`, without setup and evaluation
    "unroll_length": 16,  # T, agent steps of a trajectory
    "environment": {
      "name": "skirmish",  # the game; or "sc2", StarCraft II; see run/games
      "tier": "mini",  # of Skirmish: size, pace and content of its games
      "races": "",  # of Skirmish: those of both players, with commas between; empty: the tier's
      # Scripted players of the tier, met in training and in evaluation.
      "opponents": "passive,rusher,builder,random_player",
      "mmr": 7000,  # MMR of the agent in its observations: that of the best demonstrators
    },
    "actor": {
      "processes": 1,  # number of actors
      "threads": 1,  # threads of XLA in one process; 0: one per core
      "niceness": 0,  # priority, 0 to 19: of actors, against all other programs of the machine
      "games": 128,  # concurrent games of one process
      "inference_batch": 64,  # rows inferred at once, at most twice the games
      "iterations": 32,  # inference batches in one call of the compiled program
      "self_play": 0.2,  # share of games against the current agent; the rest: scripted players
      "matchmaking": "variance",  # weighting of scripted players, see starleague.league.pfsp
      "race_matchmaking": "uniform",  # weighting of match-ups against each scripted player
      "draw_reward": 0.0,  # of both players, in [-1, 1]
      # Rewards for units that the agent builds or that its opponent loses, as
      # built.Marine:0.01+lost.SCV:0.02; `train` alone reads them.
      "objective": "",
      "uniform": 0.15,  # share of scripted players' games split evenly: all opponents are met
      "parameter_interval_s": 10.0,  # seconds between two looks for newer weights
      "pseudo_probability": 0.25,  # that a pseudo-reward is active in a game; see learner/weights
      # Pseudo-rewards in use; mini has no upgrades and no effects.
      "pseudo_rewards": "build_order,built_units",
      # Opponents whose won games give z in a run from random weights; otherwise imitated games do.
      "demonstrators": "rusher,builder",
      "library": "",  # file of z for training games; empty: the imitated or demonstrators' games
      "pseudo_scale": 0.1,  # reward for one unit of distance to z; see learner/weights
    },
    "league": _league(),
    "cluster": _cluster(),
    "data": {
      "min_size": 64,  # trajectories in the table before the first is sampled
      "tolerance": 128,  # trajectories that actors may be ahead of the learner
      "samples_per_item": 2,  # times that a trajectory is sampled, at most
      "timeout_s": 300.0,  # seconds of a wait for another process before it is an error
    },
    "demonstrations": _demonstrations(),
    "imitation": _imitation(),
    "offline": _offline(),
    "learner": _learner(),
    "evaluation": _evaluation(),
  })


def _demonstrations() -> dict:
  """Returns the values of recorded games."""
  return {
    # Folder of recorded games to imitate, or several, separated by commas; empty: the run records
    # its own.
    "dataset": "",
    # Run whose weights imitation starts from; "pretrained": those that ship with the preset; empty:
    # random weights.
    "imitator": "",
    # The agent of that run: "imitation", "initial" or "trained", as for `evaluate --agents`.
    "agent": "imitation",
    "players": "demo_2000,demo_6000,demo_7000",  # of recorded games, in all pairs
    "opponents": "",  # opponents that each of them meets instead; empty: one another
    "games": 800,  # recorded games
    # Games in which the imitator plays and the players label its states, for a further phase of
    # imitation by `train` and `league`; 0: none.
    "labels": 0,
    "labels_share": 0.3,  # of the imitator's decisions in these games that its teacher takes
  }


def _evaluation() -> dict:
  """Returns the values of evaluation games."""
  return {
    "games": 200,  # against each scripted player, even
    # Factor of the agent's temperatures in evaluation against scripted players, in `watch` and in
    # `play`; 1: as in training.
    "temperature": 0.75,
  }


def _league() -> dict:
  """Returns the values of a league; `train` does not read them."""
  return {
    # Players: RACE:MAIN_AGENTS:MAIN_EXPLOITERS:LEAGUE_EXPLOITERS[:FROZEN_MAIN_AGENTS] of each race.
    "composition": "terran:1:1:2",
    "seconds": 1020.0,  # duration of the league, after imitation
    # Updates of each main agent: the league ends when all main agents have them; 0: no limit.
    "main_updates": 0,
    # How main agents choose opponents: pfsp, the published mixture; pfsp_alone, fsp, self_play,
    # pfsp_self_play; see starleague.league.matchmaking.
    "matchmaking": "pfsp",
    # Schemes of main agents that differ, as terran-main-1=self_play,terran-main-2=fsp.
    "own_matchmaking": "",
    # Scripted players, of environment.opponents, that belong to the league's past: PFSP draws them
    # too, for main agents and league exploiters; as rusher,builder.
    "scripted": "",
    # Rewards of players for units that they build or that their opponent loses, as
    # terran-main-0=built.Marine:0.01+lost.SCV:0.02,terran-main-1=built.Hellion:0.1.
    "objectives": "",
    # Ranges of hyperparameters that players of one role and race tune together, as
    # learning_rate=3e-5:3e-3,entropy=1e-3:1e-1; empty: they stay constant.
    "population": "",
    "population_steps": 3e4,  # agent steps of a player between two decisions of its population
    "snapshot_steps": 3e4,  # agent steps between two snapshots of a player, at least
    "timeout_steps": 6e4,  # agent steps after which a snapshot is due at any score
    "places": 4,  # matches of two policies that an actor has room for, by learning player
    "games": 16,  # games of an assignment
    "chunk": 16,  # rows inferred at once with the parameters of one player
    # Factor of exploiters' reward for a fall of the opponent's own win-loss value; 0: none.
    "exploiter_minimax": 0.0,
    "exploiter_goals": False,  # whether exploiters play for z, drawn by scores of similar z
    "snapshots_z": False,  # whether snapshots of main agents always play with z
    "lease_s": 60.0,  # seconds after which the games of a silent actor go to another
    "evaluators": 1,  # processes that play evaluation games
    "evaluator_niceness": 19,  # priority, 0 to 19: evaluators leave the processor to the others
    "evaluation_games": 2,  # games of an evaluator's assignment
    # Whether kept replays hold the predictions of agents, for their pages; Skirmish only.
    "replay_predictions": False,
  }


def _cluster() -> dict:
  """Returns the places of processes on a cluster, and which learners there are."""
  return {
    # Resources, as CPU:4 or TPU-v4-8-head:1,TPU:4; see `launch`.
    "data_server": "CPU:1",  # resources of a data server
    "coordinator": "CPU:1",  # resources of a league's coordinator
    "learner": "CPU:1",  # resources of a learner
    "actor": "CPU:1",  # resources of an actor
    "evaluator": "CPU:1",  # resources of an evaluator
    "learners": "one",  # of a league: "one" for all learning players, or "each" has its own
    "learner_hosts": 1,  # processes of the learner of a run that trains one agent
  }


def _imitation() -> dict:
  """Returns the values of imitation."""
  return {
    # Names of the players that are imitated, separated by commas, as student; empty: all.
    "names": "",
    # Slots: chunks of as many games. Short chunks of few games give many updates; larger batches
    # learn less in the same time.
    "batch_size": 16,
    "unroll_length": 8,  # T of the chunks
    "accumulate": 1,  # parts of a device's share, processed in turn: less memory
    "learning_rate": 2e-3,  # of Adam
    "warm_up": 0.02,  # share of the phase in which the learning rate rises from 0
    "final_rate": 0.1,  # final over initial learning rate, along half a cosine; 1: constant
    "b1": 0.9,  # decay of Adam's first moment
    "b2": 0.999,  # decay of Adam's second moment
    "eps": 1e-8,  # added to the root of Adam's second moment
    "max_norm": 10.0,  # norm to which gradients are clipped; 0: no clipping
    "l2": 1e-5,  # cost of the squared weights
    "costs": {
      "function": 1.0,  # cost of this argument's cross-entropy
      "delay": 1.0,  # cost of this argument's cross-entropy
      "queued": 1.0,  # cost of this argument's cross-entropy
      "repeat": 1.0,  # cost of this argument's cross-entropy
      "units": 1.0,  # cost of this argument's cross-entropy
      "target_unit": 1.0,  # cost of this argument's cross-entropy
      "location": 1.0,  # cost of this argument's cross-entropy
    },
    "keep_build_order": 0.8,  # probability that a game shows z's build order
    "keep_cumulative": 0.5,  # probability that a game shows z's units, effects and upgrades
    "carry_state": True,  # the core's state goes from chunk to chunk; False: it starts from zero
    # The first of the two limits that is reached ends a phase.
    "seconds": 150.0,  # duration of imitation; 0: no limit
    "epochs": 0,  # epochs of imitation; 0: no limit
    # The phase of all games after those with labels (`demonstrations.labels`).
    "labels_learning_rate": 1e-3,  # of Adam, in this phase
    "labels_seconds": 100.0,  # duration of this phase; 0: no limit
    "labels_epochs": 0,  # epochs of this phase; 0: no limit
    # Fine-tuning on good winners; left out if both limits are 0.
    "fine_tune_mmr": 6000,  # least MMR of the winners to fine-tune on, which also give z
    "fine_tune_learning_rate": 3e-4,  # of Adam, in fine-tuning
    "fine_tune_seconds": 20.0,  # duration of fine-tuning; 0: no limit
    "fine_tune_epochs": 0,  # epochs of fine-tuning; 0: no limit
    "held_out": 0.02,  # share of games that measure and are not learnt
    "evaluate_interval_s": 60.0,  # seconds between two measurements on held-out games
    "checkpoint_interval_s": 60.0,  # seconds between two checkpoints
  }


def _offline() -> dict:
  """Returns the values of offline learning; batches and optimizer are those of imitation."""
  return {
    # Method: cloning; winners, cloning of the players that won with `imitation.fine_tune_mmr`;
    # actor_critic; or emphatic, an actor-critic with emphatic weights.
    "method": "cloning",
    # Run of the cloned behaviour policy, whose weights the method starts from. Empty: cloning
    # starts from random weights.
    "behaviour": "",
    "ratios": "cloned",  # importance ratios: over the "cloned" policy, or "recorded" log-probs
    "updates": 4000,  # updates of the run
    "policy_cost": 1.0,  # cost of the V-trace policy gradient
    "value_cost": 1.0,  # cost of the behaviour policy's win-loss value, in all methods
    "kl_cost": 0.2,  # cost of the KL divergence from the behaviour policy
    "emphatic_steps": 16,  # n of the emphatic weights
  }


def _learner() -> dict:
  """Returns the values of reinforcement learning."""
  return {
    "batch_size": 32,  # sequences, over all hosts
    "accumulate": 1,  # parts of a device's share, processed in turn: less memory
    "learning_rate": 4e-4,  # of Adam, at the start
    "final_rate": 0.1,  # final over initial learning rate, linear; a league's rate is constant
    # Equal parts of training by `train`. Each later one begins again with the initial learning
    # rate, and with the agent itself as its teacher.
    "stages": 1,
    "b1": 0.0,  # decay of Adam's first moment
    "b2": 0.99,  # decay of Adam's second moment
    "eps": 1e-5,  # added to the root of Adam's second moment
    "max_norm": 1.0,  # norm to which gradients are clipped; 0: no clipping
    "td_lambda": 0.8,  # lambda of the TD(lambda) targets of the value functions
    "vtrace_lambda": 1.0,  # lambda of the V-trace targets; 1 as published
    "policy_cost": 5.0,  # cost of the policy gradient of the win-loss reward
    "baseline_cost": 10.0,  # cost of the win-loss value function
    "upgo_cost": 1.0,  # cost of upgoing policy updates
    "opponent_values": True,  # whether the value functions observe the opponent, in training only
    "entropy": 2e-3,  # cost of low entropy
    "teacher_kl": 0.05,  # cost of the KL divergence from the teacher
    "updates": 0,  # most updates of the run; 0: no limit
    "function_kl": 0.1,  # cost of the function's KL divergence, early in games with z
    "value_warm_up": 60,  # updates in which only the value functions learn
    "publish_interval_s": 10.0,  # seconds between two publications of weights
    "checkpoint_interval_s": 60.0,  # seconds between two checkpoints
    "log_interval_s": 5.0,  # seconds between two records of metrics
    "wandb": "",  # project of Weights & Biases that gets the metrics too; empty: none
    "keep_last": 3,  # newest checkpoints that are kept
    "keep_every": 0,  # updates between checkpoints that are kept for good; 0: none
    "max_skipped": 20,  # non-finite updates in a row that stop the run
  }
