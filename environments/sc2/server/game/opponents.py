"""Computer players: the scripted player of each difficulty and build of the API."""

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game.game import ScriptedBot
from starleague.environments.skirmish.bots import scripts

_LADDER = {
  sc_pb.VeryEasy: "L1", sc_pb.Easy: "L2", sc_pb.Medium: "L3", sc_pb.MediumHard: "L4",
  sc_pb.Hard: "L5", sc_pb.Harder: "L6", sc_pb.VeryHard: "L7", sc_pb.CheatVision: "L8",
  sc_pb.CheatMoney: "L9", sc_pb.CheatInsane: "L10"}
_MINI = {
  sc_pb.VeryEasy: "passive", sc_pb.Easy: "demo_2000", sc_pb.Medium: "demo_3000",
  sc_pb.MediumHard: "demo_4000", sc_pb.Hard: "builder", sc_pb.Harder: "demo_5000",
  sc_pb.VeryHard: "rusher", sc_pb.CheatVision: "demo_6000", sc_pb.CheatMoney: "demo_7000",
  sc_pb.CheatInsane: "demo_7000"}
_BUILDS = {
  sc_pb.Rush: "rush", sc_pb.Timing: "timing", sc_pb.Power: "siege", sc_pb.Macro: "macro",
  sc_pb.Air: "air"}
_CHEATING = (sc_pb.CheatMoney, sc_pb.CheatInsane)
_CHEATING_INCOME = 150  # percent


def script_name(tier: str, difficulty: int, build: int) -> str:
  """Returns the name of a computer player's script.

  Args:
    tier: of the game.
    difficulty: of the API; unknown numbers count as VeryEasy.
    build: of the API; without one, and at `mini`, the difficulty decides.
  """
  if tier == "mini":
    return _MINI.get(difficulty, _MINI[sc_pb.VeryEasy])  # type: ignore[call-overload]
  if build not in _BUILDS:
    return _LADDER.get(difficulty, _LADDER[sc_pb.VeryEasy])  # type: ignore[call-overload]
  speed = "_quarter" if difficulty <= sc_pb.Medium else (
    "_half" if difficulty <= sc_pb.Hard else "")
  return _BUILDS[build] + speed  # type: ignore[index]


def make_bot(tier: str, difficulty: int, build: int) -> ScriptedBot:
  """Returns the scripted player of a computer player; the two highest levels earn more."""
  name = script_name(tier, difficulty, build)
  index = scripts.names_of(tier).index(name)
  skill = scripts.scripts_of(tier)[index].skill
  return ScriptedBot(
    index, skill.mmr, _CHEATING_INCOME if difficulty in _CHEATING else skill.income)
