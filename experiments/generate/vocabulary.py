"""Writes the vocabulary's data files, `agent/data/*.csv`, from pysc2's tables and a technology tree.

  python -m starleague.experiments.generate.vocabulary --techtree data.json.xz [--tables agent/data]

The files are committed, so that `starleague.agent` needs neither source; run this again only when
the game's tables change. A test holds the committed files against the installed pysc2.
"""

import csv
import json
import lzma
import pathlib
import random
from collections.abc import Iterable, Sequence

from absl import app, flags

from starleague.common import files

_TECHTREE = flags.DEFINE_string(
  "techtree", None, "data.json or data.json.xz of the technology tree: its units' abilities say "
  "which unit types can execute a function.")
_OUTPUT = flags.DEFINE_string(
  "tables", str(pathlib.Path(__file__).resolve().parents[2] / "agent" / "data"),
  "Folder the CSV files are written to.")

# Wild animals differ only in looks. One class for all of them keeps the unit types within the 256
# of the published agent (Vinyals et al. 2019, detailed architecture).
CRITTERS = frozenset({
  "CarrionBird", "KarakFemale", "KarakMale", "Lyote", "Scantipede", "ThornLizard", "UrsadakCalf",
  "UrsadakFemale", "UrsadakMale", "UtilityBot", "Crabeetle", "Dog", "Sheep", "Cow"})


def import_pysc2_tables():
  """pysc2.lib's actions, units, upgrades and buffs.

  pysc2.lib.colors shuffles a palette at import with a two-argument `random.shuffle` that Python
  3.11 no longer has; the old meaning is lent to it for that moment only.
  """
  shuffle = random.shuffle
  random.shuffle = lambda x, _=None: shuffle(x)  # type: ignore[assignment,misc]
  try:
    from pysc2.lib import actions, buffs, units, upgrades
  finally:
    random.shuffle = shuffle
  return actions, units, upgrades, buffs


def category(name: str) -> str:
  """What a function is for: the word before its first underscore if it is a known one."""
  prefix = name.split("_")[0]
  if prefix in ("Train", "Build", "Research", "Morph", "Effect"):
    return prefix.lower()
  return "effect" if prefix in ("BurrowDown", "BurrowUp", "Behavior") else "other"


# Where the camera must show the target: people aim these commands at the screen, never at the small
# map (Mathieu et al. 2021, AlphaStar Unplugged, count each in replays: over 99.6% of its uses).
# What is placed or cast is, but for a few effects with a long reach; of the rest, these are.
ON_SCREEN = frozenset({"Attack_unit", "Harvest_Gather_unit", "Land_pt", "Load_unit",
                       "Morph_Root_pt", "Rally_Workers_unit", "UnloadAllAt_unit"})
FAR_REACHING = frozenset({
  "Build_CreepTumor_pt", "Effect_AdeptPhaseShift_pt", "Effect_Blink_pt", "Effect_Blink_unit",
  "Effect_CalldownMULE_pt", "Effect_Charge_pt", "Effect_Charge_unit", "Effect_ChronoBoost_unit",
  "Effect_Contaminate_unit", "Effect_EMP_unit", "Effect_FungalGrowth_unit",
  "Effect_InjectLarva_unit", "Effect_LocustSwoop_pt", "Effect_MassRecall_pt",
  "Effect_NukeCalldown_pt", "Effect_Repair_pt", "Effect_Scan_pt", "Effect_SpawnLocusts_pt",
  "Effect_SpawnLocusts_unit", "Effect_Spray_pt", "Effect_TacticalJump_pt",
  "Effect_ViperConsume_unit", "Effect_WidowMineAttack_pt", "Effect_WidowMineAttack_unit"})


def needs_screen(name: str, function_type: str) -> bool:
  """Whether a function's target must be where the camera looks."""
  if function_type not in ("raw_cmd_pt", "raw_cmd_unit"):
    return False
  aimed = name.split("_")[0] in ("Build", "TrainWarp", "Effect") and name not in FAR_REACHING
  return aimed or name in ON_SCREEN


def function_rows(actions) -> tuple[list[list], list[list]]:
  """Rows of functions.csv (the general functions) and aliases.csv (all raw ids -> index)."""
  general = [f for f in actions.RAW_FUNCTIONS if not f.general_id]
  index = {(f.ability_id, f.function_type.__name__): i for i, f in enumerate(general)}
  functions = [[i, int(f.id), f.name, f.ability_id, f.function_type.__name__, category(f.name),
                int(needs_screen(f.name, f.function_type.__name__))]
               for i, f in enumerate(general)]
  aliases = []
  for f in actions.RAW_FUNCTIONS:
    ability = f.general_id or f.ability_id
    aliases.append([int(f.id), index[ability, f.function_type.__name__], f.ability_id])
  return functions, aliases


def unit_rows(units) -> list[list]:
  """Rows of unit_types.csv: index, game id, name, race; index 0 is the unknown type."""
  rows = [[0, 0, "Unknown", "None"]]
  critter = None
  for race in (units.Neutral, units.Terran, units.Protoss, units.Zerg):
    for unit in sorted(race, key=lambda u: u.value):
      if unit.name in CRITTERS and critter is not None:
        rows.append([critter, unit.value, unit.name, race.__name__])
        continue
      index = max(row[0] for row in rows) + 1
      if unit.name in CRITTERS:
        critter = index
      rows.append([index, unit.value, unit.name, race.__name__])
  return rows


def id_rows(enum) -> list[list]:
  """Rows of upgrades.csv and buffs.csv: index, game id, name; index 0 is the unknown one."""
  return [[0, 0, "Unknown"]] + [[i + 1, e.value, e.name]
                                for i, e in enumerate(sorted(enum, key=lambda e: e.value))]


# Whatever is under construction or in a queue can be cancelled, whoever makes it: the technology
# tree knows two special cases only. No executor named means that any type may.
CANCELS = frozenset({"Cancel_quick", "Cancel_Last_quick"})
# Skirmish has neither larvae nor add-ons as units: their building executes what they would.
STANDS_FOR = {"Hatchery": ("Larva",), "Barracks": ("BarracksTechLab",),
              "Factory": ("FactoryTechLab",)}


def capability_rows(functions: Sequence[Sequence], aliases: Iterable[Sequence], units: Sequence,
                    techtree: dict) -> list[list]:
  """Rows of capabilities.csv: function index, the unit type indices that can execute it."""
  by_ability: dict[int, set[int]] = {}
  for _, index, ability in aliases:
    by_ability.setdefault(ability, set()).add(index)
  for row in functions:
    by_ability.setdefault(row[3], set()).add(row[0])
  remaps = {a["id"]: a["remaps_to_ability_id"] for a in techtree["Ability"]
            if a.get("remaps_to_ability_id")}
  unit_index = {row[1]: row[0] for row in units}
  capable: dict[int, set[int]] = {row[0]: set() for row in functions}
  for unit in techtree["Unit"]:
    if unit["id"] not in unit_index:
      continue
    for entry in unit["abilities"]:
      ability = entry["ability"]
      for known in (ability, remaps.get(ability)):
        for function in by_ability.get(known, ()):
          capable[function].add(unit_index[unit["id"]])
  by_name = {row[2]: row[0] for row in units}
  for row in functions:
    if row[2] in CANCELS:
      capable[row[0]] = set()
    for building, absent in STANDS_FOR.items():
      if any(by_name[name] in capable[row[0]] for name in absent):
        capable[row[0]].add(by_name[building])
  return [[function, " ".join(str(u) for u in sorted(types))]
          for function, types in capable.items()]


ATTRIBUTES = ("light", "armored", "biological", "mechanical", "psionic", "massive", "structure",
              "detector", "summoned", "flying", "addon", "burrowed", "heroic")


def initial_contents(name: str) -> tuple[int, int]:
  """Minerals and vespene that a resource of this type holds at the start of a game."""
  if name.endswith("Geyser"):
    return 0, 2500 if "Rich" in name else 2250
  if "MineralField" in name:
    amount = name.partition("MineralField")[2]
    return int(amount) if amount else 1500 if "Rich" in name else 1800, 0
  return 0, 0


def attribute_rows(units: Iterable[Sequence], techtree: dict) -> list[list]:
  """Rows of attributes.csv: unit type index, its ATTRIBUTES as 0 or 1, initial contents."""
  known = {unit["id"]: unit for unit in techtree["Unit"]}
  rows: dict[int, list] = {}
  for index, game_id, name, _ in units:
    unit = known.get(game_id, {})
    has = {attribute.lower() for attribute in unit.get("attributes", ())}
    has |= {attribute for attribute, present in (
      ("detector", unit.get("detection_range")), ("flying", unit.get("is_flying")),
      ("addon", unit.get("is_addon")), ("burrowed", "Burrowed" in name)) if present}
    row = [index, *(int(attribute in has) for attribute in ATTRIBUTES), *initial_contents(name)]
    rows.setdefault(index, row)
  return list(rows.values())


def write_csv(path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence]) -> None:
  """Writes a table atomically."""
  with files.replacing(path) as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def read_tree(path: pathlib.Path) -> dict:
  """A technology tree, data.json or data.json.xz."""
  opener = lzma.open if path.suffix == ".xz" else open
  with opener(path, "rt") as file:
    return json.load(file)


def main(argv: Sequence[str]) -> None:
  if len(argv) > 1:
    raise app.UsageError(f"unexpected arguments: {argv[1:]}")
  techtree = read_tree(pathlib.Path(_TECHTREE.value))
  actions, units, upgrades, buffs = import_pysc2_tables()
  output = pathlib.Path(_OUTPUT.value)
  functions, aliases = function_rows(actions)
  unit_types = unit_rows(units)
  write_csv(output / "functions.csv",
            ("index", "id", "name", "ability", "type", "category", "on_screen"), functions)
  write_csv(output / "aliases.csv", ("id", "index", "ability"), aliases)
  write_csv(output / "unit_types.csv", ("index", "id", "name", "race"), unit_types)
  write_csv(output / "upgrades.csv", ("index", "id", "name"), id_rows(upgrades.Upgrades))
  write_csv(output / "buffs.csv", ("index", "id", "name"), id_rows(buffs.Buffs))
  write_csv(output / "capabilities.csv", ("function", "unit_types"),
            capability_rows(functions, aliases, unit_types, techtree))
  write_csv(output / "attributes.csv",
            ("index", *ATTRIBUTES, "initial_minerals", "initial_vespene"),
            attribute_rows(unit_types, techtree))


if __name__ == "__main__":
  flags.mark_flag_as_required("techtree")
  app.run(main)
