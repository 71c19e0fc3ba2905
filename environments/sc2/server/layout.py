"""Makes a folder that clients take for StarCraft II: set SC2PATH to it.

  python -m starleague.environments.sc2.server.layout ~/SkirmishII

It holds `Versions/Base75689/SC2_x64`, a script that starts the server with this Python, and
`Maps/`: the server's own maps and stand-ins for those that pysc2 registers or a user names.
"""

import argparse
import os
import pathlib
import re
import shlex
import sys
from collections.abc import Callable, Iterable

import starleague
from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.battlefields import SUFFIX, Battlefield, MapError
from starleague.environments.sc2.server.game.version import BUILD

# Maps that examples of python-sc2 name.
EXAMPLE_MAPS = (
  "(2)CatalystLE", "2000AtmospheresAIE", "Abyssal Reef LE", "AbyssalReefLE", "Acropolis",
  "AcropolisLE", "AutomatonLE", "BelShirVestigeLE", "BerlingradAIE", "CatalystLE",
  "DarknessSanctuaryLE", "DiscoBloodbathLE", "EphemeronLE", "GoldenAura513AIE", "GoldenWallLE",
  "HardwireAIE", "IceandChromeLE", "InsideAndOutAIE", "KairosJunctionLE", "LightshadeLE",
  "NewRepugnancyLE", "OdysseyLE", "OxideLE", "PillarsofGoldLE", "PortAleksanderLE", "SequencerLE",
  "SubmarineLE", "ThunderbirdLE", "TritonLE", "WintersGateLE", "WorldofSleepersLE")


_INTERPRETER = "#!/bin/sh\n"


class LayoutError(UserError):
  """The folder has files of another program, such as an installation of StarCraft II."""


def maps(names: Iterable[str] = ()) -> dict[str, Battlefield]:
  """Returns the maps of a layout by their path below `Maps/`.

  Args:
    names: of more maps, directly below `Maps/`.

  Raises:
    MapError: a name has a folder.
  """
  from pysc2 import maps as pysc2_maps

  ladder = [kind().path.replace(os.sep, "/") for kind in pysc2_maps.get_maps().values()
            if (kind.players or 0) >= 2 and kind.filename]
  more = [f"{_checked(name)}{SUFFIX}" for name in (*EXAMPLE_MAPS, *names)]
  return battlefields.stand_ins() | {
    path: battlefields.stand_in(path) for path in (*ladder, *more)}


def _checked(name: str) -> str:
  """Returns a map's name without the suffix of its file.

  Raises:
    MapError: the name is no file's name, so that the file would lie in another folder.
  """
  stem = re.sub(rf"{re.escape(SUFFIX)}$", "", name, flags=re.IGNORECASE)
  if stem in ("", ".", "..") or re.search(r"[/\\\0]", stem):
    raise MapError(f'map: expected a name without a folder, such as "AcropolisLE", found {name!r}')
  return stem


def script() -> str:
  """Returns the script `SC2_x64`, which starts the server with this Python."""
  root = pathlib.Path(starleague.__file__).resolve().parent.parent
  return (f"{_INTERPRETER}"
          f"PYTHONPATH={shlex.quote(str(root))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
          f"export PYTHONPATH\n"
          f"exec {shlex.quote(sys.executable)} -m starleague.environments.sc2.server \"$@\"\n")


def make_layout(folder: pathlib.Path, names: Iterable[str] = ()) -> pathlib.Path:
  """Writes the layout and returns its folder; files of an earlier layout are replaced.

  Args:
    folder: for SC2PATH.
    names: of more maps.

  Raises:
    MapError: a name has a folder; nothing is written.
    LayoutError: a file is none of a layout; nothing is written.
  """
  battlefields_by_path = maps(names)
  folder = folder.expanduser().resolve()
  program = folder / "Versions" / f"Base{BUILD}" / "SC2_x64"
  _require_own(program, lambda data: data.startswith(_INTERPRETER.encode()))
  for path in battlefields_by_path:
    _require_own(folder / "Maps" / path, battlefields.is_own)
  with files.replacing(program) as file:
    file.write(script())
  program.chmod(0o755)
  for path, battlefield in battlefields_by_path.items():
    with files.replacing(folder / "Maps" / path, "wb") as file:
      file.write(battlefields.encode(battlefield))
  return folder


def _require_own(path: pathlib.Path, is_own: Callable[[bytes], bool]) -> None:
  """Raises LayoutError if there is a file that no layout has written."""
  if path.exists() and not (path.is_file() and is_own(battlefields.beginning(path))):
    raise LayoutError(f"{path}: expected a file of an earlier layout or none, found another one: "
                      "is StarCraft II installed here? Name another folder")


def main() -> None:
  """Makes a layout and prints the command that uses it."""
  parser = argparse.ArgumentParser(description="Makes a folder that clients take for the game.")
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--map", action="append", default=[], help="name of one more map")
  flags = parser.parse_args()
  try:
    folder = make_layout(flags.folder, flags.map)
  except UserError as error:
    sys.exit(f"error: {error}")
  except OSError as error:
    sys.exit(f"error: folder: expected one that can be written, found {str(flags.folder)!r}: "
             f"{error.strerror}")
  print(f"export SC2PATH={shlex.quote(str(folder))}")


if __name__ == "__main__":
  main()
