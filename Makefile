# SPDX-License-Identifier: Apache-2.0
# Needs python3 with venv and pip, g++ and make; everything else is installed into .venv.
#   make PYTHON=python3.12 test    another interpreter (after `make clean`)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := examples/go2_payload_3kg

export PATH := $(CURDIR)/$(BIN):$(PATH)
started := $(shell date +%s)
took = echo "$@: took $$(( $$(date +%s) - $(started) )) s"

# What the installed package is made of.
sources := $(shell find cpp msg prime_ros config launch cmake scripts -type f \
             -not -name '*.py[co]' -not -name '*.so' 2>/dev/null) CMakeLists.txt package.xml setup.py LICENSE

.PHONY: help demo demo-live test lint docs colcon clean
.DELETE_ON_ERROR:

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*##/make \1\t/' | expand -t 16

demo: $(VENV)/.installed  ## Set up .venv and estimate the payload on the back of a Go2 from a bundled recording
	$(BIN)/prime solve $(DEMO) --robot go2 --out results/demo
	@$(took)

demo-live: $(VENV)/.installed $(VENV)/.tools  ## Set up .venv and find a payload live: simulator and mhe_node on real DDS, 30 s
	$(BIN)/python examples/demo_live.py
	@$(took)

test: lint $(VENV)/.docs-tools  ## Set up .venv, then run linters, type checker and tests
	$(BIN)/pytest
	@$(took)

lint: $(VENV)/.installed $(VENV)/.tools  ## Check style, types and formatting only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	find cpp -name '*.[ch]pp' -exec $(BIN)/clang-format --dry-run -Werror {} +

docs: $(VENV)/.installed $(VENV)/.docs-tools  ## Build the documentation in build/docs
	$(BIN)/python -m sphinx -W --keep-going --quiet docs build/docs
	@echo build/docs/index.html

colcon: $(VENV)/.build-tools  ## Build with colcon in build/colcon and import the result
	$(PIP) install -c constraints.txt colcon-common-extensions
	colcon --log-base build/colcon/log build --base-paths . --packages-select prime_ros --merge-install \
	  --build-base build/colcon/build --install-base build/colcon/install \
	  --cmake-args -G Ninja -DPython3_EXECUTABLE=$(CURDIR)/$(BIN)/python
	cd build/colcon && . ./install/local_setup.sh && python -c \
	  'import prime_ros._core, prime_ros.msg; print(prime_ros._core.__file__, prime_ros.msg.__file__, sep="\n")'
	@$(took)

clean:  ## Remove .venv, build folders and results
	rm -rf $(VENV) build results .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Lists of pyproject.toml, as pip reads them: the build requirements, and the extras `test` and `docs`.
define read_pyproject
import sys
from importlib import import_module
toml = import_module("tomllib" if sys.version_info >= (3, 11) else "pip._vendor.tomli")
with open("pyproject.toml", "rb") as file:
    project = toml.load(file)
lists = {"build": project["build-system"]["requires"], **project["project"]["optional-dependencies"]}
print(*lists[sys.argv[1]], sep="\n")
endef
export read_pyproject

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build-tools: $(VENV)/.created pyproject.toml constraints.txt
	$(BIN)/python -c "$$read_pyproject" build > $(VENV)/build-requirements.txt
	$(PIP) install -c constraints.txt -r $(VENV)/build-requirements.txt
	@touch $@

$(VENV)/.tools: $(VENV)/.created pyproject.toml constraints.txt
	$(BIN)/python -c "$$read_pyproject" test > $(VENV)/test-requirements.txt
	$(PIP) install -c constraints.txt -r $(VENV)/test-requirements.txt
	@touch $@

$(VENV)/.docs-tools: $(VENV)/.created pyproject.toml constraints.txt
	$(BIN)/python -c "$$read_pyproject" docs > $(VENV)/docs-requirements.txt
	$(PIP) install -c constraints.txt -r $(VENV)/docs-requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.build-tools $(sources)
	$(PIP) install -c constraints.txt --no-build-isolation .
	@touch $@
