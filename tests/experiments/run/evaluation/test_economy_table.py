"""Rows and cells of the table of economies."""

import numpy as np

from starleague.experiments.run.evaluation import economy_table


def test_a_cell_has_the_means_of_the_games_that_last():
  """Three games at two times; the second game ends before the second time."""
  found = np.full((3, 2, 6), np.nan, np.float32)
  found[0], found[2] = [[50, 0, 12, 15, 2, 10], [75, 25, 20, 23, 8, 12]], [
    [150, 100, 14, 23, 4, 10], [25, 75, 22, 31, 10, 12]]
  found[1, 0] = [100, 50, 13, 19, 3, 10]
  names, races, results = np.array(["a", "b", "a"]), np.array([1, 1, 1]), np.array([1, -1, 1])
  assert economy_table.lines(found, [60, 120], names, races, results, True)[4:] == [
    "| a | Terran | 2 won | 100 50, 13/19, 10 3 (2) | 50 50, 21/27, 12 9 (2) |",
    "| b | Terran | 1 lost | 100 50, 13/19, 10 3 (1) |  |"]


def test_players_races_and_results_have_rows_of_their_own():
  found = np.zeros((4, 1, 6), np.float32)
  names, races = np.array(["a"] * 4), np.array([3, 2, 2, 2])
  made = economy_table.lines(found, [0], names, races, np.array([0, -1, 1, 1]), True)
  assert [line.split(" | ")[1:3] for line in made[4:]] == [
    ["Zerg", "2 won"], ["Zerg", "1 lost"], ["Protoss", "1 drawn"]]
