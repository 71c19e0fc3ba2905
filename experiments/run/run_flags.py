"""Flags that several launch files have, defined once: launch files may import one another."""

from absl import flags

RUN_DIR = flags.DEFINE_string("run_dir", None, "Folder of the run.")
ADDRESS = flags.DEFINE_string("address", None, "host:port of the data server.")
PARAMETERS = flags.DEFINE_string(
  "parameters", None, "host:port of the data server that has the newest parameters, where the "
  "learner runs over several hosts: that of host 0. --address if not given.")
ORIGIN = flags.DEFINE_float(
  "origin", None, "When the run began, in seconds since 1970; what figures' times count from. "
  "The moment of the start if not given.")
SEED = flags.DEFINE_integer("seed", 0, "Seed of the games.")
TIER = flags.DEFINE_string(
  "tier", None, "Tier of the game: mini, default or large. That of the run where its agent plays; "
  "else the first one that has the players named.")
RACES = flags.DEFINE_list(
  "races", ["random", "random"], "Races of the players, as protoss,zerg; random: drawn from --seed.")
MAP = flags.DEFINE_string("map", "random", "Map: open, ramps or river; random: drawn from --seed.")
