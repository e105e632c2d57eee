# Each target first sets up its environments (packaging/setup.sh). PYTHON= and PYPY= choose other interpreters. If there are
# environments already, run make clean before.

export PYTHON PYPY DESTDIR PREFIX

.PHONY: help run test test-system lint bench bench-pairs bench-peers chaos attack simulate conformance fuzz man docs install uninstall schema package package-bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: ## parse the Python standard library on a local scheduler and cluster, and print statistics
	@packaging/setup.sh run
	@packaging/within.sh python client_lib/examples/standard_library.py

test: ## ruff, mypy and all tests, under CPython, PyPy and the oldest and newest other CPython of this machine
	@packaging/setup.sh test
	@packaging/within.sh tests/run.sh

test-system: ## test packages and units in a booted systemd, Slurm, Kubernetes' schemas (root; ONLY=slurm: tests with this name)
	@packaging/setup.sh system
	@packaging/within.sh tests/system/run.sh $(if $(ONLY),-k $(ONLY))

lint: ## only ruff (rules and format) and mypy --strict
	@packaging/setup.sh test
	@packaging/within.sh tests/run.sh lint

bench: ## run all benchmarks: a table, and JSON in benchmarks/results/ (ONLY=submit,map: some; QUICK=1: small)
	@packaging/setup.sh bench
	@packaging/within.sh python -m benchmarks.run $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

bench-pairs: ## the same work in turn on the checkout BEFORE and on this one (ONLY=submit,map ROUNDS=20)
	@packaging/setup.sh bench
	@packaging/within.sh python -m benchmarks.pairs "$(BEFORE)" . $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-peers: ## compare with dask, Ray, ipyparallel, opengris-scaler, HyperQueue, loky and the standard library's pools (ROWS=submit,map SYSTEMS=scaler,dask: some; QUICK=1: small)
	@packaging/setup.sh peers
	@packaging/within.sh python -m benchmarks.compared.run $(if $(SYSTEMS),--systems $(SYSTEMS)) $(if $(ROWS),--rows $(ROWS)) $(if $(QUICK),--quick)

chaos: ## load real clusters while processes and the network fail (SECONDS=60 SEED=)
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.chaos.run --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

attack: ## run attackers with each kind of key, or none, beside loaded honest clients (SECONDS=60 SEED= KEYS=none, client, worker or monitor)
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.chaos.attack --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(if $(KEYS),--keys $(KEYS))

simulate: ## run the simulation: SEEDS=1000 (FIRST=0: the first) with their figures, or one SEED=7 with its events
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.simulation.run $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)))

fuzz: ## fuzz the decoders, the core and the client's API, guided by coverage (SECONDS=600 TARGET=all or one of tests/fuzz/targets.py)
	@packaging/setup.sh fuzz
	@packaging/within.sh python -m tests.fuzz.run --seconds $(or $(SECONDS),600) --target $(or $(TARGET),all)

conformance: ## check a worker or client that connects to ADDRESS=tcp://..., or a scheduler at SCHEDULER=tcp://..., against PROTOCOL.md (KEYS=)
	@packaging/setup.sh run
	@packaging/within.sh python -m tests.conformance.run $(if $(ADDRESS),--address $(ADDRESS)) \
		$(if $(SCHEDULER),--scheduler $(SCHEDULER)) $(if $(KEYS),--keys '$(KEYS)') $(if $(CALL),--call '$(CALL)') $(if $(SLOW),--slow '$(SLOW)')

man: ## write man pages, completions for bash and zsh, default configurations into packaging/build/
	@packaging/setup.sh documents
	@packaging/within.sh python packaging/documents packaging/build

docs: ## build the documents as a site with search and API reference in packaging/build/site/ (strict: a broken link fails)
	@packaging/setup.sh docs
	@packaging/site/build.sh packaging/build/site

install: man ## install commands, systemd units, man pages, completions and configuration (DESTDIR= PREFIX=/usr/local)
	@packaging/install.sh install

uninstall: ## remove the installed files except changed configurations (with the same DESTDIR and PREFIX)
	@packaging/install.sh uninstall

schema: ## generate the scheduler's module from the schema (needs Debian's capnproto)
	@packaging/setup.sh run
	@packaging/within.sh packaging/generate_schema.sh

package: ## build the files for operators into packaging/dist/ (PARTS="one_file deb": some; packaging/README.md)
	@packaging/setup.sh package
	@packaging/package.sh $(PARTS)

package-bench: ## measure size, start and speed of the files of make package: a table in packaging/README.md
	@packaging/setup.sh package
	@packaging/within.sh python -m benchmarks.package_bench $(if $(QUICK),--quick)

clean: ## remove the environments and all files that tools have made
	rm -rf .venv .venv-* .system-roots .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf packaging/build packaging/dist tests/interop/cpp/build
	rm -rf scheduler_daemon/build client_lib/build worker_lib/build scheduler_daemon/dist client_lib/dist worker_lib/dist
	find . -path ./.git -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -type d -prune -exec rm -rf {} +
