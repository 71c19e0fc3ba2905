# Every target sets up what it needs; on a fresh machine the first one takes a few minutes.
#
#   make train ARGS="--config.seconds=300"   trains an agent on this machine and writes a report
#   make league                       runs a league of main agents and exploiters on this machine
#   make test                         the whole test suite, then the agent and losses on the newest JAX
#   make lint                         ruff and mypy

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The whole stack needs CPython 3.11: Reverb has no wheels for a later one.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
NEWEST := .venv-newest
ARGS ?=
# With this variable set, Python keeps no compiled modules: each start of a process takes 8 s longer.
unexport PYTHONDONTWRITEBYTECODE
# Processes that share the suite, a file at a time, long files not left for the end.
JOBS ?= 2
SHARE := --dist loadfile --no-loadscope-reorder

# What must run on any JAX of setup.py's range: the agent and the losses.
NEWEST_TESTS := tests/agent tests/learner/losses

.PHONY: help setup train league test test-fast test-full test-newest lint lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.stamp  ## install everything into .venv

train: $(VENV)/.stamp  ## train an agent on this machine; ARGS="--help" tells the options
	$(VENV)/bin/python -m starleague.experiments.train $(ARGS)

league: $(VENV)/.stamp  ## run a league on this machine; ARGS="--help" tells the options
	$(VENV)/bin/python -m starleague.experiments.league --run league $(ARGS)

test: test-full test-newest  ## the whole suite, then agent and losses on the newest JAX

test-fast: $(VENV)/.stamp  ## the suite without its slow tests
	$(VENV)/bin/python -m pytest -q -m "not slow" -n $(JOBS) $(SHARE) $(ARGS)

test-full: $(VENV)/.stamp  ## the whole suite, slow tests included
	$(VENV)/bin/python -m pytest -q --durations=15 -n $(JOBS) $(SHARE) $(ARGS)

test-newest: $(NEWEST)/.stamp  ## agent and losses, on the newest JAX that setup.py allows
	@$(NEWEST)/bin/python -c 'import jax, numpy; print("jax", jax.__version__, "numpy", numpy.__version__)'
	$(NEWEST)/bin/python -m pytest -q -p no:cacheprovider -n $(JOBS) $(SHARE) $(NEWEST_TESTS)

lint: $(VENV)/.stamp  ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

lock:  ## compile requirements.txt from requirements/ (needs uv)
	uv pip compile --quiet --no-header --no-annotate --python 3.11 \
	  --override requirements/override.txt requirements/requirements.in \
	  | cat requirements/header.txt - > requirements.txt.new
	mv requirements.txt.new requirements.txt

clean:  ## remove the environments, caches and builds; runs/ stays
	rm -rf $(VENV) $(NEWEST) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
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
	test -x $(NEWEST)/bin/pip || "$(PYTHON)" -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	  --upgrade-strategy eager -e ".[test]"
	touch $@
