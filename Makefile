# One command per wish.  `make help` lists them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Tests often wait for other processes, so there are two more of them at a time than cores.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 2 )))
# Live brokers have sets of names: with their order fixed, a seed is enough to repeat a random run.
export PYTHONHASHSEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup demo test sweep check bench replay lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with the pinned dependencies

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Godwit needs Python 3.11 or later on the PATH."; exit 1; }
	@echo "==> Making $(VENV) with $$($(PYTHON) --version) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python -q install pip; } \
		|| { echo "Could not make a virtual environment; install Python's venv module."; exit 1; }
	@echo "==> Installing the pinned dependencies (requirements.lock)"
	@$(BIN)/python -m pip -q --disable-pip-version-check install --require-hashes -r requirements.lock
	@$(BIN)/python -m pip -q --disable-pip-version-check install --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## Start brokers, play stock quotes, then emergencies on Spark, and check every delivery
	@$(BIN)/godwit demo
	@$(BIN)/godwit demo emergencies --users 60 --pace 10 --seconds 20

test: $(READY)  ## Run all tests
	@echo "==> Running the tests (a quarter of an hour; random overlays print the seed that replays them)"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

sweep: $(READY)  ## Run all tests with every seed of every sweep (about an hour)
	@GODWIT_SWEEP=all $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(READY)  ## Lint and type-check
	@echo "==> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "==> mypy --strict"
	@$(BIN)/mypy

bench: $(READY)  ## Measure matching, simulator and forwarding, as ratios in one run (about fifteen minutes)
	@$(BIN)/python -m benchmarks

replay: $(READY)  ## Run one random overlay again: make replay SEED=17
	@$(BIN)/godwit replay $(SEED)

lock: $(READY)  ## Resolve the dependencies anew into requirements.lock (needs uv)
	@uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --extra dev --upgrade --custom-compile-command "make lock" \
		-q pyproject.toml -o requirements.lock

clean:  ## Remove .venv and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
