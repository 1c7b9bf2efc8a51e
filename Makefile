# `make` alone lists the targets. A fresh clone needs Go, make, and root or sudo
# for Debian's packages; everything else is installed from here.

SHELL := /bin/bash
BIN := bin
GO ?= go
# Compilers that collect garbage less often need a sixth less CPU to build everything, and at most 1 GB each. (The cache does not tell them apart.)
export GOFLAGS ?= -buildvcs=false "-toolexec=env GOGC=400"
TEST_TIMEOUT ?= 60m
# The stories whose subject is the agent: they are told again with agents of Puppet 8.
PUPPET8_STORIES := TestAgentConverges TestNoop TestUseCachedCatalog TestCachedCatalogAfterFailure TestOtherEnvironment TestPluginsync \
	TestFactsUpload TestMissingSource TestRecursion TestSourceLists TestFilebucket TestSlowCompile TestEventsWhileARunGoesOn \
	TestTheAgentWithPuppetsCertificate TestAStockAgentHasWhatWasReleased TestAStockAgentWithoutARelease TestSignByHand TestJoinToken \
	TestSSLBootstrapAndClean TestCodeErrors TestUnknownEnvironment TestCatalogsAreAppliedOnSchedule TestScheduledRunsThatOnlyShow \
	TestFactsApartFromRuns TestLegacyFacts TestLegacyFactsWhereVariablesAreStrict TestAnAgentOfPuppet8
# Tests of whole servers that compile with Puppet 8: random repositories beside plain Puppet, and stories about what is compiled.
WORLDS8 := ^(TestCatalogsArePlainPuppets)$$
SERVERS8 := ^(TestAttacksOfAPreview|TestNodesCollectWhatOthersExport|TestCollectingFailsAsInPuppet|TestRunawayCompiles|TestKillRubyProcesses)$$
NOTHING :=
STORIES8 = ^($(subst $(NOTHING) ,|,$(strip $(PUPPET8_STORIES))))$$
# What runs on Puppet 8: `go test $(ON_PUPPET8) PACKAGE`, these packages, and what of them `make test` and `make stories` have.
ON_PUPPET8 = -count=1 -exec "$(CURDIR)/tools/in-puppet8"
# What runs beside the peers of today, in their folder, where there is no Go.
PEERS8 := tools/packages-peers8.txt internal/compiler/ruby/testdata/modules.txt
IN_PEERS8 = root=$$(tools/puppet8-root $(PEERS8)) && export PUPPET8_ROOT=$$root TUTTI_BINARY="$(CURDIR)/$(BIN)/tutti" CGO_ENABLED=0 &&
PUPPET8 := ./internal/compiler/ruby
PUPPET8_CORE := ^(TestValuesAreAsInPlainPuppet|TestPool|TestWhatNoInputStandsFor)$$
PUPPET8_LONG := ^(TestCatalogsEqualTheStockCompilers|TestWhatIsReadIsNoted)$$
# SQLite is C, translated to Go: the detector makes it many times slower, and could find nothing of ours in it. No package with
# instances of generic functions may be left out: the linker keeps one copy of each for all packages, perhaps the unwatched one. (That of
# libc is of a type of package os.)
TRANSLATED := sqlite/lib libc memory
RACE := -race $(TRANSLATED:%='-gcflags=modernc.org/%=-race=false -d=checkptr=0')
# In these packages Go waits for Ruby and for other programs: the detector would cost much and watch little. `make race-all` watches them, too.
# They run one after the other: what stands back for others (plain Puppet in the background) would never end beside all the others.
WAITING := /e2e(/pdbdiff)?$$|/internal/server$$|/internal/compiler/ruby$$
# In these one goroutine computes for a minute where the detector watches it, and for seconds where it does not. `make race-all` watches them, too.
COMPUTING := /internal/cli$$|/internal/diff$$
# What takes too long for `make test`, in packages of which it runs the rest: `make stories` has it. For e2e, e2e/core_test.go says so.
LONG := ^(TestAReleaseIsWhatItSays|TestModulesEqualTheStockCompilers|TestMainManifestsEqualPlainPuppets|TestPlainPuppetUsesTheModulesOfTheVersion|$\
TestChosenSettingsHoldAsInPuppet|TestReusedCatalogsEqualFreshOnes|TestModulesAreStaticAsPuppets|TestCatalogsArePlainPuppets|TestPairsOfWholeCatalogs|$\
TestPairsOfRealCatalogs|TestPuppetReadsTheCode|TestServersShareADatabaseThatSaySo|TestSlowedEnvironmentIsShown|TestEndlessLoopsDoNotHoldUpOthers|$\
TestACatalogThatLostAllIsHeldAhead|TestAServedFileThatChangesReachesWhoHasIt|TestPlainPuppetAgrees|TestLookupsAreThoseOfPuppetLookup|$\
TestLookupsBesideCatalogs|TestObjectsThatBorrowKernel|TestPlainPuppetHasTheChosenSettings|TestExitCodesOfAllCommands|TestResourcesAreThoseOfPuppet|$\
TestTwoBrokersOnOneDatabase|TestAnEngineWithAGemForAnotherRubyCompilesNothing|TestCodeOfAPreviewSeesWhatItsAuthorSees|TestWarm|$\
TestVersionsAndEnvironmentsDoNotLeak|TestPlainPuppetIsAnsweredAsRecorded|TestRubyThatDoesNotStart|TestTwoServersShareContent|$\
TestPlainPuppetFailsInTheSameWords|TestLookupsHideSecrets|TestSamplesThatNeverEndLeaveALoadedZygote|TestTimeLimitHoldsWhileAQuestionIsOpen|$\
TestAnUpgradeStartsTheEngineAnew|TestIdleZygotesEnd|TestHashesOfFactsThatAreTakenWhole|TestVerifyFindsWhatStandsAlthoughItIsOld|$\
TestWarningsAndSettings|TestJobsOfPxpAgent|TestLocksAreThoseOfPuppet|TestSummaryIsThatOfPuppet|TestApply|TestGroupsAreTheSameInAnyOrder|$\
TestHookEndsItselfWhenItCannotWrite|TestTimeLimit|TestPlainPuppetFindsOldMistakes|TestGarbageIsNoHunger|$\
TestACatalogThatLostAllIsHeldFromAStockAgent)$$|$\
^TestCatalogsEqualTheStockCompilers$$/^bench$$
LONG_IN := . ./internal/server ./internal/compiler/ruby ./internal/diff ./internal/cli ./internal/store/sql ./internal/agent/builtin/resource $\
	./internal/agent/builtin/puppet ./internal/agent/puppetrun
# To build a real S3 store takes as long as a tenth of `make test`: the package that needs one is with the stories, and with `make race`.
WITH_S3 := /internal/store/blobs3$$
# What takes longest begins first.
FIRST := ./internal/store/sql ./internal/cli ./internal/diff
# A suite has parts, and goes on when one fails: `run NAME [arguments of go test]`. The linters look for what `go vet` finds.
GOTESTSUM := $(BIN)/gotestsum --format standard-quiet
SUITE = all=$$($(GO) list ./...) || exit 1; failed=0; \
	run() { $(GOTESTSUM) --jsonfile $(BIN)/$$1.json -- -vet=off -timeout $(TEST_TIMEOUT) "$${@:2}" || failed=1; }
SLOWEST = cat $(1:%=$(BIN)/%.json) > $(BIN)/suite.json && $\
	printf 'The tests took %d:%02d minutes, besides what make built for them. The ten slowest:\n' $$((SECONDS / 60)) $$((SECONDS % 60)) && tools/slowest $(BIN)/suite.json 10 && exit $$failed

.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/tutti
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$$(tools/version ldflags)" -o $(BIN)/tutti ./cmd/tutti

man: build ## the manual pages, in bin/man
	rm -rf $(BIN)/man && $(BIN)/tutti --quiet man $(BIN)/man

release: ## VERSION=0.1.0: archives with manual pages and completions in dist/, CHANGELOG.md, a commit and a tag; nothing is pushed
	@tools/install-packages tools/packages-release.txt
	@GO="$(GO)" tools/release "$(VERSION)"

deps: ## install Debian's packages that the demo uses
	@tools/install-packages tools/packages.txt

test-deps: ## install Debian's packages that the tests use
	@tools/install-packages tools/packages.txt tools/packages-test.txt internal/compiler/ruby/testdata/modules.txt

demo: deps build ## a server, real nodes and a simulated fleet; a change is released, stopped, taken back; cleaned up
	$(BIN)/tutti demo

run: deps build ## the same, and it stays up until Ctrl-C
	$(BIN)/tutti demo --keep --listen 127.0.0.1:8140

TEST_NEEDS := test-deps puppet8-root build $(BIN)/gotestsum
STORIES_NEED := $(TEST_NEEDS) console-deps $(BIN)/versitygw

test: $(TEST_NEEDS) ## every package but that of the S3 store, and the core of the stories; prints the ten slowest
	@export CGO_ENABLED=0; $(SUITE); \
	run packages -trimpath -skip '$(LONG)' $(FIRST) $$(grep -vE '$(WAITING)|$(WITH_S3)' <<< "$$all"); \
	run waiting -trimpath -p 1 -skip '$(LONG)' ./internal/server ./internal/compiler/ruby; \
	run e2e -trimpath ./e2e; \
	run puppet8 -trimpath $(ON_PUPPET8) -run '$(PUPPET8_CORE)' -skip '$(LONG)' ./internal/compiler/ruby; \
	$(call SLOWEST,packages waiting e2e puppet8)

stories: $(STORIES_NEED) ## all other stories, tests that take long, the S3 store, and the questions to PuppetDB: what make test leaves out
	@export CGO_ENABLED=0; $(SUITE); \
	run long -trimpath -p 1 -run '$(LONG)' $(LONG_IN); \
	run s3 -trimpath ./internal/store/blobs3; \
	run long8 -trimpath $(ON_PUPPET8) -run '$(PUPPET8_LONG)' ./internal/compiler/ruby; \
	run questions -trimpath ./e2e/pdbdiff; \
	run stories -trimpath -count=1 ./e2e -args -long; \
	$(call SLOWEST,long s3 long8 questions stories)

soak: test-deps build ## random changes: 200 of them, each with everything compiled anew (SEED=n)
	TUTTI_SEED=$(or $(SEED),1) TUTTI_CHANGES=200 $(GO) test -timeout 60m -count=1 -v -run TestReusedCatalogsEqualFreshOnes ./internal/server

soak-truth: test-deps build ## COUNT (100) random control repositories from SEED (1), each changed STEPS (4) times, beside plain Puppet
	TUTTI_SEED=$(or $(SEED),1) TUTTI_COUNT=$(or $(COUNT),100) TUTTI_STEPS=$(or $(STEPS),4) $(GO) test -timeout 24h -count=1 -v -run TestCatalogsArePlainPuppets ./internal/server

soak-truth8: puppet8-root ## the same on Puppet 8: every second repository with its own settings, the others with those of Puppet 7 for what is strict
	TUTTI_SEED=$(or $(SEED),1) TUTTI_COUNT=$(or $(COUNT),100) TUTTI_STEPS=$(or $(STEPS),4) CGO_ENABLED=0 \
	$(GO) test -timeout 24h $(ON_PUPPET8) -v -run TestCatalogsArePlainPuppets ./internal/server

soak-cluster: test-deps build $(BIN)/versitygw ## three servers, PostgreSQL, NATS and S3 in a network of their own: FAULTS (200) of them from SEED, with NODES (300) simulated nodes
	TUTTI_CHAOS_SEED=$(or $(SEED),1) TUTTI_CHAOS_FAULTS=$(or $(FAULTS),200) TUTTI_CHAOS_NODES=$(or $(NODES),300) \
	CGO_ENABLED=0 $(GO) test -trimpath -timeout 24h -count=1 -v -run TestChaosOfServers ./e2e

test-upgrade: test-deps build $(BIN)/versitygw ## two servers of the version before, built from its commit, are brought to this one, one by one
	$(GO) test -tags soak -timeout 30m -count=1 -v -run TestRollingUpgrade ./e2e

soak-stories: test-deps build ## stories that are too long for the suite: chaos of catalogs over 200 nodes, with the race detector
	CGO_ENABLED=1 $(GO) test $(RACE) -tags soak -timeout 60m -count=$(or $(COUNT),1) -v -run TestChaosOfCatalogs ./e2e

test-cluster: test-deps console-deps build $(BIN)/versitygw ## the stories again, each with three servers behind HAProxy in the place of its one
	TUTTI_E2E=cluster CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 180m ./e2e

quick: $(BIN)/versitygw ## the tests without the race detector, and without those that wait for Ruby and real agents
	$(GO) test -timeout 5m $$($(GO) list ./... | grep -vE '$(WAITING)')

puppet8-root: ## a folder with Debian 13 and Puppet 8, outside the tree; built once, by root, in about four minutes
	@tools/install-packages tools/packages-test.txt
	@tools/puppet8-root

test-puppet8: test-deps puppet8-root build ## on Puppet 8: the compiler's tests, random repositories, attacks on the cell, exported resources; and agents
	CGO_ENABLED=0 $(GO) test $(ON_PUPPET8) -timeout $(TEST_TIMEOUT) $(PUPPET8)
	CGO_ENABLED=0 $(GO) test $(ON_PUPPET8) -timeout $(TEST_TIMEOUT) -run '$(WORLDS8)' ./internal/server
	TUTTI_BINARY="$(CURDIR)/$(BIN)/tutti" CGO_ENABLED=0 $(GO) test $(ON_PUPPET8) -trimpath -timeout 30m -run '$(SERVERS8)' ./e2e
	CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -run '$(STORIES8)' ./e2e -args -puppet8

peers8-root: ## a folder with Debian 13, PuppetDB 8 and Puppet Server 8, outside the tree; built once, by root, in about six minutes
	@tools/install-packages tools/packages-test.txt
	@tools/puppet8-root $(PEERS8)

test-peers8: peers8-root build ## the questions to PuppetDB 7 are put to PuppetDB 8, too; Puppet Server 8 and today's pypuppetdb with Tutti
	$(IN_PEERS8) \
	$(GO) test $(ON_PUPPET8) -timeout 60m ./e2e/pdbdiff && \
	$(GO) test $(ON_PUPPET8) -trimpath -timeout 30m -v -run '^(TestPuppetserverKeepsInTutti|TestPypuppetdb)$$' ./e2e

race: $(STORIES_NEED) ## the packages again with the race detector, but for those where Go waits for other programs
	@export CGO_ENABLED=1; $(SUITE); \
	run raced $(RACE) -skip '^TestAReleaseIsWhatItSays$$' ./internal/store/sql $$(grep -vE '$(WAITING)|$(COMPUTING)' <<< "$$all"); \
	$(call SLOWEST,raced)

race-all: $(STORIES_NEED) ## every test with the race detector, also where Go waits for other programs; some hours
	CGO_ENABLED=1 $(GO) test $(RACE) -timeout 240m ./...

fuzz: ## every fuzz target for FUZZTIME (10s) each
	@tools/fuzz-all $${FUZZTIME:-10s}

bench: bench-compile bench-files bench-ingest bench-query bench-broker bench-jobs bench-actions bench-checkin bench-flood bench-verify bench-fleet bench-release bench-events bench-deploy bench-backup bench-blobs ## every benchmark against its peer (writes bench/out)

bench-deps:
	@tools/install-packages tools/packages.txt tools/packages-bench.txt internal/compiler/ruby/testdata/modules.txt

bench-compile: bench-deps build ## catalogs per CPU second, against puppetserver
	$(GO) run ./bench/compile

bench-compile8: peers8-root build ## the same in the folder of peers8-root: Puppet 8, against Puppet Server 8 (ARGS: more flags)
	$(IN_PEERS8) $(GO) run -exec "$(CURDIR)/tools/in-puppet8" ./bench/compile -only tutti,puppetserver -limit 2h -out bench/out/puppet8 $(ARGS)

bench-verify: bench-deps build ## a compile's time while others are compared with plain Puppet's in the background
	$(GO) run ./bench/verify

bench-checkin: bench-deps build ## a node's check-in when nothing changed, against compiling, and 5 000 at once
	$(GO) run ./bench/checkin

bench-flood: build ## what strangers can do: 20 000 certificate requests, 1 000 logins that are never sent to their end
	$(GO) run ./bench/flood

bench-fleet: bench-deps build ## code that reaches 10 000 nodes (NODES=n): who is touched, who compiles, when all are current; KEEP=DIR keeps the fleet
	$(GO) run ./bench/fleet $(if $(NODES),-nodes $(NODES)) $(if $(KEEP),-keep $(KEEP))

bench-release: bench-deps build ## a release to 10 000 simulated nodes (NODES=n) in three waves: the server's CPU for each
	$(GO) run ./bench/release $(if $(NODES),-nodes $(NODES))

bench-files: bench-deps build ## file content, against puppetserver and nginx
	$(GO) run ./bench/files

bench-ingest: bench-deps build ## facts and reports per second, against puppetdb
	$(GO) run ./bench/ingest

bench-query: bench-deps build ## what people ask of 20 000 nodes, against puppetdb; KEEP=DIR keeps what was loaded
	$(GO) run ./bench/query $(if $(KEEP),-keep $(KEEP))

bench-query8: peers8-root build ## the same of 2 000 nodes (NODES=n) in the folder of peers8-root, against PuppetDB 8
	$(IN_PEERS8) $(GO) run -exec "$(CURDIR)/tools/in-puppet8" ./bench/query -nodes $(or $(NODES),2000) -out bench/out/puppet8

bench-broker: build ## agents' connections: memory, connections per second, orders
	$(GO) run ./bench/broker

bench-jobs: build ## orders to 10 000 simulated agents: pings, jobs, output, a reconnect storm
	$(GO) run ./bench/jobs

bench-actions: build ## calls of actions on 2 000 and 10 000 simulated agents: reading, acting, with nodes that reconnect
	$(GO) run ./bench/actions

bench-events: bench-deps build ## delay from what happens in a Puppet run to the line of who watches
	$(GO) run ./bench/events

bench-console: build test-deps console-deps ## the console in Chromium with 10 000 and 50 000 nodes (NODES=n, LARGE=n); BOARD=DIR shows the same nodes in Puppetboard's source
	$(GO) run ./bench/console $(if $(NODES),-nodes $(NODES)) $(if $(LARGE),-large $(LARGE)) $(if $(BOARD),-puppetboard $(BOARD))

bench-deploy: build ## the check of a deploy: 5 000 files (FILES=n) of which 20 changed, besides the compiles
	$(GO) run ./bench/deploy $(if $(FILES),-files $(FILES))

bench-backup: build $(BIN)/versitygw ## a backup of 10 000 nodes (NODES=n), another one, verify, restore, a move to PostgreSQL and S3 and back (ARGS="-only move"); how long facts wait meanwhile
	$(GO) run ./bench/backup $(if $(NODES),-nodes $(NODES)) $(ARGS)

bench-cluster: bench-deps test-deps build $(BIN)/versitygw ## three servers against one, and what else is measured on SQLite with the records in PostgreSQL (NODES=n: of fleet and queries)
	$(GO) run ./bench/cluster
	$(GO) run ./bench/ingest -only tutti,tutti-postgres,puppetdb -out bench/out/postgres
	$(GO) run ./bench/query $(if $(NODES),-nodes $(NODES)) -out bench/out/postgres
	$(GO) run ./bench/jobs -postgres -out bench/out/postgres
	$(GO) run ./bench/fleet -postgres $(if $(NODES),-nodes $(NODES)) -out bench/out/postgres

bench-blobs: $(BIN)/versitygw ## content in a directory, in an S3 store on this machine, and in that without a cache
	@mkdir -p bench/out
	$(GO) test -run '^$$' -bench BenchmarkBlobs ./internal/store/blobs3 | tee bench/out/blobs.txt

bench-go: $(BIN)/versitygw ## the Go benchmarks, in a form that benchstat compares
	@mkdir -p bench/out
	$(GO) test -run '^$$' -bench . -benchmem ./internal/... | tee bench/out/go.txt

$(BIN)/golangci-lint: tools/go.mod
	@mkdir -p $(BIN)
	cd tools && $(GO) build -o ../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/gotestsum: tools/go.mod
	@mkdir -p $(BIN)
	cd tools && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN)/gotestsum gotest.tools/gotestsum

$(BIN)/versitygw: tools/versitygw/go.mod # an S3 store for the tests; some minutes, once
	@mkdir -p $(BIN)
	cd tools/versitygw && CGO_ENABLED=0 $(GO) build -o ../../$(BIN)/versitygw github.com/versity/versitygw/cmd/versitygw

lint: $(BIN)/golangci-lint console-check ## the linters, also of the console, with its types and unit tests
	$(BIN)/golangci-lint run --allow-parallel-runners ./...

vulnerabilities: ## look dependencies up in Go's database of vulnerabilities; it needs the network, so it is no part of the check
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

fmt: $(BIN)/golangci-lint ## format
	$(BIN)/golangci-lint fmt ./...

CONSOLE_READY := console/node_modules/.package-lock.json
$(CONSOLE_READY): console/package-lock.json
	@tools/node-version
	cd console && npm ci --no-audit --no-fund
	@touch $@

console-deps: $(CONSOLE_READY) ## install what the console is built and tested with (Node 20 and npm must be there)

console: $(CONSOLE_READY) ## build the console's pages into internal/protocol/console/dist, which is committed
	cd console && npm run --silent build

console-check: $(CONSOLE_READY) ## the console's linters, types and unit tests
	cd console && npm run --silent lint && npm run --silent typecheck && npm run --silent test

screenshots: test-deps console-deps build ## pictures of the console's pages in bin/screenshots, at three widths and in both themes (PAGES='node release' for some)
	$(GO) test ./e2e -run 'TestScreenshots$$' -count=1 -tags screenshots -timeout 15m

generate: $(CONSOLE_READY) ## write docs/reference, and the console's types of the API, anew
	$(GO) test ./internal/cli -run 'IsCurrent$$|AreCurrent$$' -count=1 -args -update
	$(GO) test . -run TestLicences -count=1 -args -update
	$(GO) test ./internal/agent -run TestReferenceOfModules -count=1 -args -update

verify: generate console ## fail if generated files or go.mod are not what is committed
	$(GO) mod tidy -e # one module that only a dependency's own tests use cannot be had
	git diff --exit-code -- docs go.mod go.sum console/src/api internal/protocol/console/dist
	@test -z "$$(git status --porcelain -- internal/protocol/console/dist)" || { git status --short -- internal/protocol/console/dist; exit 1; }

check: verify lint test race stories ## all that must hold before a merge; CI runs the same

.PHONY: help stories puppet8-root test-puppet8 peers8-root test-peers8 vulnerabilities build deps test-deps demo run test soak soak-truth soak-truth8 soak-stories soak-cluster
.PHONY: quick test-cluster test-upgrade race race-all fuzz bench bench-deps bench-compile bench-compile8 bench-files bench-ingest bench-query bench-query8 bench-broker bench-jobs
.PHONY: bench-actions bench-checkin bench-flood bench-verify bench-fleet bench-release bench-events bench-deploy bench-backup bench-cluster bench-blobs bench-console bench-go lint
.PHONY: fmt generate verify check man release console console-deps console-check screenshots
