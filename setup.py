"""Packages the rooms under the name `starleague`.

`starleague/` holds links to the rooms, so that the source tree, an editable install and a wheel
all import alike. Dependencies are ranges here; `requirements.txt` is the lock of a whole machine.
"""

import pathlib
import re

from setuptools import find_packages, setup

ROOT = pathlib.Path(__file__).parent
REPOSITORY = "https://github.com/starleague/starleague"
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "starleague" / "__init__.py").read_text(),
                    re.MULTILINE)[1]

# The agent and the losses run on any JAX in this range, with numpy 1.26 or 2.
CORE = [
  "absl-py>=2.1",
  "chex>=0.1.91",
  "dm-env>=1.6",
  "dm-haiku>=0.0.16",
  "dm-tree>=0.1.9",
  "grpcio>=1.62",
  "jax>=0.7.1,<0.13",
  "ml-collections>=1.0",
  "msgspec>=0.19",
  "numpy>=1.26.4",
  "optax>=0.2.5",
  "orbax-checkpoint>=0.11.20",
  "plotly>=6.0",
  "portpicker>=1.6",
  "rich>=13.7",
  "scipy>=1.11",
  "tensorboardX>=2.6.2",
]

EXTRAS = {
  # Reverb 0.14.0 loads into TensorFlow 2.15 only, and that declares older ml-dtypes and protobuf
  # than JAX wants though it runs with JAX's. pip finds no solution for this extra: it documents the
  # versions, which requirements.txt installs with --no-deps.
  "data": ["dm-reverb==0.14.0", "tensorflow-cpu==2.15.1", "pyarrow>=20.0,<26", "numpy<2",
           "chex<0.1.92"],
  # Datasets of games, and learning from them, on any Python and without TensorFlow.
  "games": ["pyarrow>=20.0"],
  "replays": ["pyarrow>=20.0", "s2protocol>=5.0.17"],
  # pip installs pys2clientprotocol after the s2clientprotocol that pysc2 declares, and so over it.
  # pysc2's later commits, never released, cannot start the game.
  # flatbuffers is JAX's format of exported programs, which the server keeps.
  "sc2": ["flatbuffers>=24.3.25", "pysc2==4.0.0", "pys2clientprotocol>=1.0.2",
          "websockets>=14.0"],
  # Environments of the companion systems; flax and pandas stop where JAX 0.7.1 and numpy 1.26 do.
  "companions": ["ale-py>=0.12", "bsuite>=0.3.6", "flax<0.12.1", "jaxmarl>=0.2", "pandas<3",
                 "pgx>=2.6", "popgym>=1.0.7", "xminigrid>=0.9.3"],
  "adapters": ["gymnasium>=1.0", "pettingzoo>=1.25"],  # Skirmish for other libraries
  "gif": ["pillow>=10.1"],
  "dashboard": ["dash>=4.0"],
  "launch": ["ray>=2.50"],
  "wandb": ["wandb>=0.19"],
  "test": ["hypothesis>=6.100", "pytest>=8.3", "pytest-xdist>=3.6", "rlax>=0.1.8"],
  "dev": ["hypothesis>=6.100", "mypy>=1.15", "pytest>=8.3", "pytest-xdist>=3.6", "rlax>=0.1.8",
          "ruff>=0.12"],
}


def long_description() -> str:
  """Returns the README, with links that work outside the repository."""
  text = (ROOT / "README.md").read_text(encoding="utf-8")
  text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{REPOSITORY}/raw/main/", text)
  return re.sub(r"((?<!!)\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{REPOSITORY}/blob/main/", text)


setup(
  name="starleague",
  version=VERSION,
  description="AlphaStar as open JAX software: agent, learner, actors, league, and an embedded RTS",
  long_description=long_description(),
  long_description_content_type="text/markdown",
  author="The Starleague authors",
  url=REPOSITORY,
  project_urls={
    "Documentation": f"{REPOSITORY}/tree/main/docs",
    "Changes": f"{REPOSITORY}/blob/main/CHANGELOG.md",
    "Source": REPOSITORY,
    "Issues": f"{REPOSITORY}/issues",
  },
  license_expression="Apache-2.0",
  license_files=["LICENSE"],
  python_requires=">=3.11",
  packages=find_packages(include=["starleague", "starleague.*"]),
  package_data={"": ["*.css", "*.csv", "*.html", "*.js", "*.json", "data/*", "py.typed"]},
  install_requires=CORE,
  extras_require=EXTRAS,
  classifiers=[
    "Development Status :: 3 - Alpha",
    "Intended Audience :: Science/Research",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3.11",
    "Programming Language :: Python :: 3.12",
    "Programming Language :: Python :: 3.13",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
  ],
)
