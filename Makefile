# Two commands are enough: `make evolve` runs the main job, `make test` passes the tests.
# Each makes what it needs and is quick when it is there already.
PYTHON ?= python3
VENV ?= .venv
# For a machine with NVIDIA drivers leave TORCH as it is; where pip would fetch CUDA builds that you
# don't want, set PIP_INDEX_URL or PIP_EXTRA_INDEX_URL to PyTorch's CPU index.
TORCH ?= torch==2.13.0
RUN ?= runs/demo
READY = $(VENV)/.ready
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM = false

.PHONY: evolve test check unit docs base clean

evolve: $(READY)
	$(VENV)/bin/bat evolve --run $(RUN) $(SET)

test: check unit docs

check: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

unit: $(READY)
	$(VENV)/bin/pytest

docs: $(READY)
	$(VENV)/bin/mkdocs build --strict --quiet

# Rebuilds the base policy that bat-medimaging ships, by its recipe.
base: $(READY)
	$(VENV)/bin/bat base --domain medimaging --output domains/medimaging/src/bat_medimaging/base

$(READY): pyproject.toml domains/medimaging/pyproject.toml constraints/cpu.txt
	$(PYTHON) -c 'import sys; sys.exit("bat-core needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet $(TORCH)
	$(VENV)/bin/pip install --quiet --constraint constraints/cpu.txt --editable '.[dev,docs,docker]' --editable domains/medimaging --config-settings editable_mode=compat
	touch $(READY)

clean:
	rm -rf $(VENV) build dist site *.egg-info domains/*/*.egg-info
