# Works on a machine with Python >= 3.11 and make alone. "make PYTHON=python3.12 test" chooses another Python.
# The second time is quick: the environment is set up again only when pyproject.toml or constraints.txt changed.

PYTHON ?= python3
VENV ?= .venv
EVERY ?= 8
BIN := $(VENV)/bin
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip install --quiet

.PHONY: help quickstart test lint docs bench wheels gpu faults mutate clean

help:
	@echo "make quickstart   set up .venv and run the main job on the data that comes with it (three minutes after the installation)"
	@echo "make test         set up .venv, then check style, types and behaviour"
	@echo "make lint         style and types alone"
	@echo "make docs         the documentation site, into site/; a warning is an error"
	@echo "make faults       kill, damage and mislead every command, and print what came of it (every 8th trial; EVERY=1: all, hours)"
	@echo "make mutate       change the code in small ways, and print which changes no test sees"
	@echo "make bench        the speed claims, one JSON object a line"
	@echo "make wheels       what a borrowed GPU machine may lack, into build/wheels"
	@echo "make gpu          the measurements of a borrowed GPU, in 12 minutes; GPU=--rehearse: on the CPU"
	@echo "make clean        remove caches and build products; .venv and your runs stay"

quickstart: $(VENV)/.quickstart-installed
	$(BIN)/sememekit quickstart
	@echo "to type these commands in this shell: . $(VENV)/bin/activate"

test: lint docs
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Without --quiet, which makes mkdocs blind to warnings. What its theme says of its future is no warning of ours.
docs: $(VENV)/.dev-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.dev-installed
	@set -e; for script in $$(ls benchmarks/*.py | grep -v -e measuring.py -e gpu -e latency -e int8 -e perplexity_speed); do $(BIN)/python "$$script"; done

# GPU_PYTHON is the Python of the borrowed machine; PACKAGES is what it has not, without torch.
GPU_PYTHON ?= 3.12
PACKAGES ?= pydantic
wheels:
	$(PYTHON) -m pip download --quiet --constraint constraints.txt --only-binary=:all: --python-version $(GPU_PYTHON) \
		--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --dest build/wheels $(PACKAGES)

gpu:
	if [ -d build/wheels ]; then $(PYTHON) -m pip install --quiet --no-index --no-deps --upgrade --target build/gpu build/wheels/*.whl; fi
	PYTHONPATH=build/gpu $(PYTHON) benchmarks/gpu.py $(GPU)

faults: $(VENV)/.dev-installed
	$(BIN)/python -m tests.faults --every $(EVERY)

mutate: $(VENV)/.dev-installed
	$(BIN)/python -m tests.mutate

clean:
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find sememekit tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; choose another: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.quickstart-installed: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) --editable ".[quickstart,serve]"
	@touch $@

$(VENV)/.dev-installed: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) --editable ".[dev,docs,track]"
	@touch $@
