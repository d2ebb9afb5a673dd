# All the set-up there is: git, python3 with venv, make and a C++ compiler. `make help` lists what can be made.

VENV ?= .venv
PYTHON ?= python3
JOBS ?= 2
DATA ?= data

PY := $(VENV)/bin/python
CMAKE := $(VENV)/bin/cmake
CORE := CMakeLists.txt $(shell find cpp -name '*.cpp' -o -name '*.hpp')
SANITIZED := build/sanitize

# The pins hold for isolated builds too, under the name that each generation of pip knows.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test pytest chromium isa bench bench-quick bench-selection reproduce lint docs examples sanitize \
  publish publish-paper clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## build, install, project a matrix, find the features of a table: a report in demo/
	@$(PY) examples/demo.py

test: lint pytest isa sanitize examples docs ## build, install, run everything that CI runs
	@echo "all passed"

pytest: $(VENV)/.installed chromium ## the tests and the examples in docstrings, under the best instruction set
	@echo "== tests"
	@$(PY) -m pytest -q -n $(JOBS) --doctest-modules tests src/normball

# The report is tested in a browser. Where none is there and none can be installed, these tests skip themselves.
chromium: ## a browser for the tests of the report, by apt-get if there is none
	@command -v chromium > /dev/null || { echo "== chromium" && test "$$(id -u)" = 0 && { \
	    timeout 60 apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 update && \
	    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq install -y --no-install-recommends chromium; \
	  } > /dev/null 2>&1 && command -v chromium > /dev/null; } || \
	  echo "no Chromium, and none could be installed: the browser tests will be skipped"

# What does not depend on the instruction set, or takes long and is run under the best one, is left out. Half precision and
# complex numbers become magnitudes in double precision before any kernel sees them.
ISA_TESTS := not total_order and not active_set and not semismooth_newton and not (large_sizes and not l1inf) \
  and not float16 and not complex

isa: $(VENV)/.installed ## the contract suite under each other instruction set of this machine
	@for isa in $$($(PY) -c "from normball import _core as c; \
	    print(*(set(c.instruction_sets()) - {c.instruction_set()}))"); do \
	  echo "== contract suite under NORMBALL_ISA=$$isa"; \
	  NORMBALL_ISA=$$isa $(PY) -m pytest -q -n $(JOBS) tests/contract -k "$(ISA_TESTS)" \
	    --ignore tests/contract/test_batch.py --ignore tests/contract/test_info.py || exit 1; \
	done

lint: $(VENV)/.installed ## ruff, and mypy strict
	@echo "== lint"
	@$(PY) -m ruff check .
	@$(PY) -m mypy

sanitize: $(VENV)/.tools ## the C++ tests under the address and undefined-behaviour sanitizers
	@echo "== C++ tests under sanitizers"
	@$(CMAKE) -S . -B $(SANITIZED) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV))/bin/ninja \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DNORMBALL_SANITIZE=ON --log-level=WARNING > /dev/null
	@$(CMAKE) --build $(SANITIZED) --parallel $(JOBS) -- --quiet
	@$(VENV)/bin/ctest --test-dir $(SANITIZED) --parallel $(JOBS) --output-on-failure --no-tests=error

examples: $(VENV)/.installed ## the examples in the README and the docs; public names; the picture of the tree
	@echo "== documentation"
	@$(PY) docs/check.py

docs: $(VENV)/.installed examples ## HTML in docs/_build/html; a warning is an error
	@$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.installed ## every method and layout, as ratios to a copy: some 20 minutes on a quiet machine
	@$(PY) -m benchmarks.run --out benchmarks/results

bench-quick: $(VENV)/.installed ## the same in a minute; for checking the benchmark, not for quoting
	@$(PY) -m benchmarks.run --quick --out benchmarks/results

bench-selection: $(VENV)/.installed ## features and accuracy against rivals, real tables in DATA if there: about an hour
	@$(PY) -m pip install -qq lassonet
	@$(PY) -m benchmarks.selection --data $(DATA) --out benchmarks/results
	@$(PY) -m benchmarks.selection.speed
	@$(PY) -m benchmarks.selection.simulated

reproduce: $(VENV)/.installed ## the paper's figures and tables anew, in paper/: half an hour on two quiet CPUs
	@$(PY) -m normball reproduce --out paper

publish: $(VENV)/.installed ## put the numbers of the last full benchmark into the README and the docs
	@$(PY) -m benchmarks.publish benchmarks/results/full.jsonl

publish-paper: $(VENV)/.installed ## put the last full reproduction into the README and the docs
	@$(PY) docs/publish_reproduction.py paper

clean: ## remove all that make has made
	rm -rf $(VENV) build dist demo paper docs/_build benchmarks/results .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks docs examples -name __pycache__ -prune -exec rm -rf {} +

# What the build itself needs lives in the environment, not in a fresh one for each build: so that a second build finds
# its tools where the first found them, and compiles only what changed.
$(VENV)/.tools: constraints.txt
	@echo "== environment in $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -qq scikit-build-core nanobind cmake ninja
	@touch $@

# Python sources need no rebuild: the install is editable.
$(VENV)/.installed: $(VENV)/.tools pyproject.toml $(CORE)
	@echo "== build and install"
	@$(PY) -m pip install -qq --no-build-isolation -e ".[dev,docs]"
	@touch $@
