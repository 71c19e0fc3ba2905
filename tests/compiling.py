"""XLA's flags in tests: most programs run once or twice, and compiling them takes the time."""

import importlib.metadata

# A later XLA need not know the flags of an earlier one, and aborts on unknown ones.
_KNOWS_FLAGS = tuple(map(int, importlib.metadata.version("jax").split(".")[:2])) < (0, 8)
# LLVM compiles a program as one module: 32 modules, the default, take a sixth more processor time
# without optimisations, and another process uses the other core.
ONE_MODULE = "--xla_cpu_parallel_codegen_split_count=1" if _KNOWS_FLAGS else ""


def level(optimisation: int) -> str:
  """Returns the flags of a level of optimisation, 0 to 3."""
  return f"--xla_backend_optimization_level={optimisation} {ONE_MODULE}".strip()


FAST = level(0)
# MLIR fusion emitters take longer to compile (docs/performance.md).
if _KNOWS_FLAGS:
  FAST += " --xla_cpu_use_fusion_emitters=false"
