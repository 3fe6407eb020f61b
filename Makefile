# make test is everything that CI runs. make quick is the inner loop.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
export CGO_ENABLED = 0

.PHONY: build quick test deps vet staticcheck race example bench clean

# What is handed out names no folder of the machine that built it; make test builds
# as its tests do, for which everything is compiled already.
TRIM = -trimpath

build:
	$(GO) build $(TRIM) -o bin/holdfast ./cmd/holdfast

quick:
	$(GO) test -short ./...

# What is fetched is waited for while what is there is looked at.
test:
	$(MAKE) -j2 deps vet
	$(MAKE) TRIM= staticcheck race example

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

# Compilers and checkers are done sooner with less looking for what they need no
# more: in memory several times as large.
vet staticcheck: export GOGC = 400

# For another system, and of the module of benchmarks, which no test runs, types are
# checked: to compile all that they need takes ten times as long.
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	$(GO) vet ./... ./.ci/report ./.ci/types
	$(GO) build -o bin/types ./.ci/types
	GOOS=darwin GOARCH=arm64 bin/types ./...
	cd bench && ../bin/types ./...
	cd tools/verify && $(GO) vet ./...
	cd deploy/aws-nat && $(GO) vet ./...
	cd tools/llmpeers && $(GO) vet ./...
	cd tools/tokens && $(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

# What the race detector does not look into: SQLite, which is C that was
# translated and locks by itself, ciphers and what packs, which share nothing, what cuts
# JSON into tokens, which shares but pools of sync's own, and the redaction
# engine, which reads bytes one by one (its own tests of what is shared run with
# the detector after all others), and the machine of filters that tests compare ours with. They are where most of the time went, and hold
# none of our memory but what they are called with. What keeps something in a
# sync.Map, as those do that make values of JSON, must be looked into: the detector would not see
# by what two goroutines agree, and find races that are none.
UNWATCHED = $(foreach p,golang.org/x/crypto/... modernc.org/libc/... modernc.org/sqlite/lib golang.org/x/net/bpf unicode/utf8 compress/flate hash/adler32 github.com/andybalholm/brotli github.com/go-json-experiment/json/jsontext github.com/go-json-experiment/json/internal/jsonwire github.com/holdfast-dev/holdfast/internal/redact,-gcflags=$(p)=-race=false)

# The tests that do something thousands of times (internal/repeat): with the
# detector they do it a tenth as often, and here in full without it.
ENDURING = TestKill9|TestSemanticsOfRandom|TestEscapeSuite|TestFilterIsTheProfile|TestPropertyRandom|ThousandTimes|TestHTTPDisconnects|TestHTTPVanish|TestHTTPManyClients|TestRandomPeers|TestNothingIsLeft|TestNetwork_LeavesNothing|TestHostile|TestHonestLarge|TestWarm_nothingIsLeft|TestManyRunsLeave|TestBad_AGigabyte|TestAttack_AThousand
ENDURE = ./internal/sandbox/container ./kernel ./internal/egress ./internal/mcp/gateway ./internal/mcp/remote ./internal/mcp/server ./internal/repeat ./internal/schema ./internal/sandbox/process

# The race detector needs cgo; the product does not. Without atexit_sleep_ms
# each of the many processes that the tests start sleeps a second at its end.
# The longest tests are named first, so that nobody waits for them at the end.
# What is tested has been vetted, by more than go test does. What compiles it collects
# less, as above, and the tests as they always do. A few tests that fail are run once
# more, alone, and told of by name: they have bounds of time, and what runs beside them
# takes it. What a second look cannot mend has none (.ci/report).
PACKAGES = -vet=off -toolexec='env GOGC=400' -timeout 60m -json
WATCHED = $(GO) test -race $(UNWATCHED) $(PACKAGES)
PLAIN = $(GO) test $(PACKAGES)
race: export GORACE = atexit_sleep_ms=50
race:
	export CGO_ENABLED=1; $(WATCHED) ./internal/sandbox/process ./cmd/holdfast ./daemon ./kernel ./internal/egress ./... ./.ci/report ./.ci/types | $(GO) run ./.ci/report $(WATCHED)
	$(PLAIN) -run '$(ENDURING)|TestTimesInFull|TestSmallLimitsAreNamed' $(ENDURE) | $(GO) run ./.ci/report $(PLAIN)
	CGO_ENABLED=1 $(GO) test -race $(filter-out %/internal/redact=-race=false,$(UNWATCHED)) -vet=off -run 'Secret|Door|Literal|Engine' ./internal/redact
	cd tools/verify && $(GO) test -vet=off ./...
	cd deploy/aws-nat && $(GO) test -vet=off ./...

example: build
	examples/mcp-guard/run

bench:
	$(GO) run ./cmd/holdfast bench kernel
	$(GO) run ./cmd/holdfast bench gateway
	$(GO) run ./cmd/holdfast bench egress
	$(GO) run ./cmd/holdfast bench llm
	$(GO) run ./cmd/holdfast bench page
	$(GO) run ./cmd/holdfast bench redact
	$(GO) run ./cmd/holdfast bench rules
	$(GO) run ./cmd/holdfast bench sandbox
	$(GO) test -run '^$$' -bench 'EightGates|Gate/|BareLibraries' ./kernel
	$(GO) test -run '^$$' -bench PastRebuild -benchtime 1x ./kernel
	cd bench && $(GO) test -run '^$$' -bench . -benchtime 1s ./...

clean:
	rm -rf bin
