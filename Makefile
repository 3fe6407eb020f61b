# make test: vet, staticcheck and every test once. make quick: short tests, without
# services. make endure: repeated tests and escape families in full, the packages of
# RACE_WHOLE with the race detector, the tests of bench/. make peers: what needs large
# downloads. make bench: figures. CI runs make test and what a change needs of endure and
# peers (.ci/run).

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
SHELL = /bin/bash
export CGO_ENABLED = 0

.PHONY: build quick test deps vet staticcheck once example endure peers bench clean

# Released binaries contain no path of the machine that built them.
build:
	$(GO) build -trimpath -o bin/holdfast ./cmd/holdfast

quick:
	$(GO) test -short ./...

test: deps
	$(MAKE) vet staticcheck once

# What the tests need beside Go: node, as a peer for canonical JSON, to run the
# public MCP server, and as a language of the sandbox, as Python is; clients that
# speak through the egress proxy: curl, git, npm, pip; a browser for the pages;
# promtool, which judges the alerts (of the package whose server the tests do not
# need: Debian starts it where there is an init to); a machine to boot, with a
# kernel, for control groups that are kept otherwise than here; and what runs containers, with
# a Docker engine, which its tests start for themselves. Only what is
# missing is installed: a node from elsewhere conflicts with Debian's npm.
deps:
	@missing=""; bare=""; \
	command -v node >/dev/null || missing="$$missing nodejs"; \
	command -v npx >/dev/null || missing="$$missing npm"; \
	/usr/bin/python3 -m pip --version >/dev/null 2>&1 || missing="$$missing python3 python3-pip"; \
	test -x /usr/bin/curl || missing="$$missing curl"; \
	test -x /usr/bin/git || missing="$$missing git"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v chromedriver >/dev/null || missing="$$missing chromium-driver"; \
	[ "$$(uname -sm)" != "Linux x86_64" ] || command -v qemu-system-x86_64 >/dev/null || bare="qemu-system-x86"; \
	command -v promtool >/dev/null || bare="$$bare prometheus"; \
	[ "$$(uname -s)" != Linux ] || { command -v dockerd && command -v containerd; } >/dev/null || bare="$$bare docker.io containerd"; \
	[ "$$(uname -s)" != Linux ] || for p in runc crun runsc; do command -v $$p >/dev/null || bare="$$bare $$p"; done; \
	if [ -z "$$missing$$bare" ]; then :; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && \
		{ [ -z "$$missing" ] || apt-get install -y -q $$missing; } && \
		{ [ -z "$$bare" ] || apt-get install -y -q --no-install-recommends $$bare; }; \
	else echo "install these Debian packages, then run make test again:$$missing $$bare" >&2; exit 1; fi
	@.ci/kernel

# GOGC=400: fewer collections, faster builds.
vet staticcheck: export GOGC = 400

# The tags of all tests, so that each file is looked at.
TAGS = -tags endure,peers

# Only types are checked for another system and in the module of benchmarks: compiling
# all that they need takes ten times as long.
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go') | tee -a /dev/stderr)"
	$(GO) vet $(TAGS) ./... $(CI)
	$(GO) build -o bin/types ./.ci/types
	GOOS=darwin GOARCH=arm64 bin/types ./...
	cd bench && ../bin/types ./...
	cd examples/embed && $(GO) vet ./...
	cd tools/verify && $(GO) vet ./...
	cd deploy/aws-nat && $(GO) vet ./...
	cd tools/llmpeers && $(GO) vet ./...
	cd tools/tokens && $(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) $(TAGS) ./...

# The packages of the scripts in .ci, which ./... does not name.
CI = ./.ci/report ./.ci/touched ./.ci/types

# Packages whose tests run with the race detector, because goroutines share memory there.
RACE = \
	./internal/feature/judge \
	./internal/feature/keyset \
	./internal/feature/respond \
	./internal/frontend/api \
	./internal/frontend/egress/aside \
	./internal/frontend/egress/credential \
	./internal/frontend/egress/frames \
	./internal/frontend/egress/sentinel \
	./internal/frontend/egress/service \
	./internal/frontend/egress/upstream \
	./internal/frontend/egress/wire \
	./internal/frontend/executor \
	./internal/frontend/mcp/code \
	./internal/frontend/mcp/remote \
	./internal/frontend/mcp/server \
	./internal/kernel/approval \
	./internal/kernel/deadline \
	./internal/kernel/past \
	./internal/kernel/record \
	./internal/leaf/latch \
	./internal/observe/alert \
	./internal/observe/metrics \
	./internal/observe/notify \
	./internal/observe/telemetry \
	./internal/observe/witness \
	./internal/policy/flood \
	./internal/redact/detector \
	./internal/sandbox/process/bystander

# Packages that start a goroutine or use sync, and whose tests run without the race
# detector, each with the reason (TestRaceListIsComplete).
define NO_RACE
cmd/holdfast                          the daemons and agents that its tests start are other processes
daemon                                twice the time with the detector: what runs at once does (RACE_PART), all of it in make endure-daemon
executorpb                            generated
internal/config                       compiles patterns once, and one goroutine watches files: its tests run with the detector (RACE_PART), all of it in make endure-daemon
internal/config/register               compiles a pattern once
internal/frontend/console             three times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-daemon
internal/observe/anomaly              twice the time with the detector: what runs at once does (RACE_PART), all of it in make endure-daemon
internal/observe/halthook             its tests are those of the daemon: all of it in make endure-daemon
internal/observe/report               its tests are those of the daemon: all of it in make endure-daemon
internal/sandbox/tiers                its tests are those of the daemon: all of it in make endure-daemon
internal/policy/history               five times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-kernel
internal/worktree/snapshot            twice the time with the detector: what runs at once does (RACE_PART), all of it in make endure-snapshot
internal/worktree/versions           twice the time with the detector: what runs at once does (RACE_PART), all of it in make endure-snapshot
internal/leaf/token                   five times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-kernel
internal/policy/watch                 its lock is taken by the daemon, whose tests of watch run with the detector; all of it in make endure-daemon
internal/frontend/egress              three times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-egress
internal/frontend/egress/authority    one lock around its certificates; the tests of the proxy that run with the detector use them
internal/frontend/egress/cleaner      its engines are shared through the proxy, of which RACE_PART has tests
internal/frontend/egress/counters     its counters are shared through the proxy, of which RACE_PART has tests
internal/frontend/egress/memory       its bytes are shared through the proxy, of which RACE_PART has tests
internal/frontend/bearer              one lock for each identity; the tests of the daemon that run with the detector use it
internal/frontend/listener            one lock around its connections; the tests of the daemon that run with the detector use it
internal/frontend/mcp                 one atomic counter, which the tests of the gateway that run with the detector use
internal/frontend/mcp/gateway         four times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-mcp
internal/frontend/mcp/router          four times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-mcp
internal/frontend/mcp/service         shares states and keepers behind locks; its tests are those of the daemon (RACE_PART), all of it in make endure-daemon
internal/frontend/mcp/streamable      four times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-mcp
internal/store/sqlite                 three times the time with the detector: what runs at once does (RACE_PART), all of it in make endure-kernel
internal/feature/recount              its comparison and its status share one lock; its tests are those of the kernel
internal/leaf/table                   types are read once (sync.Once); the stores share tables, of which RACE_PART has tests
internal/kernel/flight                one lock around the flights; the tests of internal/kernel run it, of which RACE_PART has some
internal/kernel/stops                 one lock around the stops; the tests of internal/kernel run it, of which RACE_PART has some
internal/feature/toolpin              the tests of internal/kernel run it, of which RACE_PART has some
internal/kernel                       twice the time with the detector: what runs at once does (RACE_PART), all of it in make endure-kernel
internal/frontend/model/codingtest    a model for the tests of other packages, of which RACE_PART has some
internal/frontend/model/providertest  a provider for the tests of other packages, of which RACE_PART has some
internal/frontend/mcp/gatewaytest     a kernel for the tests of other packages, which run with the detector
internal/redact/format                reads bytes one by one; the tests of what is shared are those of internal/redact in RACE_PART
internal/redact/mapping               one lock for each session; the proxy shares them, of which RACE_PART has tests
internal/feature/modelvalue           one lock around what is kept of each session; the tests of the proxy that run with the detector use it
internal/redact/phone                 compiles its forms once
internal/redact/token                 reads its names of providers once
internal/redact/memory                one lock, and pages that are never handed out twice
internal/sandbox/container            the work is done by other processes; the tests of what the tier shares run with it (RACE_PART)
internal/sandbox/heir                 the heir is another process
internal/sandbox/process              the work is done by other processes; the tests of what the tier shares run with it (RACE_PART)
internal/sandbox/process/cgroup       one lock for each hierarchy; seats share them in tests of the process tier, of which RACE_PART has some
internal/sandbox/process/grant        one goroutine watches a tree; its tests are those of the process tier, of which RACE_PART has some
internal/sandbox/process/language     searches share one lock; those that build at once run with the detector (RACE_PART)
internal/sandbox/process/relay        its tests are those of the process tier, of which RACE_PART has some
internal/sandbox/process/seccomp      computes lists once, by sync.OnceValue
internal/sandbox/sandboxtest          attempts for the tests of other packages, of which RACE_PART has some
internal/sandbox/vm                   the work is done by other processes; the tests of what the tier shares run with it (RACE_PART)
internal/leaf/schema                  shares metaschemas that are compiled once; their tests run with the detector (RACE_PART)
internal/store/storetest              runs in the tests of internal/store/sqlite, in RACE_PART
internal/policy/constitution          computes values once, by sync.Once and sync.OnceValue
internal/cli/filter                   one goroutine reads the input of a command, and its result comes by a channel
internal/cli/inflighttest             used by tests of other processes only
internal/leaf/syncwatch               records for the tests of other packages, of which some run with the detector
endef

# Packages of which some tests run with the race detector, and the pattern of these tests.
# All patterns but that of redact are joined, and run in each of these packages.
define RACE_PART
./daemon                         TestExecutor(Flood|ClientsVanish|WaitEnds)$$|TestD9_budgetsStandAtOneMoment|TestAttackWatch_(in_flight|flood)|TestAttackWebhook_told|TestEgress_Daemon_(reloadInMidStream|haltCutsAndRefuses)|TestBad_Egress_reload|TestD34_HaltHooks_get|TestModelsNeverPassACap|TestNetwork_DiesWithTheRun|TestServeAndAsk|TestReloadIsWholeOrNotAtAll|TestBackupWhileRunning|TestK7_D11_webhook_tells|Test001_Layer5_CostPerHour|TestPanicsOfTheDaemon|TestLingerWaits
./internal/config                TestWatch
./internal/frontend/egress       TestEgress_(ManyAtOnce|BodiesTogether|StreamsArrive|AStream|AClientThat|CloseWaits|AWebSocket|ATunnel|EventsGoOnOneByOne)|TestAttack_(ARateIsNotExceededAtOnce|AThousandAborted|OneRecordAndTwoRequests|OneAgentHolds)|TestPart4_|TestBad_ACutTunnel
./internal/redact                BodiesReadWithOneEngineStayApart|AttackTogether
./internal/frontend/mcp/gateway  TestParallelCalls|TestOutbox|TestPanics|TestClientThatDoesNotRead|TestServerThatDoesNotRead|TestServerDiesMidCall|TestClientGoesMidCall|TestBusy|TestDisconnects
./internal/frontend/mcp/router   TestRouter(Cancels|Ends|Keeps|Outlives)|TestPanics
./internal/frontend/mcp/streamable  TestHTTP(ManyClients|Vanish|Close)|TestPanics|TestAttackHTTP_one_group
./internal/store/sqlite          TestStore$$|TestAlone|TestLull|TestViewOvertaken|TestRunway
./internal/kernel                TestFeature|TestKernelContext_(AC1_|INV7)|TestK3_(AC3_INV1_race|rates_race)|TestK5_D10_race|TestK6_AC5|TestK7_(race|D11_two_reviewers|D11_identical|awaiting)|TestHaltCutsAndRefuses|TestEgress_D(9_at_once|34_a_stream)|TestD34_a_halt|TestTree_|TestPast_(parallel|reload)|Test001_Layer1_Budget_exceeded_by_many|TestFMEA_K105_1|TestVersions_|TestD11_forgetting|TestLease|TestAttackFalseAlarm
./internal/frontend/console      TestStreamsAreBounded|TestEvents$$|TestAttackLinkRace|TestAttack_(link_raced|one_browser)|TestPassphraseOneAtATime
./internal/observe/anomaly       TestD41a_(FloodOfFindings|NoRoomHaltsOnce)|TestAttackWatch_halt
./internal/policy/history        TestRulesAreSwapped|TestParallelRequestsNeverPass|TestLoadingWhile
./internal/worktree/snapshot     TestTwo(TreesAtOnce|AtOnce)|TestBegunWhileAnotherWaits
./internal/leaf/token            TestConcurrentUse$$
./internal/sandbox/container     TestDockerBadEngine|TestDemux
./internal/sandbox/process       TestClose_underRuns|TestWarm_eachServesOnce|TestFiltersAreCompiledOnce|TestWorkspaceHalt|TestWorkspaceTerminal|TestTroubles|TestSeats
./internal/sandbox/process/language TestManyBuildAtOnce|TestBuilderIsOvertaken|TestScriptsAreAskedLast
./internal/sandbox/vm            TestBadMachines|TestSilent
./internal/leaf/schema           Concurrent
endef
export RACE_PART

# What the race detector does not instrument: SQLite (translated C with its own locks),
# ciphers and compression, which share nothing, JSON tokenising, which shares only pools of
# sync, base64, the redaction engine, and the BPF machine that tests compare ours with. Most of the
# time was spent there. A package that keeps values in a sync.Map must be instrumented:
# otherwise the detector misses how goroutines synchronise, and reports false races.
UNWATCHED = $(foreach p,golang.org/x/crypto/... crypto/internal/fips140/... encoding/base64 modernc.org/memory modernc.org/libc/... modernc.org/sqlite/lib golang.org/x/net/bpf unicode/utf8 compress/flate hash/adler32 github.com/andybalholm/brotli github.com/go-json-experiment/json/jsontext github.com/go-json-experiment/json/internal/jsonwire github.com/holdfast-dev/holdfast/internal/redact/...,-gcflags=$(p)=-race=false)

# The race detector needs cgo; the product does not. Without atexit_sleep_ms each of the
# many processes that the tests start sleeps a second at its end. The tests were vetted
# before, by more than go test does. Many tests wait: -p 3, twice, keeps two cores busy. A go test
# that fails without an event still fails.
GOTEST = $(GO) test -p 3 -vet=off -toolexec='env GOGC=400' -count=1 -timeout 30m -json
RACETEST = CGO_ENABLED=1 $(GOTEST) -race
REPORT = | $(GO) run ./.ci/report
FAILED = || echo '{"Action":"fail","Package":"go test"}'
export GORACE = atexit_sleep_ms=50

# The packages without the race detector whose tests take longest: they start first, so
# that none runs alone at the end.
LONG = ./internal/sandbox/process ./internal/kernel ./daemon ./cmd/holdfast ./internal/sandbox/container \
	./internal/frontend/egress ./internal/sandbox/vm ./examples/mcp-guard/screenshots

# The tests with the race detector run beside the others: tests wait more than they compute.
once:
	$(GO) build -o bin/report ./.ci/report
	bin/report \
	<($(GOTEST) $(LONG) $$($(GO) list ./... $(CI) | grep -vxFf <($(GO) list $(RACE) $(LONG))) $(FAILED)) \
	<({ $(RACETEST) $(UNWATCHED) $(RACE) $(FAILED); \
	$(RACETEST) $(UNWATCHED) -run "$$(grep -v /redact <<< "$$RACE_PART" | awk '{print $$2}' | paste -sd '|')" \
		$$(grep -v /redact <<< "$$RACE_PART" | cut -d ' ' -f 1) $(FAILED); \
	$(RACETEST) -run "$$(awk '/redact/ {print $$2}' <<< "$$RACE_PART")" ./internal/redact $(FAILED); \
	for dir in tools/verify deploy/aws-nat; do (cd $$dir && $(GOTEST) ./...) $(FAILED); done; })

example: build
	examples/mcp-guard/run

# make endure-NAME runs the packages of ENDURE_NAME with the tag endure, and those of
# RACE_WHOLE_NAME, all of them, with the race detector. make peers-NAME runs the tests
# of their files with the tag peers.
ENDURE_kernel = ./internal/kernel ./ledger ./internal/leaf/schema ./internal/store/sqlite ./internal/redact ./internal/redact/stream
ENDURE_egress = ./internal/frontend/egress ./internal/frontend/model/dialect
ENDURE_mcp = ./internal/frontend/mcp/gateway ./internal/frontend/mcp/router ./internal/frontend/mcp/streamable ./internal/frontend/mcp/remote ./internal/frontend/mcp/server
ENDURE_sandbox = ./internal/sandbox/process ./internal/sandbox/process/bystander ./internal/sandbox/process/cgroup ./internal/sandbox/process/seccomp ./internal/sandbox/container ./internal/sandbox/vm
ENDURE_snapshot = ./internal/worktree/snapshot
ENDURE_daemon = ./daemon ./internal/observe/anomaly ./internal/frontend/console
ENDURE_command = ./cmd/holdfast
# In the module of benchmarks: each of them runs, and the peers do the same work.
ENDURE_bench = . ./sandbox ./peers ./redaction
RACE_WHOLE_egress = ./internal/frontend/egress
RACE_WHOLE_mcp = ./internal/frontend/mcp/gateway ./internal/frontend/mcp/router ./internal/frontend/mcp/streamable
RACE_WHOLE_kernel = ./internal/kernel ./internal/store/sqlite ./internal/policy/history ./internal/leaf/token
RACE_WHOLE_daemon = ./daemon ./internal/config ./internal/observe/anomaly ./internal/frontend/console ./internal/policy/watch
RACE_WHOLE_snapshot = ./internal/worktree/snapshot ./internal/worktree/versions
PEERS_command = ./cmd/holdfast
PEERS_mcp = ./internal/frontend/mcp/remote ./examples/mcp-guard
PEERS_daemon = ./daemon

ENDURES = $(patsubst ENDURE_%,endure-%,$(filter ENDURE_%,$(.VARIABLES)))
PEERSES = $(patsubst PEERS_%,peers-%,$(filter PEERS_%,$(.VARIABLES)))
.PHONY: $(ENDURES) $(PEERSES)
endure: $(ENDURES)
peers: $(PEERSES)
$(ENDURES): endure-%:
	{ cd $(if $(filter bench,$*),bench,.) && $(GOTEST) -tags endure $(ENDURE_$*) $(FAILED); \
	$(if $(RACE_WHOLE_$*),$(RACETEST) $(UNWATCHED) $(RACE_WHOLE_$*) $(FAILED);) } $(REPORT)
$(PEERSES): peers-%:
	{ $(GOTEST) -tags peers -run "^($$(grep -lE '^//go:build .*\bpeers\b' $(PEERS_$*:=/*_test.go) \
		| xargs grep -ohE '^func Test\w+' | cut -c 6- | paste -sd '|'))$$" $(PEERS_$*) $(FAILED); } $(REPORT)

# The targets that .ci/run adds for a change in a directory (.ci/touched). The longest
# directory counts; "." is only the files at the root, the root package left out. A directory
# without a row runs all targets, as the root package does.
define TOUCHES
.                                none
.ci                              none
LICENSE                          none
Makefile                         none
README.md                        none
SECURITY.md                      none
bench                            endure-bench
cmd/holdfast                     endure-command peers-command
daemon                           endure-daemon peers-daemon
deploy                           none
doc                              none
examples                         peers-mcp
executorpb                       endure-daemon
go.mod                           all
go.sum                           all
internal/assure                  endure-command
internal/cli                     endure-command
internal/config                  endure-daemon peers-daemon
internal/feature                 endure-daemon
internal/frontend/console        endure-daemon
internal/frontend/egress         endure-egress peers-command
internal/frontend/egress/service  endure-egress endure-daemon
internal/frontend/mcp            endure-mcp peers-mcp peers-command
internal/frontend/model          endure-egress peers-daemon peers-command
internal/kernel                  endure-kernel endure-daemon
internal/leaf/schema             endure-kernel
internal/leaf/token              endure-kernel
internal/observe                 endure-daemon
internal/policy                  endure-kernel endure-daemon
internal/policy/constitution     endure-kernel
internal/policy/history          endure-kernel
internal/policy/watch            endure-daemon
internal/redact                  endure-kernel endure-egress
internal/redact/mapping          endure-kernel endure-egress peers-command
internal/sandbox                 endure-sandbox endure-command
internal/sandbox/tiers           endure-daemon
internal/store/sqlite            endure-kernel endure-daemon
internal/store/statedir          endure-daemon
internal/store/storetest         endure-kernel
internal/worktree/snapshot       endure-snapshot
internal/worktree/versions       endure-snapshot
ledger                           endure-kernel
testdata                         none
tools                            none
endef

bench:
	for name in kernel gateway egress halt llm page redact redaction rules sandbox snapshot; do $(GO) run -C bench . $$name || exit 1; done
	cd bench && $(GO) test -run '^$$' -bench . -benchtime 1s ./peers

clean:
	rm -rf bin
