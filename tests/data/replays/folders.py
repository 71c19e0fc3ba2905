"""Folders of replays, read to tables."""

from starleague.data.replays import reading, tables, workers

LIMITS = workers.Limits(seconds=60.0, megabytes=500)


def run(folder, out, **more):
  return reading.read(reading.find([folder]), tables.Store(out), 1, LIMITS, **more)
