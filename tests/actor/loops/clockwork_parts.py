"""Parts of a run whose game is the clockwork environment."""

from starleague.actor.parts import CompiledGames, Parts
from tests.actor.clockwork import clockwork, counting_policy, scripted
from tests.actor.inference.serving import CONFIG

OPPONENTS = ("slow", "slower")
PARTS = Parts(
  config=CONFIG, policy=counting_policy(), opponents=OPPONENTS, races=(1, 2),
  opponent_races=(1, 2), maps=(("one",), ("other",)), mmr=6200,
  compiled=CompiledGames(clockwork(), scripted, grid_per_unit=1.0))
HOSTED = PARTS._replace(compiled=None)  # of a game that is played in processes of its own
