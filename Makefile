# The project's commands. `make` alone lists them; each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOPO := $(BIN)/python -m topo
READY := $(VENV)/.ready
LOCK := requirements-dev.lock

# For `make bench`: the source tree of the installed libsimgrid, and its times stand beside ours
# (apt-get install libsimgrid-dev python3-simgrid g++, then apt-get source simgrid).
SIMGRID_SOURCE ?=

# Which pictures `make demo` and `make renders` write, and how: one place.
DEMO := gds-textbook
RENDERS := renders
MACHINES := $(basename $(notdir $(wildcard topologies/*.yaml)))
DRAW = $(TOPO) draw $(1) -o $(RENDERS)/$(1).svg && $(TOPO) draw $(1) -o $(RENDERS)/$(1).png

# Test processes: one a core, up to eight (more wait for each other's start than they save).
JOBS ?= auto

# Tests draw the same random examples on every run; `make test HYPOTHESIS_PROFILE=thorough` looks further.
export HYPOTHESIS_PROFILE ?= ci

# Many containers set it, and each of the commands that tests start would compile all of topo anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock setup-browser demo test lint format bench renders site clean

help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '%-16s %s\n' "$$name" "$$what"; done

setup: $(READY)  ## make .venv and install topo there (again only when pyproject.toml or the lock changed)

$(READY): pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(LOCK) $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable '.[dev]'
	-$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib  # on every core, which pip cannot
	@touch $(READY)

lock:  ## write the newest versions that fit into requirements-dev.lock, for `make test` to try
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	(sed -n '/^#/p' $(LOCK); $(BIN)/python -m pip freeze --exclude-editable) > $(LOCK).new
	mv $(LOCK).new $(LOCK)
	@touch $(READY)

setup-browser:  ## install Debian's Chromium and (by npm, if it is there) axe-core and mermaid: views are tested in them
	apt-get install --yes --no-install-recommends chromium fonts-liberation
	-npm install --silent --no-save --prefix $(VENV)/axe axe-core@4
	-npm install --silent --no-save --prefix $(VENV)/mermaid mermaid@11 jsdom@26

demo: setup  ## compare the legacy path with the direct one on the textbook server, and draw it
	$(TOPO) compare $(DEMO)
	@mkdir -p $(RENDERS)
	$(call DRAW,$(DEMO))

test: lint  ## lint, types and every test
	$(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses 8 --dist worksteal

lint: setup  ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let the formatter write
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## time the commands against their budgets, a cluster, the solvers beside SimGrid, the page, a sweep
	$(BIN)/python bench/cold_start.py
	$(BIN)/python -m bench.cluster --time
	$(BIN)/python -m bench.large_cluster
	$(BIN)/python -m bench.solve_families --linear --sizes 1000,10000 $(if $(SIMGRID_SOURCE),--simgrid-source $(SIMGRID_SOURCE))
	$(BIN)/python -m bench.solve_families --sizes 100000 $(if $(SIMGRID_SOURCE),--simgrid-source $(SIMGRID_SOURCE))
	$(BIN)/python -m bench.solve_completions
	$(BIN)/python -m bench.report_page
	$(BIN)/python -m bench.sweep

renders: setup  ## draw every machine of topologies/ anew, its report and the gallery of all
	@mkdir -p $(RENDERS)
	@set -e; $(foreach machine,$(MACHINES),echo $(RENDERS)/$(machine).svg; $(call DRAW,$(machine));)
	$(BIN)/python -m docs.gallery $(RENDERS)

site: setup  ## the documents as a site in site/, with the gallery and its reports
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m docs.gallery site/renders

clean:  ## remove everything that can be made again
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
