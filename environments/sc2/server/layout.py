"""Makes a folder that clients take for StarCraft II: set SC2PATH to it.

  python -m starleague.environments.sc2.server.layout ~/SkirmishII

It holds `Versions/Base75689/SC2_x64`, a script that starts the server with this Python, and
`Maps/`: the server's own maps and stand-ins for those that pysc2 registers or a user names.
"""

import argparse
import os
import pathlib
import shlex
import sys
from collections.abc import Iterable

import starleague
from starleague.common import files
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.battlefields import SUFFIX, Battlefield
from starleague.environments.sc2.server.game.version import BUILD

# Maps that examples of python-sc2 name.
EXAMPLE_MAPS = (
  "AbyssalReefLE", "AcropolisLE", "AutomatonLE", "BelShirVestigeLE", "BerlingradAIE",
  "CatalystLE", "DarknessSanctuaryLE", "DiscoBloodbathLE", "EphemeronLE", "GoldenWallLE",
  "HardwireAIE", "IceandChromeLE", "InsideAndOutAIE", "KairosJunctionLE", "LightshadeLE",
  "NewRepugnancyLE", "OdysseyLE", "OxideLE", "PillarsofGoldLE", "PortAleksanderLE",
  "SequencerLE", "SubmarineLE", "ThunderbirdLE", "TritonLE", "WintersGateLE", "WorldofSleepersLE")


def maps(names: Iterable[str] = ()) -> dict[str, Battlefield]:
  """Returns the maps of a layout by their path below `Maps/`.

  Args:
    names: of more maps, directly below `Maps/`.
  """
  from pysc2 import maps as pysc2_maps

  found = battlefields.stand_ins()
  for name, kind in pysc2_maps.get_maps().items():
    if (kind.players or 0) >= 2 and kind.filename:
      found.setdefault(kind().path.replace(os.sep, "/"), battlefields.stand_in(name))
  for name in (*EXAMPLE_MAPS, *names):
    found[f"{name}{SUFFIX}"] = battlefields.stand_in(name)
  return found


def script() -> str:
  """Returns the script `SC2_x64`, which starts the server with this Python."""
  root = pathlib.Path(starleague.__file__).resolve().parent.parent
  return (f"#!/bin/sh\n"
          f"PYTHONPATH={shlex.quote(str(root))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
          f"export PYTHONPATH\n"
          f"exec {shlex.quote(sys.executable)} -m starleague.environments.sc2.server \"$@\"\n")


def make_layout(folder: pathlib.Path, names: Iterable[str] = ()) -> pathlib.Path:
  """Writes the layout and returns its folder; existing files are replaced.

  Args:
    folder: for SC2PATH.
    names: of more maps.
  """
  folder = folder.expanduser().resolve()
  program = folder / "Versions" / f"Base{BUILD}" / "SC2_x64"
  with files.replacing(program) as file:
    file.write(script())
  program.chmod(0o755)
  for path, battlefield in maps(names).items():
    with files.replacing(folder / "Maps" / path, "wb") as file:
      file.write(battlefields.encode(battlefield))
  return folder


def main() -> None:
  """Makes a layout and prints the command that uses it."""
  parser = argparse.ArgumentParser(description="Makes a folder that clients take for the game.")
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--map", action="append", default=[], help="name of one more map")
  flags = parser.parse_args()
  print(f"export SC2PATH={shlex.quote(str(make_layout(flags.folder, flags.map)))}")


if __name__ == "__main__":
  main()
