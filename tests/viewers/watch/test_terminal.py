"""A recorded game as text."""

import io

import numpy as np
import pytest
from rich.console import Console

from starleague.viewers import catalog
from starleague.viewers.watch import terminal
from tests.viewers.games import KIND, STRUCTURES


def test_terminal_shows_the_map_the_figures_and_the_log(replay, states):
  show = terminal.make_show(replay, states)

  def picture(step, view):
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal.render(show, step, view))
    return console.file.getvalue()

  text = picture(replay.steps, 0)
  assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
  barracks = (states.kind[:, 0, :STRUCTURES] == KIND["Barracks"]).any(axis=1)
  first = f"{catalog.clock(int(np.argmax(barracks)))} Barracks"
  for expected in ("rusher vs builder", "unfinished at 0:53", first, "with Marine", "CC"):
    assert expected in text, expected
  minerals = next(line for line in text.splitlines() if "minerals" in line).split()[-2:]
  assert minerals == [str(value) for value in states.minerals[-1]]
  # At the start neither player sees the other's town hall.
  assert [picture(0, view).count("CC") for view in (0, 1, 2)] == [2, 1, 1]
  assert "░░" in picture(0, 1) and "░░" not in picture(0, 0)


def test_terminal_plays_to_the_end(replay, states):
  console, waited = Console(file=io.StringIO(), width=80, force_terminal=True), []
  terminal.play(replay, states, speed=10.0, console=console, sleep=waited.append)
  assert "unfinished at 0:53" in console.file.getvalue()
  assert 1 < len(waited) <= replay.steps
  assert sum(waited) == pytest.approx(150 * 8 / 22.4 / 10, rel=0.05)
  plain = Console(file=io.StringIO(), width=80)
  terminal.play(replay, states, console=plain, sleep=waited.clear)
  assert waited and plain.file.getvalue().count("rusher vs builder") == 1


def test_names_of_players_are_no_markup(replay, states):
  console = Console(file=io.StringIO(), width=80)
  named = replay._replace(players=("[/x]", "[red]b"), winner=0)
  console.print(terminal.render(terminal.make_show(named, states), replay.steps))
  text = console.file.getvalue()
  assert "[/x] vs [red]b" in text and "[/x] (player 1) won at 0:53" in text
