"""A bot written with python-sc2 (burnysc2): Barracks, Marines, attack. Prints its result.

  SC2PATH=FOLDER python marine_bot.py AcropolisLE
"""

import sys

from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Difficulty, Race
from sc2.ids.unit_typeid import UnitTypeId
from sc2.main import run_game
from sc2.player import Bot, Computer

_BARRACKS, _WAVE, _WORKERS = 4, 12, 14


class MarineBot(BotAI):
  """Attacks with Marines in waves."""

  async def on_step(self, iteration: int) -> None:
    """Spends money, and attacks once enough Marines are idle."""
    if not self.townhalls:
      return
    home = self.townhalls.first
    if home.is_idle and self.supply_workers < _WORKERS and self.can_afford(UnitTypeId.SCV):
      home.train(UnitTypeId.SCV)
    near = home.position.towards(self.game_info.map_center, 7)
    if self.supply_left < 4 and not self.already_pending(UnitTypeId.SUPPLYDEPOT):
      if self.can_afford(UnitTypeId.SUPPLYDEPOT):
        await self.build(UnitTypeId.SUPPLYDEPOT, near=near)
    elif self.structures(UnitTypeId.BARRACKS).amount < _BARRACKS and self.can_afford(
        UnitTypeId.BARRACKS):
      await self.build(UnitTypeId.BARRACKS, near=near)
    for barracks in self.structures(UnitTypeId.BARRACKS).ready.idle:
      if self.can_afford(UnitTypeId.MARINE):
        barracks.train(UnitTypeId.MARINE)
    idle = self.units(UnitTypeId.MARINE).idle
    if idle.amount >= _WAVE:
      target = self.enemy_structures.random_or(self.enemy_start_locations[0]).position
      for marine in self.units(UnitTypeId.MARINE):
        marine.attack(target)
    for worker in self.workers.idle:
      worker.gather(self.mineral_field.closest_to(home))


def main() -> None:
  """Plays a game on a map against the weakest computer player."""
  bot = MarineBot()
  result = run_game(
    maps.get(sys.argv[1]),
    [Bot(Race.Terran, bot), Computer(Race.Zerg, Difficulty.VeryEasy)],
    realtime=False, random_seed=3)
  print(f"result={result.name} loops={bot.state.game_loop}")


if __name__ == "__main__":
  main()
