# Two commands do everything: `make run` and `make test`. Both set up what they
# need in .venv first, and again only when the lock or pyproject.toml changed.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
SPARK := $(VENV)/share/pointstamp-spark/of
ENGINES := $(VENV)/.bench
WHEELWRIGHTS := $(VENV)/.wheels
SITE := $(VENV)/site
LAYERS := collections communication containers dataflow kernels metrics observability operators progress runtime
SOURCES := setup.py pointstamp/compiled.py $(wildcard $(foreach layer, $(LAYERS), \
	pointstamp/$(layer)/*.py pointstamp/$(layer)/*.pxd pointstamp/$(layer)/*.pyx))

# What `make run` looks for, where, and with how many workers. Without EDGES it
# reads the import graph of the Python installation that it runs on.
PATTERN ?= (a)-[]->(b); (b)-[]->(c); (a)-[]->(c)
EDGES ?=
WORKERS ?= 2
RUN_ARGS ?=

# Where `make pipeline` has its project; a folder that it removes at its end, if not given.
PIPELINE ?=

# Passed to pytest by `make test` and `make soak`. Three processes, which begin with the largest
# groups: the tests that share a Spark session, those of a cluster, those that start a session
# each, those that take long, those that wait for most of their time: at the end they would leave a
# core idle. On two cores, as tests wait at times; more push each other out of the caches, and each
# takes ten seconds to find its tests: five took a third longer for all.
PYTEST_ARGS ?= -n 3 --dist loadgroup

# A test of processes and sockets may fail of the machine: of ten thousand one did in each of three
# runs, another each time. What fails is run once more, three tests of a run at most, and is shown
# with its error at once and at the end. What runs in the second mode is deterministic.
RERUNS := --reruns 1 --max-suite-reruns 3 --rerun-show-tracebacks

# The tests start Python some hundreds of times, and each would compile every module that it
# imports: some images forbid it to keep what it compiled.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run pipeline check collected spark test sources bounds soak bench bench-spark wheels docs docs-setup changelog lock clean

help:
	@echo "make run    find the motifs of a graph on Spark (EDGES=file, PATTERN=..., WORKERS=2)"
	@echo "make pipeline  run a declarative pipeline of Spark (PIPELINE=folder)"
	@echo "make test   run the tests"
	@echo "make check  format, lint, types, layers"
	@echo "make bounds  test the kernels with checks of every index compiled in"
	@echo "make soak   the long random runs"
	@echo "make bench  measure what we claim, beside its peers, and write docs/benchmarks.md (an hour)"
	@echo "make bench-spark  and what Spark takes long for: services, large graphs (half an hour)"
	@echo "make wheels  build the wheels of a release into dist/, for every Python at hand"
	@echo "make docs   build the site of docs/ and the reference into site/"
	@echo "make docs-setup  only set up what builds it, as CI does: the tests then build it strictly"
	@echo "make changelog  write the sentences of changes.d/ into CHANGELOG.md"
	@echo "make setup  only set up .venv, and compile the core where there is a C compiler"
	@echo "make lock   resolve requirements.lock again"
	@echo "make clean  remove what the others made"

setup: $(STAMP) $(COMPILED)

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh $(VENV)
	@rm -rf $(dir $(SPARK))
	@touch $@

# Where there is no C compiler this says so, and everything runs as it is.
$(COMPILED): $(STAMP) $(SOURCES)
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

run: $(STAMP) $(COMPILED) $(SPARK)
	$(if $(EDGES),,$(BIN)/python examples/import_graph.py $(VENV)/imports.csv)
	$(BIN)/pointstamp motifs '$(PATTERN)' $(if $(EDGES),'$(EDGES)',$(VENV)/imports.csv) --on spark --workers $(WORKERS) $(RUN_ARGS)

pipeline: $(STAMP) $(COMPILED)
	$(BIN)/python examples/pipeline/run.py $(PIPELINE)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

# Pytest compiles each file of tests when it is first read, which takes longer than to read it again:
# so that this is not done by several processes at once.
collected: $(STAMP)
	@$(BIN)/python -m pytest --collect-only -q >/dev/null

# What Java would make again for each session, of `make run` as of the tests: Spark's classes in a
# form that it starts with in half the time. Without it, this says why, and all runs as it is.
$(SPARK): $(STAMP) | $(COMPILED)
	@$(BIN)/python -c 'import pointstamp.spark; pointstamp.spark.prepare()' 2>&1 | tail -n 1

spark: $(SPARK)

# Every test once; and where the core is compiled, what exercises it as sources too, unless
# SOURCES_TESTED says that `make sources` has run.
test: $(STAMP) $(COMPILED) $(SPARK)
	$(if $(SOURCES_TESTED),,@$(MAKE) --no-print-directory sources)
	@$(BIN)/python -m pytest $(RERUNS) $(PYTEST_ARGS)

# What exercises the core, as sources (`CORE` in tests/conftest.py says what that is). Nothing of
# it needs Spark. Pytest ends with 5 where PYTEST_ARGS name nothing of it.
sources: $(STAMP) $(COMPILED)
	@if test -f pointstamp/compiled.sha256; then \
		POINTSTAMP_COMPILED=0 HYPOTHESIS_PROFILE=second \
		$(BIN)/python -m pytest -m 'core and not soak' $(PYTEST_ARGS) \
		|| test $$? -eq 5; fi

# Kernels, and what calls them most, with loops that look whether each index is in range; not the
# plain twins, which have none.
bounds: $(STAMP) $(COMPILED)
	@if test -f pointstamp/compiled.sha256; then \
		POINTSTAMP_BOUNDS=1 $(BIN)/python setup.py --quiet build_ext \
		--build-lib build/bounds --build-temp build/bounds_objects && \
		POINTSTAMP_BOUNDS=1 HYPOTHESIS_PROFILE=second \
		$(BIN)/python -m pytest $(PYTEST_ARGS) tests/kernels tests/joins \
		-k 'not plain and not loops_and_twins'; fi

soak: $(STAMP) $(COMPILED)
	@HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m soak $(PYTEST_ARGS)

# The engines beside which we are measured are many and large, so they are not in the lock.
$(ENGINES): $(STAMP) pyproject.toml
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-build-isolation \
		--editable '.[cli,spark,java,bench]'
	@touch $@

bench: $(ENGINES) $(COMPILED)
	$(BIN)/python -m benchmarks

bench-spark: $(ENGINES) $(COMPILED)
	$(BIN)/python -m benchmarks service_latency service_throughput service_loop \
		service_recovery spark_triangles spark_real_graphs

$(WHEELWRIGHTS): $(STAMP) pyproject.toml
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-build-isolation \
		--editable '.[wheels]'
	@touch $@

wheels: $(WHEELWRIGHTS)
	$(BIN)/python scripts/wheels.py

# An environment of its own: the set-up for tests does without it.
$(SITE)/.installed: scripts/site.lock | $(STAMP)
	$(BIN)/uv venv --quiet --no-config --clear --python $(BIN)/python $(SITE)
	@$(BIN)/uv pip install --quiet --no-config --python $(SITE)/bin/python --require-hashes -r $< \
		|| $(BIN)/python -m pip --python $(SITE)/bin/python install -qq --require-hashes -r $<
	@touch $@

# The tests build the site once more where this has been made.
docs-setup: $(SITE)/.installed

# A folder for each version, so that those of releases can stand beside each other.
docs: $(SITE)/.installed
	version=$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' pointstamp/__init__.py) && \
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --site-dir site/$$version && \
	$(SITE)/bin/python scripts/site_versions.py site

changelog:
	@python3 scripts/changelog.py

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --extra cli --extra metrics --extra telemetry --extra kafka --extra sql --extra simulate --extra spark --extra java --extra dev --universal --python-version 3.11 \
		--no-config --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--upgrade --custom-compile-command 'make lock' --output-file requirements.lock
	$(BIN)/uv pip compile scripts/site.in --universal --python-version 3.11 \
		--no-config --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--upgrade --custom-compile-command 'make lock' --output-file scripts/site.lock

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find pointstamp tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find pointstamp -name '*.so' -delete
	rm -f pointstamp/compiled.sha256
