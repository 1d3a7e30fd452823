# One command each; every target makes .venv and installs what it needs when that is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
OPTIONS ?=
# Tests of real processes that run at once: most of the time each of them waits.
TESTERS ?= 4
# Tests that compute and run at once: a core each.
CORES ?= 2
# Which sixteenth of the tests that are drawn runs (tests/conftest.py): another one with each commit. `make DRAW= test` runs all.
DRAW ?= $(or $(shell git rev-parse --short=8 HEAD 2>/dev/null),$(shell date +%F))
DRAWN = $(if $(DRAW),--draw $(DRAW))
PEERS ?= duckdb,polars,spark,bytewax,pyflink,flink,pathway
# The tests start hundreds of processes: without bytecode that is kept, each would compile the whole package again.
export PYTHONDONTWRITEBYTECODE =
# The slowest are named at the end, so that what makes the check long can be read from any run of it.
PYTEST := $(BIN)/python -m pytest -q --durations=25 --durations-min=3
# Several targets at once; what each prints comes in one piece.
AT_ONCE := $(MAKE) --no-print-directory --output-sync=target

.PHONY: demo test slow small unit computing processes check failover bench clean lint types wheel

demo: $(READY)
	$(BIN)/understudy demo $(OPTIONS)

# One process collects, and forks the testers of both kinds: tests/testers.py. With AGAIN=1, as CI has it, tests of
# processes that failed run once more, by themselves: docs/decisions/0061-a-test-of-processes-has-a-second-try.md.
test: $(READY)
	$(PYTEST) --testers $(TESTERS) --cores $(CORES) -m "not slow" $(DRAWN) || { \
	  [ $$? = 1 ] && [ -n "$(AGAIN)" ] && echo "These failed beside the others, and run again by themselves:" && \
	  $(PYTEST) --kind processes -m "not slow" $(DRAWN) --second-try; }

# What takes long, and each property with ten times as many examples.
slow: $(READY)
	$(PYTEST) -m "slow or drawn"
	$(PYTEST) --cores $(CORES) --kind computing -m "not slow" --hypothesis-profile=deep \
	  tests/actors tests/messages tests/state tests/contracts

# The library in small pieces, so that few keys cross the seam between two chunks: tests/small_pieces.py. `make test` runs
# a part of it: tests/test_small_pieces.py.
small: $(READY)
	UNDERSTUDY_SMALL_PIECES=1 $(PYTEST) --cores $(CORES) --kind computing -m "not slow" \
	  tests/actors tests/state tests/runtime/savepoints
	$(BIN)/python -m tests.small_pieces simulate --seeds 200

# Parts by themselves: the quick round while one writes.
unit: $(READY)
	$(PYTEST) --cores $(CORES) --kind unit -m "not slow" $(DRAWN)

# Those of `unit`, and whole jobs in the simulator.
computing: $(READY)
	$(PYTEST) --cores $(CORES) --kind computing -m "not slow" $(DRAWN)

processes: $(READY)
	$(PYTEST) --testers $(TESTERS) --kind processes -m "not slow" $(DRAWN)

# The tests wait for processes most of the time: the rest fits in between.
check: $(READY)
	$(AT_ONCE) -j4 types lint wheel test

# Kills the leader of a cluster again and again while its job runs: docs/high-availability.md.
TAKEOVERS ?= 50
failover: $(READY)
	$(BIN)/python -m understudy.runtime.chaos.failover --takeovers $(TAKEOVERS) $(OPTIONS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

wheel: $(READY)
	$(BIN)/python tests/check_wheel.py

bench: $(READY)
	mkdir -p build
	$(BIN)/python -m benchmarks keyed-aggregate --runs 5 --peers "$(PEERS)" --json build/bench-keyed-aggregate.json
	$(BIN)/python -m benchmarks stateful-function --runs 5 --peers "$(PEERS)" --json build/bench-stateful-function.json
	for shape in tumbling sliding session; do \
	  $(BIN)/python -m benchmarks windows --shape $$shape --runs 3 --peers "$(PEERS)" --json build/bench-windows-$$shape.json || exit 1; done
	$(BIN)/python -m benchmarks timers --compiled --runs 3 --peers "$(PEERS)" --json build/bench-timers.json
	$(BIN)/python -m benchmarks async --runs 3 --kills 20 --peers "$(PEERS)" --json build/bench-async.json
	$(BIN)/python -m benchmarks latency --json build/bench-latency.json
	$(BIN)/python -m benchmarks checkpoint --runs 3 --json build/bench-checkpoint.json
	$(BIN)/python -m benchmarks growth --runs 3 --json build/bench-growth.json
	$(BIN)/python -m benchmarks first-output --runs 5 --json build/bench-first-output.json
	$(BIN)/python -m benchmarks recovery --keys 1000,200000,2000000 --json build/bench-recovery.json
	$(BIN)/python -m benchmarks nexmark --runs 3 --kills 3 --latency-seconds 60 --peers "$(PEERS)" --json build/bench-nexmark.json
	$(BIN)/python -m benchmarks recovery --cluster spark --keys 1000,200000 --json build/bench-recovery-spark.json

# uv finds, downloads and unpacks what is wanted in a third of pip's time; where it does not reach the index, pip does.
$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Understudy needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e ".[dev]" || $(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
