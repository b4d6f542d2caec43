# Everything runs in .venv, made on first use from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
BENCHMARK ?= all

.PHONY: setup demo test kills lint format bench clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bezoar needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# Figure 1 of the paper: the robust rules fall behind the plain weighted mean on the fan network.
# The last line is the path of the report.
demo: setup
	$(BIN)/bezoar reproduce fig1

test: lint
	$(BIN)/pytest --numprocesses 2 --dist worksteal

# Networks are killed at more random moments than there is time for in the tests, and a worker of a
# cluster is cut off the network, for which it takes root and a machine that is not busy.
kills: setup
	BEZOAR_KILLS=20 $(BIN)/pytest tests/experiments/test_kills.py tests/experiments/test_processes.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# make bench BENCHMARK=fused runs one of them.
bench: setup
	$(BIN)/python -m benchmarks $(BENCHMARK)

clean:
	rm -rf .venv results
