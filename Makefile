# Every target sets up what it needs; on a fresh machine the first one takes a few minutes.
#
#   make train ARGS="--config.seconds=300"   trains an agent on this machine and writes a report
#   make league                       runs a league of main agents and exploiters on this machine
#   make test                         the test suite
#   make lint                         ruff and mypy

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The whole stack needs CPython 3.11: Reverb has no wheels for a later one.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
NEWEST := .venv-newest
DOCS := .venv-docs
# Everything else runs on later ones too: the newest that starts, on the path or among pyenv's.
NEWEST_PYTHON ?= $(shell for version in 3.13 3.12; do \
  for python in python$$version "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
    "$$python" -c 'import ensurepip, sys, venv; print(sys.executable)' 2>/dev/null && exit; \
  done; done; echo "$(PYTHON)")
ARGS ?=
# With this variable set, Python keeps no compiled modules: each start of a process takes 8 s longer.
unexport PYTHONDONTWRITEBYTECODE
# Processes that share the suite. tests/conftest.py says which files stay together and which come first.
JOBS ?= 2
SHARE := --dist loadfile --no-loadscope-reorder

# What must run on any Python and JAX of setup.py's ranges: the agent, the losses, and whatever
# needs no Reverb.
NEWEST_TESTS := tests/agent tests/learner/losses tests/test_portable.py

.PHONY: help setup train league offline-data test test-fast test-all test-newest lint docs notebooks lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.stamp  ## install everything into .venv

train: $(VENV)/.stamp  ## train an agent on this machine; ARGS="--help" tells the options
	$(VENV)/bin/python -m starleague.experiments.train $(ARGS)

league: $(VENV)/.stamp  ## run a league on this machine; ARGS="--help" tells the options
	$(VENV)/bin/python -m starleague.experiments.league --run league $(ARGS)

# Name and games of each dataset.
OFFLINE := s:241 m:722 l:2165

offline-data: $(VENV)/.stamp  ## record the datasets of docs/offline.md into runs/offline_data
	for size in $(OFFLINE); do $(VENV)/bin/python -m starleague.experiments.demonstrate \
	  --dataset runs/offline_data/$${size%:*} --games $${size#*:} || exit; done

test-fast: $(VENV)/.stamp  ## the suite without its slow tests
	$(VENV)/bin/python -m pytest -q -rs -m "not slow" -n $(JOBS) $(SHARE) $(ARGS)

test: $(VENV)/.stamp  ## the suite, slow tests included
	$(VENV)/bin/python -m pytest -q -rs -m "not nightly" --durations=40 -n $(JOBS) $(SHARE) $(ARGS)

test-all: $(VENV)/.stamp  ## the suite and the longest runs
	$(VENV)/bin/python -m pytest -q -rs --durations=40 -n $(JOBS) $(SHARE) $(ARGS)

test-newest: $(NEWEST)/.stamp  ## what needs no Reverb, on the newest Python here and the newest JAX
	@$(NEWEST)/bin/python -c 'import sys, jax, numpy; print("python", sys.version.split()[0], \
	  "jax", jax.__version__, "numpy", numpy.__version__)'
	$(NEWEST)/bin/python -m pytest -q -rs -p no:cacheprovider -m "not slow" -n $(JOBS) $(SHARE) $(NEWEST_TESTS)

lint: $(VENV)/.stamp  ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

docs: $(DOCS)/.stamp  ## build the documentation's site from docs/ and docstrings into site/
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet $(ARGS)

notebooks: $(VENV)/.stamp  ## run the notebooks of docs/notebooks, the league of ten minutes as the last
	for notebook in losses weights dataset league; do \
	  (time $(VENV)/bin/python docs/notebooks/$$notebook.py) || exit; done

lock:  ## compile requirements.txt and requirements/docs.txt from requirements/ (needs uv)
	uv pip compile --quiet --no-header --no-annotate --python 3.11 \
	  --override requirements/override.txt requirements/requirements.in \
	  | cat requirements/header.txt - > requirements.txt.new
	mv requirements.txt.new requirements.txt
	uv pip compile --quiet --no-header --no-annotate --python 3.11 requirements/docs.in \
	  -o requirements/docs.txt

clean:  ## remove the environments, caches and builds; runs/ stays
	rm -rf $(VENV) $(NEWEST) $(DOCS) site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path "./runs/*" -prune -exec rm -rf {} +

# What processes of runs and tests import.
IMPORTED := chex, dash, haiku, optax, orbax.checkpoint, plotly.graph_objects, pyarrow.parquet, pytest, ray, \
  scipy.optimize, tensorboardX

# A stamp is the last thing written, so that an interrupted install is done again. pyproject.toml and
# setup.py count: the editable install reads them. Imports compile the few modules that are used: to
# compile all of them takes pip a minute.
$(VENV)/.stamp: requirements.txt setup.py pyproject.toml
	@"$(PYTHON)" -c 'import sys; v = "%d.%d" % sys.version_info[:2]; \
	  v == "3.11" or sys.exit("Starleague needs CPython 3.11 (Reverb has no later wheels); $(PYTHON) is " + v \
	  + ". Install it, or name it: make PYTHON=/path/to/python3.11")'
	test -x $(VENV)/bin/pip || "$(PYTHON)" -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r requirements.txt -e .
	$(VENV)/bin/python -m compileall -q starleague/*/
	$(VENV)/bin/python -c 'from starleague.data.reverb import transport; transport.load_reverb(); import $(IMPORTED)'
	touch $@

$(NEWEST)/.stamp: setup.py pyproject.toml
	python="$(NEWEST_PYTHON)"; [[ "$$($(NEWEST)/bin/python -V 2>&1)" == "$$("$$python" -V)" ]] \
	  || "$$python" -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	  --upgrade-strategy eager -e ".[test,games,replays]"
	touch $@

$(DOCS)/.stamp: requirements/docs.txt
	test -x $(DOCS)/bin/pip || "$(PYTHON)" -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	touch $@
