# make demo, make test and make lint set themselves up: they need Python 3.11 or later, its venv module, and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: setup demo lint test night

setup: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/python -m jobs.verify

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# On clusters with a job server, an autoscaler, an object store, a tracking server, and under faults: twelve minutes more.
night: $(INSTALLED)
	$(BIN)/python -m pytest tests/jobs/night_*.py

$(INSTALLED): requirements.lock pyproject.toml
	@echo "installing into $(VENV), which takes a few minutes the first time"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@
