# Each target sets up what it needs first (packaging/setup.sh). PYTHON= and PYPY= name other interpreters for it: after
# make clean, where there are environments already.

export PYTHON PYPY DESTDIR PREFIX

.PHONY: help run test test-system lint bench chaos attack simulate conformance fuzz man docs install uninstall schema package package-bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: ## parse the Python standard library on a local scheduler and cluster, and print what is in it
	@packaging/setup.sh run
	@packaging/within.sh python client_lib/examples/standard_library.py

test: ## ruff, mypy and all tests, under CPython and PyPy and every further CPython of this machine
	@packaging/setup.sh test
	@packaging/within.sh tests/run.sh

test-system: ## the packages and the unit in a booted systemd, Slurm, Kubernetes' schemas (root; ONLY=slurm those named so)
	@packaging/setup.sh system
	@packaging/within.sh tests/system/run.sh $(if $(ONLY),-k $(ONLY))

lint: ## ruff (rules and format) and mypy --strict alone
	@packaging/setup.sh test
	@packaging/within.sh tests/run.sh lint

bench: ## every benchmark: a table, and JSON under benchmarks/results/ (ONLY=submit,map some of them; QUICK=1 small)
	@packaging/setup.sh run
	@packaging/within.sh python -m benchmarks.run $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

chaos: ## real clusters under load while processes and the network fail in every way (SECONDS=60 SEED=)
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.chaos.run --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

attack: ## an attacker without a key and with each kind of key beside honest clients under load (SECONDS=60 SEED= KEYS=none, client, worker or monitor alone)
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.chaos.attack --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(if $(KEYS),--keys $(KEYS))

simulate: ## the simulation: SEEDS=1000 of them with their figures (FIRST=0 the first), or SEED=7 alone with its events
	@packaging/setup.sh test
	@packaging/within.sh python -m tests.simulation.run $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)))

fuzz: ## what decodes and the core, fed with bytes that coverage guides (SECONDS=600 TARGET=all or one of tests/fuzz/targets.py)
	@packaging/setup.sh fuzz
	@packaging/within.sh python -m tests.fuzz.run --seconds $(or $(SECONDS),600) --target $(or $(TARGET),all)

conformance: ## any worker or client that is started at ADDRESS=tcp://..., or any scheduler at SCHEDULER=tcp://..., by PROTOCOL.md (KEYS=)
	@packaging/setup.sh run
	@packaging/within.sh python -m tests.conformance.run $(if $(ADDRESS),--address $(ADDRESS)) \
		$(if $(SCHEDULER),--scheduler $(SCHEDULER)) $(if $(KEYS),--keys '$(KEYS)') $(if $(CALL),--call '$(CALL)') $(if $(SLOW),--slow '$(SLOW)')

man: ## man pages, completions for bash and zsh, default configurations, in packaging/build/
	@packaging/setup.sh documents
	@packaging/within.sh python packaging/documents packaging/build

docs: ## the documents as one site with search and API reference, in packaging/build/site/ (strict: a broken link fails)
	@packaging/setup.sh docs
	@packaging/site/build.sh packaging/build/site

install: man ## commands, systemd units, man pages, completions and configuration (DESTDIR= PREFIX=/usr/local)
	@packaging/install.sh install

uninstall: ## take all of that away again, but a configuration that was changed (the same DESTDIR and PREFIX)
	@packaging/install.sh uninstall

schema: ## generate the scheduler's module from the schema again (needs Debian's capnproto)
	@packaging/setup.sh test
	@packaging/within.sh packaging/generate_schema.sh

package: ## what an operator installs, into packaging/dist/ (PARTS="one_file deb" some of it; packaging/README.md)
	@packaging/setup.sh package
	@packaging/package.sh $(PARTS)

package-bench: ## size, start and speed of what make package has built: a table in packaging/README.md
	@packaging/setup.sh package
	@packaging/within.sh python -m benchmarks.package_bench $(if $(QUICK),--quick)

clean: ## remove the environments and everything that tools have left
	rm -rf .venv .venv-* .system-roots .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf packaging/build packaging/dist tests/interop/cpp/build
	rm -rf scheduler_daemon/build client_lib/build worker_lib/build scheduler_daemon/dist client_lib/dist worker_lib/dist
	find . -path ./.git -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -type d -prune -exec rm -rf {} +
