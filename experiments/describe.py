"""Prints the generated part of an agent's page, or updates it in a page.

  python -m starleague.experiments.describe --preset mini
  python -m starleague.experiments.describe --write docs/agent.md

Without --preset, the agent is `full`.
"""

import pathlib

from absl import flags

from starleague.agent import config as agent_config
from starleague.common import files
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.viewers import agent_page

flags.declare_key_flag("preset")
_WRITE = flags.DEFINE_string(
  "write", None, "Page to update. Default: the generated part is printed.")


def main() -> None:
  config = agent_config.preset(run_flags.preset("full"))
  if _WRITE.value is None:
    print(agent_page.generated_part(config))
    return
  path = pathlib.Path(_WRITE.value)
  try:
    text = path.read_text(encoding="utf-8")
    agent_page.require_marks(text)
  except ValueError as error:
    raise UserError(f"{path}: {error}") from error
  with files.replacing(path) as file:
    file.write(agent_page.update(text, agent_page.generated_part(config)))


if __name__ == "__main__":
  entry.run(main)
