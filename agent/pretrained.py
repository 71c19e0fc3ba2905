"""Trained weights that ship with the agent: `agent/data/PRESET.npz`, and where they come from.

  weights = agent.load_pretrained("mini")
  policy = agent.make_policy(weights.config)
  output = policy.step(weights.params, key, observation, policy.initial_state())

`PRESET.json` is a manifest (see `starleague.common.manifests`): the agent's config, the vocabulary,
the command that trained the weights, their evaluation, and the SHA-256 of the arrays.
`python -m starleague.experiments.generate.pretrained` writes both files.
"""

import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import vocabulary
from starleague.agent.config import AgentConfig
from starleague.agent.initialisation import Params
from starleague.agent.policy import make_policy
from starleague.common import arrays, files, manifests
from starleague.common.errors import UserError

_DATA = pathlib.Path(__file__).resolve().parent / "data"
_SCHEMA = 1
_SEPARATOR = "|"  # of module and parameter in the names of arrays
_TYPES = {"schema": int, "config": dict, "vocabulary": str, "origin": dict}


class PretrainedError(UserError, ValueError):
  """Pretrained weights that are missing, damaged, or of another agent."""


class Score(NamedTuple):
  """An evaluation against one opponent."""

  opponent: str
  score: float  # wins plus half the draws, over games
  low: float  # bounds of the 95% Wilson interval
  high: float


class Origin(NamedTuple):
  """Where weights come from."""

  command: str  # that trained them
  commit: str  # of the code
  date: str  # YYYY-MM-DD
  seed: int
  updates: int  # of reinforcement learning; 0: imitation only
  tier: str  # of Skirmish
  mmr: int  # of the agent, as its observations show it
  games: int  # against each opponent of `scores`, apart from training
  scores: tuple[Score, ...]


class Pretrained(NamedTuple):
  """Trained weights with the agent they belong to."""

  config: AgentConfig  # a preset, with the temperatures of its evaluation
  params: Params  # numpy arrays
  origin: Origin


def names(folder: str | os.PathLike = _DATA) -> tuple[str, ...]:
  """Returns the presets that have pretrained weights, sorted."""
  return tuple(sorted(path.stem for path in pathlib.Path(folder).glob("*.json")))


def load_origin(name: str, folder: str | os.PathLike = _DATA) -> Origin:
  """Returns where a preset's weights come from, without loading them; see `load_pretrained`."""
  return _origin(_path(name, folder), _manifest(name, folder))


def load_pretrained(name: str, folder: str | os.PathLike = _DATA) -> Pretrained:
  """Loads the pretrained weights of a preset.

  Args:
    name: of the preset, one of `names()`.
    folder: of the files.

  Raises:
    PretrainedError: there are none of that name, a file is damaged, a temperature is not above 0,
      the arrays are not the finite parameters of the preset, or belong to another version of the
      agent or the vocabulary.
  """
  path, manifest = _path(name, folder), _manifest(name, folder)
  origin, config = _origin(path, manifest), _config(path, name, manifest)
  try:
    manifests.check_files(path, manifest, others=True)
    found = arrays.read(path.with_suffix(".npz"), _specs(name))
  except (manifests.ManifestError, arrays.ArraysError) as error:
    raise PretrainedError(f"pretrained weights {name!r}: {error}") from error
  params: dict[str, dict[str, np.ndarray]] = {}
  for key, array in found.items():
    module, parameter = key.split(_SEPARATOR)
    params.setdefault(module, {})[parameter] = array
  return Pretrained(config, params, origin)


def save_pretrained(weights: Pretrained, folder: str | os.PathLike = _DATA) -> pathlib.Path:
  """Writes weights and their origin, which replace those of the same preset.

  Args:
    weights: of a preset with any temperatures; `params` are dicts of modules with dicts of float32
      arrays.
    folder: of the files.

  Returns:
    The path of the manifest.
  """
  path = _path(weights.config.name, folder)
  named = {key: np.asarray(array, np.float32) for key, array in _named(weights.params)}
  values = {"schema": _SCHEMA, "config": dataclasses.asdict(weights.config),
            "vocabulary": vocabulary.digest(),
            "origin": weights.origin._asdict() | {
              "scores": [score._asdict() for score in weights.origin.scores]}}
  with files.replacing(path.with_suffix(".npz"), "wb") as file:
    np.savez_compressed(file, **named)
  digest = manifests.file_digest(path.with_suffix(".npz"))
  manifests.replace(path, values, {f"{path.stem}.npz": digest})
  return path


def _named(params: Params) -> Iterator[tuple[str, Any]]:
  """Returns parameters with their names in the file."""
  for module, parameters in params.items():
    for parameter, array in parameters.items():
      yield f"{module}{_SEPARATOR}{parameter}", array


@functools.cache
def _specs(name: str) -> dict[str, arrays.Spec]:
  """Returns what the arrays of a preset's weights must be: the parameters of its policy."""
  policy = make_policy(agent_config.preset(name))
  shapes = jax.eval_shape(policy.init, jax.random.key(0))
  return {key: arrays.Spec(array.dtype, array.shape) for key, array in _named(shapes)}


def _path(name: str, folder: str | os.PathLike) -> pathlib.Path:
  return pathlib.Path(folder) / f"{name}.json"


def _manifest(name: str, folder: str | os.PathLike) -> dict[str, Any]:
  """Returns the manifest of a preset's weights, checked against this version of the agent."""
  if name not in names(folder):
    raise PretrainedError(f"pretrained weights {name!r} do not exist; expected one of "
                          f"{', '.join(names(folder)) or '(none)'}")
  path = _path(name, folder)
  try:
    manifest = manifests.read(path)
    manifests.check_types(path, manifest, _TYPES)
  except manifests.ManifestError as error:
    raise PretrainedError(f"pretrained weights {name!r}: {error}") from error
  found = {"schema": manifest["schema"], "vocabulary": manifest["vocabulary"],
           **agent_config.structure(manifest["config"])}
  expected = {"schema": _SCHEMA, "vocabulary": vocabulary.digest(),
              **agent_config.structure(dataclasses.asdict(agent_config.preset(name)))}
  for key in expected | found:
    if found.get(key) != expected.get(key):
      raise PretrainedError(f"pretrained weights {name!r}: {key}: expected {expected.get(key)}, "
                            f"found {found.get(key)}; they belong to another version.")
  return manifest


def _config(path: pathlib.Path, name: str, manifest: Mapping[str, Any]) -> AgentConfig:
  """Returns the preset with the temperatures that a manifest states."""
  found = {field: manifest["config"].get(field) for field in ("temperature", "delay_temperature")}
  for field, value in found.items():
    if type(value) not in (int, float) or not 0.0 < value < math.inf:
      raise PretrainedError(f"{path}: 'config.{field}': expected a number above 0, found {value!r}")
  return dataclasses.replace(agent_config.preset(name), **found)


def _origin(path: pathlib.Path, manifest: Mapping[str, Any]) -> Origin:
  """Returns the origin that a manifest states."""
  values = manifest["origin"]
  try:
    return Origin(**{**values, "scores": tuple(Score(**score) for score in values["scores"])})
  except (KeyError, TypeError) as error:
    raise PretrainedError(f"{path}: 'origin': expected {', '.join(Origin._fields)}, found "
                          f"{str(values)[:120]}") from error
