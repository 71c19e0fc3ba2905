"""Compilation in tests: most programs run once or twice, and compiling them takes the time."""

import contextlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

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


COMPILED = "/jax/core/compile/backend_compile_duration"  # JAX's name of a program's compilation


@contextlib.contextmanager
def events() -> Iterator[list[str]]:
  """Collects the names of what JAX traces and compiles, in all threads."""
  import jax.monitoring  # not before the flags of JAX are set

  heard: list[str] = []

  def listen(name: str, seconds: float, **kwargs: object) -> None:
    del seconds, kwargs
    if "compile" in name or "trace" in name:
      heard.append(name)

  jax.monitoring.register_event_duration_secs_listener(listen)
  try:
    yield heard
  finally:
    jax.monitoring.clear_event_listeners()


def remove_unread(directory: Path, before: float) -> None:
  """Removes cached programs that were last written and read before a time.

  JAX's own bound on the cache's size (`jax_compilation_cache_max_size`) lists the whole directory
  under a lock for each program that it adds.

  Args:
    directory: a compilation cache of JAX.
    before: in seconds since the epoch.
  """
  for path in directory.glob("*-cache"):
    with contextlib.suppress(FileNotFoundError):  # another process has removed it
      found = path.stat()
      if max(found.st_atime, found.st_mtime) < before:
        path.unlink()
