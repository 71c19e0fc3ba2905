"""XLA's flags in tests: most programs run once or twice, and compiling them takes the time."""

import importlib.metadata

FAST = "--xla_backend_optimization_level=0"
# MLIR fusion emitters take longer to compile (docs/performance.md). A later XLA does not know the
# flag, and aborts.
if tuple(map(int, importlib.metadata.version("jax").split(".")[:2])) < (0, 8):
  FAST += " --xla_cpu_use_fusion_emitters=false"
