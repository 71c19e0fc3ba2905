"""Prints the page of an agent, or renews the generated part of one.

  python -m starleague.experiments.describe --preset mini
  python -m starleague.experiments.describe --write docs/agent.md
"""

import pathlib

from absl import flags

from starleague.agent import config as agent_config
from starleague.common import files
from starleague.experiments.run import entry
from starleague.viewers import agent_page

_PRESET = flags.DEFINE_string("preset", "full", "Which agent.")
_WRITE = flags.DEFINE_string(
  "write", None, "A page whose generated part is renewed; without it, the part is printed.")


def main() -> None:
  part = agent_page.page_part(agent_config.preset(_PRESET.value))
  if _WRITE.value is None:
    print(part)
    return
  path = pathlib.Path(_WRITE.value)
  renewed = agent_page.renew(path.read_text(), part)
  with files.replacing(path) as file:
    file.write(renewed)


if __name__ == "__main__":
  entry.run(main)
