# `make help` lists the commands.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The folder of the programs that proofs and benchmarks run. With PROGRAMS=.build/debug they run the programs that the tests have built.
PROGRAMS := .build/release
CLI := $(PROGRAMS)/tidemark
JOURNAL ?= journal.tidemark
DATA ?= bench-data
N ?= 200000
PICTURES ?= 2000

# LEAN leaves out the trait `Server`, so that nothing is fetched or compiled that only the server needs. The trait stays on if the server was
# built before or one of the goals in SERVED builds it, because another set of traits compiles all modules of this package again.
SERVED := server image install deb test test-build test-run test-cluster-run test-interop test-console screenshots webjournal test-webjournal test-bucket test-guides reference prove-faults prove-power prove-damage test-faults prove-server prove-soak prove-cluster prove-cloud-move prove-bucket prove-restore cluster prove-sharing prove-relationships prove-simulate prove-tenants bench-server bench-cluster bench-growth prove-storages prove-fuzz-swift prove-linearizability prove-sanitizers bench-console
LEAN := $(if $(or $(wildcard .build/checkouts/hummingbird),$(filter $(SERVED),$(MAKECMDGOALS)),$(SERVER)),,--disable-default-traits)

# Release builds have no debug information, which costs a twentieth of the build's time; DEBUG_INFO=dwarf adds it.
RELEASE := -c release -debug-info-format $(or $(DEBUG_INFO),none)

# With WHOLE_MODULES, debug builds compile each module as a whole and without debug information. For three measured modules this took 8 to 27
# percent less processor time. A build after the change of one file takes longer, so only CI sets it.
DEBUG := $(if $(WHOLE_MODULES),-debug-info-format none -Xswiftc -disable-batch-mode -Xswiftc -whole-module-optimization -Xswiftc -num-threads -Xswiftc 2)

.PHONY: help
help: ## Lists the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | awk -F'\t' '{printf "make %-14s %s\n", $$1, $$2}'

.PHONY: deps
deps: ## Installs missing libraries, or names them where it may not install
	@.ci/install-missing

.PHONY: build
build: deps ## Builds the release command-line tool at .build/release/tidemark
	swift build $(RELEASE) $(LEAN) --product tidemark

.PHONY: server
server: deps ## Builds the release server at .build/release/tidemark-server, which 'tidemark serve' starts
	swift build $(RELEASE) --product tidemark
	swift build $(RELEASE) --product tidemark-server

.PHONY: image
image: ## Builds a container image of the server, IMAGE (tidemark), by docker or podman
	@for name in docker podman; do "$$name" info >/dev/null 2>&1 && engine=$$name && break; done; \
	test -n "$$engine" || { echo "make image: neither docker nor podman runs here; start one of them, or use 'make server'" >&2; exit 69; }; \
	"$$engine" build --file Deployment/Dockerfile --tag $(or $(IMAGE),tidemark) .

.PHONY: install
install: ## Installs tool, server, completions, manual and unit below PREFIX (/usr/local); DESTDIR
	@test -x $(CLI) -a -x .build/release/tidemark-server || $(MAKE) --no-print-directory server
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Deployment/install

.PHONY: uninstall
uninstall: ## Removes what 'make install' has installed below PREFIX; DESTDIR
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" Deployment/install --uninstall

.PHONY: deb
deb: deps ## Makes a Debian package of tool and server in .build/deb, which runs without a Swift toolchain
	swift build $(RELEASE) --static-swift-stdlib --product tidemark
	swift build $(RELEASE) --static-swift-stdlib --product tidemark-server
	Deployment/make-deb .build/deb

.PHONY: import
import: $(if $(TOOL),,build) ## Installs what is missing, builds, imports the sample journal and shows the result; TOOL (release)
	$(or $(TOOL),$(CLI)) import Examples/journal/journal.jsonl --into $(JOURNAL) --type Destination --id id --asset image
	$(or $(TOOL),$(CLI)) records $(JOURNAL) --type Destination --sort createdAt --descending --limit 10
	$(or $(TOOL),$(CLI)) verify $(JOURNAL)

.PHONY: test
test: test-build test-run ## Builds and runs the tests

.PHONY: test-build
test-build: deps ## Builds the tests
	@.ci/install-missing tests
	swift build $(DEBUG) --build-tests --explicit-target-dependency-import-check error

.PHONY: test-run
test-run: ## Runs the tests that 'make test-build' has built
	.ci/run-tests
	$(MAKE) --no-print-directory test-core test-checker test-cluster test-deployment

.PHONY: test-core
test-core: deps ## Runs the tests of the C core under the sanitizers
	Tests/CoreFuzz/run

.PHONY: test-checker
test-checker: ## Tests the checker of histories, which prove-linearizability uses
	Tests/Prove/Linearizability/test_checking.py

.PHONY: test-cluster
test-cluster: ## Tests the programs of 'make cluster' without a cluster, and the ends of programs by a signal
	Deployment/Cluster/test_cluster.py
	Tests/Interop/test_signals.py

.PHONY: test-cluster-run
test-cluster-run: deps ## Starts the cluster of 'make cluster', runs the commands that it prints, ends it by Ctrl-C, and checks that nothing is left
	@.ci/install-missing cluster
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	Deployment/Cluster/test_run.py --tidemark .build/debug/tidemark --server .build/debug/tidemark-server

.PHONY: test-deployment
test-deployment: ## Tests the examples in Deployment: units, compose.yaml, configurations of proxies, alerts
	Deployment/test_examples.py

.PHONY: test-interop
test-interop: deps ## Runs pyicloud, schemathesis, browsers and hostile clients against a server; ONLY=pyicloud,signed,browser,hostile,schemathesis; PLACE (directory), postgres or cluster; FAIL_OVER=1
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	@test -x .build/interop/venv/bin/schemathesis -a .build/interop/venv/made -nt Tests/Interop/requirements.txt || { \
		python3 -m venv .build/interop/venv && \
		.build/interop/venv/bin/pip install --quiet --requirement Tests/Interop/requirements.txt && \
		touch .build/interop/venv/made; }
	.build/interop/venv/bin/python Tests/Interop/run.py --tidemark .build/debug/tidemark --server .build/debug/tidemark-server \
		--folder .build/interop/$(or $(PLACE),$(if $(FAIL_OVER),cluster,directory)) $(if $(ONLY),--only $(ONLY)) $(if $(PLACE),--place $(PLACE)) $(if $(FAIL_OVER),--place cluster --fail-over)

CONSOLE := .build/console/venv
$(CONSOLE)/made: Tests/Console/requirements.txt Tests/Console/axe.txt
	python3 -m venv $(CONSOLE)
	$(CONSOLE)/bin/pip install --quiet --requirement Tests/Console/requirements.txt
	$(CONSOLE)/bin/pip install --quiet --no-deps --requirement Tests/Console/axe.txt
	touch $@

.PHONY: test-console
test-console: deps $(CONSOLE)/made ## Tests the console in Chromium: its flows, and the accessibility of its pages; PLACE (directory) or postgres; TLS=1
	@.ci/install-missing console
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	$(CONSOLE)/bin/python Tests/Console/run.py --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --folder .build/console/run \
		$(if $(PLACE),--place $(PLACE)) $(if $(TLS),--tls)

.PHONY: screenshots
screenshots: deps $(CONSOLE)/made ## Makes pictures of the console's pages in .build/console/screenshots, at two widths and in both colour schemes
	@.ci/install-missing console
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	$(CONSOLE)/bin/python Tests/Console/run.py --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --folder .build/console/run \
		--screenshots $(or $(TO),.build/console/screenshots)

.PHONY: webjournal
webjournal: deps ## Builds Examples/WebJournal at .build/release/webjournal: a travel journal in browsers
	swift build $(RELEASE) --product webjournal

.PHONY: test-webjournal
test-webjournal: deps $(CONSOLE)/made ## Tests Examples/WebJournal in two sessions of Chromium; TO (folder) for pictures of its pages
	@.ci/install-missing console
	for product in tidemark tidemark-server webjournal; do swift build $(DEBUG) --product $$product || exit; done
	$(CONSOLE)/bin/python Examples/WebJournal/Tests/Browser/run.py --webjournal .build/debug/webjournal --tidemark .build/debug/tidemark \
		--server .build/debug/tidemark-server --folder .build/webjournal/run \
		$(if $(TO),--screenshots $(TO))

.PHONY: test-guides
test-guides: $(if $(TOOL),,server) ## Runs the transcripts of the README and the guides, and compares the output; TOOL (release)
	@.ci/install-missing guides
	Tests/Guides/run.py --tidemark $(or $(TOOL),$(CLI))

.PHONY: reference
reference: $(if $(TOOL),,server) ## Writes the command-line reference from the help of the commands; CHECK=1 compares; TOOL (release)
	Documentation/generate-command-line.py --tidemark $(or $(TOOL),$(CLI)) $(if $(CHECK),--check)

.PHONY: figures
figures: ## Draws the plot of the benchmarks and the diagrams, and writes the tables of ratios; CHECK=1 compares
	Benchmarks/figures.py $(if $(CHECK),--check)
	Documentation/Pictures/diagrams.py $(if $(CHECK),--check)

# The extractor of symbols and docc are the toolchain's, so the package needs no dependency for its documentation.
.PHONY: docs
docs: $(if $(BUILT),,deps) ## Makes the reference of all library products, a DocC archive, at .build/docs; BUILT=.build/debug builds nothing
	$(if $(BUILT),,swift build)
	Documentation/Site/make-reference.py $(if $(BUILT),--build $(BUILT))

.PHONY: site
site: ## Makes one site of all documents at .build/site/index.html, which opens from a file, and checks its links
	@.ci/install-missing site
	Documentation/Site/make.py
	Documentation/Site/check.py .build/site

.PHONY: sbom
sbom: ## Writes Tidemark's bill of materials to sbom.cdx.json (CycloneDX), and the licences of its dependencies to THIRD-PARTY.txt
	swift package resolve
	.ci/sbom --strict > sbom.cdx.json
	.ci/sbom --notice > THIRD-PARTY.txt

.PHONY: prove-fuzz
prove-fuzz: deps ## Fuzzes the C core's readers for SECONDS (30) each; FUZZER=image, manifest, json, picture, archive, store, text
	FUZZER=$(FUZZER) Tests/CoreFuzz/run --fuzz $(or $(SECONDS),30)

.PHONY: prove-fuzz-swift
prove-fuzz-swift: deps ## Fuzzes the readers that are written in Swift, and a server's requests, for SECONDS (30) each; READER=modify, query, answer, sharing, fields, gzip, bucket, row, text, request
	READER=$(READER) Tests/ReaderFuzz/run $(or $(SECONDS),30)

.PHONY: prove-sanitizers
prove-sanitizers: deps ## Runs the tests under a sanitizer, in a release build of its own (an hour); SANITIZER=thread or address, FILTER (suites)
	@.ci/install-missing tests
	Tests/Sanitizers/run $(or $(SANITIZER),thread) "$(FILTER)"

.PHONY: prove-disk
prove-disk: deps ## Lets calls of a store on a disk in memory fail, and cuts its power, in ROUNDS (50) of some 4,000 points each; SEED (1) is the first
	Tests/CoreFuzz/run --disk $(or $(ROUNDS),50) $(if $(SEED),--seed $(SEED))

.PHONY: prove-memory
prove-memory: deps ## Lets each allocation of the C core and its libraries fail: only that one, and also all later ones; POINTS draws some; SEED, USE (part of a name)
	Tests/CoreFuzz/run --memory $(or $(POINTS),0) $(if $(SEED),--seed $(SEED)) $(if $(USE),--use $(USE))

.PHONY: prove
prove: build ## Kills imports, exports, checkpoints and moves at random moments, and compares the containers that they leave; KILLS (200) times each
	swift build $(RELEASE) $(LEAN) --product store-probe
	Tests/Prove/kill-import.py --tidemark $(CLI) --kills $(or $(KILLS),200)
	Tests/Prove/kill-export.py --tidemark $(CLI) --kills $(or $(KILLS),200)
	Tests/Prove/kill-checkpoint.py --tidemark $(CLI) --probe .build/release/store-probe --kills $(or $(KILLS),200)
	Tests/Prove/kill-move.py --tidemark $(CLI) --kills $(or $(KILLS),200)

.PHONY: prove-hostile-import
prove-hostile-import: build ## Imports sources that expand, nest or lie, and for MINUTES (5) some whose files are exchanged with links to a secret; ONLY (part of a bomb's name), SEED
	Tests/Prove/hostile-import.py --tidemark $(CLI) --minutes $(or $(MINUTES),5) $(if $(ONLY),--part bombs --only "$(ONLY)") $(if $(SEED),--seed $(SEED))

.PHONY: prove-readers
prove-readers: deps ## Lets processes read a store while others save, COMMITS (200000) by two writers, and are killed, KILLS (50) times each, and looks at their system calls; SEED
	swift build $(RELEASE) $(LEAN) --product store-probe
	Tests/Prove/readers.py --probe .build/release/store-probe --commits $(or $(COMMITS),200000) --kills $(or $(KILLS),50) $(if $(SEED),--seed $(SEED))

.PHONY: prove-sync
prove-sync: build $(if $(SERVER),server) ## Synchronises two containers in processes that are killed, through a cloud that goes wrong; KILLS (100) each; SERVER=1
	swift build $(RELEASE) $(LEAN) --product sync-probe
	Tests/Prove/sync.py --tidemark $(CLI) --probe .build/release/sync-probe --kills $(or $(KILLS),100) \
		$(if $(SERVER),--server .build/release/tidemark-server)

.PHONY: cluster
cluster: build server ## Runs PostgreSQL on three machines, SeaweedFS, HAProxy and three servers, until Ctrl-C; DIRECTORY to keep the data
	Deployment/Cluster/cluster.py --tidemark $(CLI) --server .build/release/tidemark-server $(if $(DIRECTORY),--directory $(DIRECTORY))

.PHONY: prove-server
prove-server: build server ## Kills a server under load; nothing acknowledged may be lost, nothing done twice; KILLS (100)
	Tests/Prove/server.py --tidemark $(CLI) --server .build/release/tidemark-server --kills $(or $(KILLS),100)

HISTORIES = --tidemark $(CLI) --server .build/release/tidemark-server $(if $(SEED),--seed $(SEED))
.PHONY: prove-linearizability
prove-linearizability: build server ## Checks that a failing cloud's answers to its clients are linearizable, MINUTES (20), CLOUD=database or cluster; SEED, KEEP
	@.ci/install-missing histories
	Tests/Prove/linearizability.py $(HISTORIES) --minutes $(or $(MINUTES),20) $(if $(CLOUD),--cloud $(CLOUD)) $(if $(KEEP),--keep $(KEEP))
	Tests/Prove/linearizability.py $(HISTORIES) --control

# The programs of a product, whose system calls on files fail. This needs Linux, where a library can be loaded before others.
FAULTY = --tidemark $(CLI) --server $(PROGRAMS)/tidemark-server $(if $(SEED),--seed $(SEED))
FAULTS = $(FAULTY) $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(KEEP),--keep $(KEEP))
FAULT_CONTROL = $(FAULTY) --control --scenario import --scenario serve --points 12
POWER_CONTROLS = $(FAULTY) --runs 100 --control log --control served-log --control contents --control folders
.PHONY: prove-faults
prove-faults: build server ## Lets each call fail that changes a file, in imports, saves, syncs, moves, a server (hours); POINTS draws some; SCENARIO, SEED, KEEP (folder)
	Tests/Faults/faults.py $(FAULTS) $(if $(POINTS),--points $(POINTS),--all)
	Tests/Faults/faults.py $(FAULT_CONTROL)

.PHONY: prove-power
prove-power: build server ## Cuts the power of imports, saves, syncs, moves, a server, RUNS (1200) times, and looks at up to three disks each; SCENARIO, SEED, KEEP
	Tests/Faults/power.py $(FAULTS) --runs $(or $(RUNS),1200)
	Tests/Faults/power.py $(POWER_CONTROLS)

.PHONY: prove-damage
prove-damage: build server ## Damages files of containers and of a cloud, POINTS (2000): none of it may be sent, exported, backed up or moved; SEED, KEEP, KIND
	Tests/Faults/damage.py $(FAULTY) $(if $(KEEP),--keep $(KEEP)) $(if $(KIND),--kind $(KIND)) --points $(or $(POINTS),2000)

.PHONY: test-faults
test-faults: $(if $(BUILT),,build server) ## Runs short proofs of faults: some calls and allocations fail, power cuts, damaged files, hostile imports, and the controls; BUILT=1 builds no program, PROGRAMS (.build/release); SEED
	Tests/Faults/faults.py $(FAULTS) --points 48
	Tests/Faults/power.py $(FAULTS) --runs 32
	Tests/CoreFuzz/run --memory 400 $(if $(SEED),--seed $(SEED))
	Tests/Faults/damage.py $(FAULTY) --points 40 $(if $(DAMAGE_SEED),--seed $(DAMAGE_SEED))
	Tests/Prove/hostile-import.py --tidemark $(CLI) --quick --limit 180 --minutes 0.1 $(if $(SEED),--seed $(SEED))
	Tests/Faults/faults.py $(FAULT_CONTROL)
	Tests/Faults/power.py $(POWER_CONTROLS)

.PHONY: prove-mutants
prove-mutants: deps ## Plants faults in a copy, and checks that the tests notice (days, or hours with TOGETHER=1; goes on where it stopped); COUNT (120), RULE, SEED, PLANTED=1
	Tests/Mutants/mutants.py $(if $(TOGETHER),--together) $(if $(PLANTED),--planted) $(if $(COUNT),--count $(COUNT)) $(if $(RULE),--rule $(RULE)) $(if $(SEED),--seed $(SEED))

.PHONY: prove-soak
prove-soak: build server ## Lets devices of two people work for MINUTES (240) while processes are killed, disks full, clocks wrong; nothing may grow; SEED, ONLY
	@.ci/install-missing histories
	swift build $(RELEASE) --product sync-probe
	Tests/Prove/soak.py --tidemark $(CLI) --server .build/release/tidemark-server --probe .build/release/sync-probe \
		--minutes $(or $(MINUTES),240) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

.PHONY: prove-cluster
prove-cluster: build server ## Kills servers (KILLS, 100) and primaries (PRIMARIES, 20) of a cluster under load, and cuts networks (CUTS, 20)
	swift build $(RELEASE) --product sync-probe
	Tests/Prove/kill-cluster.py --tidemark $(CLI) --server .build/release/tidemark-server --probe .build/release/sync-probe \
		--server-kills $(or $(KILLS),100) --primary-kills $(or $(PRIMARIES),20) --cuts $(or $(CUTS),20)

.PHONY: prove-cloud-move
prove-cloud-move: build server ## Moves a cloud of RECORDS (1000000) into PostgreSQL and a bucket (ASSETS=directory: a shared directory) and back, in moves that are killed, with devices in the middle of a sync; KILLS (3) each
	Tests/Prove/move-cloud.py --tidemark $(CLI) --server .build/release/tidemark-server --kills $(or $(KILLS),3) $(if $(RECORDS),--records $(RECORDS)) \
		$(if $(filter directory,$(ASSETS)),,--bucket)

# The environment of the console's tests has the HTTP library that the proof needs.
.PHONY: prove-bucket
prove-bucket: build server $(CONSOLE)/made ## Runs a server whose bucket fails: 500, SlowDown, cut connections, half and older contents, refused keys
	@.ci/install-missing tests
	$(CONSOLE)/bin/python Tests/Prove/bucket.py --tidemark $(CLI) --server .build/release/tidemark-server

.PHONY: test-bucket
test-bucket: deps $(CONSOLE)/made ## Runs a server whose bucket fails, in fewer steps than prove-bucket, with the programs of the tests
	@.ci/install-missing tests
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	$(CONSOLE)/bin/python Tests/Prove/bucket.py --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --short

.PHONY: prove-restore
prove-restore: build server ## Restores a cloud over PostgreSQL and a bucket to a point in time, by the commands of the operators' guide; SECONDS (10) of saves before, between and after; SEED
	@.ci/install-missing tests
	@.ci/install-missing guides
	Tests/Prove/restore.py --tidemark $(CLI) --server $(PROGRAMS)/tidemark-server --seconds $(or $(SECONDS),10) $(if $(SEED),--seed $(SEED))
	Tests/Prove/restore.py --tidemark $(CLI) --server $(PROGRAMS)/tidemark-server --seconds 2 --control

.PHONY: prove-tenants
prove-tenants: build server ## Lets one account attack the others over HTTP, and measures the effect on them; CASE= for a single attack
	Tests/Prove/tenants.py --tidemark $(CLI) --server .build/release/tidemark-server $(if $(CASE),--case $(CASE))

# Only runs of the same sources count as progress.
VERSION_OF_SOURCES = $(shell git rev-parse --short HEAD)-$(shell git diff HEAD | cksum | cut -d ' ' -f 1)
.PHONY: prove-sharing
prove-sharing: deps ## Lets permissions and hierarchies change while others write, in a release build; RUNS (10000) times, from FIRST (any); goes on where it stopped
	swift build $(RELEASE) --build-tests -Xswiftc -enable-testing
	TIDEMARK_SHARING_RUNS=$(or $(RUNS),10000) TIDEMARK_SEED=$(or $(FIRST),any) TIDEMARK_PROGRESS=$(CURDIR)/.build/proofs/sharing-$(VERSION_OF_SOURCES) \
		swift test $(RELEASE) --skip-build --filter 'SharingRaceTests|HierarchyHistoryTests'
	rm -r .build/proofs/sharing-$(VERSION_OF_SOURCES)

.PHONY: prove-relationships
prove-relationships: deps ## Lets devices make random histories of records that own each other, in a release build; RUNS (10000), from FIRST (any)
	swift build $(RELEASE) --build-tests -Xswiftc -enable-testing
	TIDEMARK_RELATIONSHIP_RUNS=$(or $(RUNS),10000) TIDEMARK_SEED=$(or $(FIRST),any) \
		swift test $(RELEASE) --skip-build --filter RelationshipHistoryTests

.PHONY: prove-trials
prove-trials: deps ## Runs all trials of the tables of errors, repeated requests and permissions, of which `make test` draws a third each time
	swift build $(DEBUG) --build-tests
	TIDEMARK_TRIALS=all swift test --skip-build --filter 'CloudErrorTests|RepeatedRequestTests|SharingMatrixTests'

.PHONY: prove-storages
prove-storages: deps ## Sends the same random requests to a cloud in SQLite and one in PostgreSQL, in a release build; RUNS (10000) histories, from FIRST (any)
	swift build $(RELEASE) --build-tests -Xswiftc -enable-testing
	TIDEMARK_STORAGE_RUNS=$(or $(RUNS),10000) TIDEMARK_SEED=$(or $(FIRST),any) \
		swift test $(RELEASE) --skip-build --filter StorageHistoryTests

.PHONY: test-simulations
test-simulations: ## Runs the first RUNS (500) seeds of each simulation with the tests that 'make test-build' has built
	Tests/Prove/simulate.py --program .build/debug/tidemarkPackageTests.xctest --first 1 --runs $(or $(RUNS),500) --postgres-runs 0

.PHONY: prove-simulate
prove-simulate: deps ## Simulates devices that fail, die and edit at once, in a release build; RUNS (5000) seeds, from FIRST (any), and goes on where it stopped; over PostgreSQL too POSTGRES (500)
	@.ci/install-missing tests
	swift build $(RELEASE) --build-tests -Xswiftc -enable-testing
	Tests/Prove/simulate.py --program .build/release/tidemarkPackageTests.xctest --runs $(or $(RUNS),5000) --postgres-runs $(or $(POSTGRES),500) \
		$(if $(FIRST),--first $(FIRST)) --progress .build/proofs/simulate-$(VERSION_OF_SOURCES)
	rm -rf .build/proofs/simulate-$(VERSION_OF_SOURCES)

.PHONY: format
format: ## Formats the Swift and C sources in place
	swift format --in-place --recursive --parallel --configuration .swift-format Sources Tests Examples Package.swift
	@.ci/install-missing checks
	.ci/checks/c-format --fix

.PHONY: lint
lint: ## Checks the format of the Swift sources
	.ci/checks/swift-format

# The checks build nothing. CI's builds check all that needs a compiler, with warnings as errors.
.PHONY: check
check: ## Runs the quick checks of .ci/checks; ONLY="words links" for some
	@.ci/install-missing checks
	@.ci/checks/run $(ONLY)

.PHONY: api-diff
api-diff: deps ## Prints the changes of the public API since the last tag, TAG
	.ci/api-diff $(TAG)

.PHONY: coverage
coverage: deps ## Runs the C core's tests and the quick suites, FILTER, with coverage; prints a table, and the core's lines and branches that never ran; POINTS
	.ci/coverage $(if $(FILTER),'$(FILTER)')

.PHONY: bench-data
bench-data: deps ## Makes the benchmarks' data: N records (200000), PICTURES (2000), in DATA (bench-data); LARGE=0 for no large one
	python3 Benchmarks/run.py --only-data --data $(DATA) --records $(N) --pictures $(PICTURES) $(if $(LARGE),--large $(LARGE))

.PHONY: bench
bench: build ## Runs the benchmarks for RUNS (5) rounds and prints one table of ratios; N, PICTURES, DATA, LARGE as above
	python3 Benchmarks/run.py --tidemark $(CLI) --data $(DATA) --records $(N) --pictures $(PICTURES) \
		--runs $(or $(RUNS),5) $(if $(LARGE),--large $(LARGE))

.PHONY: bench-pictures
bench-pictures: ## Compares scaling pictures with libjpeg alone and with what people use; PHOTOS=DIR
	Benchmarks/pictures.py $(if $(PHOTOS),--photos $(PHOTOS))

.PHONY: bench-store
bench-store: deps ## Measures the store's API beside SQLite and GRDB, and notices between processes; RUNS, GROWTH (rounds of 1,000,000), DATA, STORE
	python3 Benchmarks/store.py --data $(DATA) --runs $(or $(RUNS),5) --growth $(or $(GROWTH),1) $(if $(STORE),--store $(STORE))

.PHONY: bench-sync
bench-sync: build ## Measures the synchronisation beside SQLite alone, edits between processes, merges; RUNS, N, DATA, LARGE (for the memory)
	python3 Benchmarks/sync.py --tidemark $(CLI) --data $(DATA) --records $(N) --runs $(or $(RUNS),5) $(if $(LARGE),--large $(LARGE))

.PHONY: bench-permissions
bench-permissions: build ## Measures the permission report of N (1000000) records beside plain C, and while shares change; RUNS, DATA
	python3 Benchmarks/permissions.py --tidemark $(CLI) --data $(DATA) --runs $(or $(RUNS),5) \
		--records $(if $(filter command line environment,$(origin N)),$(N),1000000)

.PHONY: bench-server
bench-server: build server ## Measures a served cloud: batches, look-ups, idle and slow connections, assets, memory; RUNS, DATA
	python3 Benchmarks/server.py --tidemark $(CLI) --server .build/release/tidemark-server --data $(DATA) --runs $(or $(RUNS),5)

.PHONY: bench-cluster
bench-cluster: build server ## Measures a cloud over PostgreSQL: the cost of a request, and owners beside each other; RUNS, DATA
	python3 Benchmarks/cluster.py --tidemark $(CLI) --server .build/release/tidemark-server --data $(DATA) --runs $(or $(RUNS),3)

.PHONY: bench-growth
bench-growth: build server ## Measures how the times of requests grow with owners and records over PostgreSQL; OWNERS (10000), LARGE (10000000), RUNS (7), DATA
	python3 Benchmarks/growth.py --tidemark $(CLI) --server .build/release/tidemark-server --data $(DATA) --runs $(or $(RUNS),7) \
		$(if $(OWNERS),--owners $(OWNERS)) $(if $(LARGE),--large $(LARGE))

.PHONY: bench-console
bench-console: build server ## Measures the console's pages over a zone with 1,000,000 records; N (records), RUNS (7), DATA
	python3 Benchmarks/console.py --tidemark $(CLI) --server .build/release/tidemark-server --data $(DATA) --runs $(or $(RUNS),7) \
		--records $(if $(filter command line environment,$(origin N)),$(N),1000000)

# Debug products are enough to check that every contestant runs, and that the benchmarks know the present tables of the store.
SMOKE := .build/bench-smoke
.PHONY: bench-smoke
bench-smoke: ## Runs every contestant and floor of all benchmarks with a few records, in a debug build; prints no figures
	@.ci/install-missing bench
	@.ci/install-missing tests
	swift build $(DEBUG) --product tidemark
	swift build $(DEBUG) --product tidemark-server
	for name in store-bench sync-bench permissions-bench grdb-peer; do TIDEMARK_BENCHMARKS=1 swift build $(DEBUG) --product $$name || exit; done
	python3 Benchmarks/run.py --smoke --tidemark .build/debug/tidemark --grdb-peer .build/debug/grdb-peer --data $(SMOKE)
	python3 Benchmarks/store.py --smoke --program .build/debug/store-bench --data $(SMOKE)
	python3 Benchmarks/sync.py --smoke --tidemark .build/debug/tidemark --program .build/debug/sync-bench --data $(SMOKE)
	python3 Benchmarks/permissions.py --smoke --tidemark .build/debug/tidemark --program .build/debug/permissions-bench --data $(SMOKE)
	python3 Benchmarks/server.py --smoke --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --data $(SMOKE)
	python3 Benchmarks/cluster.py --smoke --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --data $(SMOKE)
	python3 Benchmarks/growth.py --smoke --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --data $(SMOKE)
	python3 Benchmarks/console.py --smoke --tidemark .build/debug/tidemark --server .build/debug/tidemark-server --data $(SMOKE)

.PHONY: clean
clean: ## Removes the products of builds and imports
	rm -rf .build $(JOURNAL) sbom.cdx.json THIRD-PARTY.txt
