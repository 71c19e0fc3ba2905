"""Local Ray clusters for tests, also on a loaded machine."""

import time

import pytest

ATTEMPTS = 6
# Workers may start slowly, and are as important as the tests.
PATIENT = {"RAY_worker_register_timeout_seconds": "1200", "RAY_worker_niceness": "0"}


def start_cluster(head: dict, *others: dict):
  """Starts a cluster; returns its ray.cluster_utils.Cluster. Arguments are those of its nodes.

  Ray gives a node 30 s to start, which a loaded machine exceeds at times: it is tried again.
  """
  cluster_utils = pytest.importorskip("ray.cluster_utils")
  for attempt in range(ATTEMPTS):
    made = cluster_utils.Cluster()
    try:
      for node in (head, *others):
        made.add_node(**{**node, "env_vars": {**node.get("env_vars", {}), **PATIENT}})
      return made
    except (Exception, SystemExit):  # Ray ends the process where its head does not start
      made.shutdown()
      if attempt == ATTEMPTS - 1:
        raise
      time.sleep(5)
