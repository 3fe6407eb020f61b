# make test is everything that CI runs. make quick is the inner loop.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
export CGO_ENABLED = 0

.PHONY: build quick test deps vet staticcheck race example bench clean

build:
	$(GO) build -trimpath -o bin/holdfast ./cmd/holdfast

quick:
	$(GO) test -short ./...

test: deps vet staticcheck race example

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

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/holdfast
	cd bench && $(GO) vet ./...
	cd tools/verify && $(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

# What the race detector does not look into: SQLite, which is C that was
# translated and locks by itself, ciphers and what packs, which share nothing, and the redaction
# engine, which reads bytes one by one (its own tests of what is shared run with
# the detector after all others). They are where most of the time went, and hold
# none of our memory but what they are called with. What keeps something in a
# sync.Map, as readers of JSON do, must be looked into: the detector would not see
# by what two goroutines agree, and find races that are none.
UNWATCHED = $(foreach p,golang.org/x/crypto/... modernc.org/libc/... modernc.org/sqlite/lib unicode/utf8 compress/flate hash/adler32 github.com/andybalholm/brotli github.com/holdfast-dev/holdfast/internal/redact,-gcflags=$(p)=-race=false)

# The tests that do something thousands of times (internal/repeat): with the
# detector they do it a tenth as often, and here in full without it.
ENDURING = TestKill9|TestSemanticsOfRandom|TestPropertyRandom|ThousandTimes|TestHTTPDisconnects|TestHTTPVanish|TestNothingIsLeft|TestHostileServers|TestWarm_nothingIsLeft|TestManyRunsLeave|TestBad_AGigabyte|TestAttack_AThousand
ENDURE = ./kernel ./internal/egress ./internal/mcp/gateway ./internal/mcp/remote ./internal/mcp/server ./internal/repeat ./internal/sandbox/process

# The race detector needs cgo; the product does not. Without atexit_sleep_ms
# each of the many processes that the tests start sleeps a second at its end.
# The longest tests are named first, so that nobody waits for them at the end.
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 $(GO) test -race $(UNWATCHED) -timeout 20m -json ./internal/sandbox/process ./... ./.ci/report | $(GO) run ./.ci/report
	$(GO) test -timeout 20m -run '$(ENDURING)|TestTimesInFull' -json $(ENDURE) | $(GO) run ./.ci/report
	CGO_ENABLED=1 $(GO) test -race -run 'Secret|Door|Literal|Engine' ./internal/redact
	$(GO) test -run TestSmallLimitsAreNamed ./internal/sandbox/process
	cd tools/verify && $(GO) test ./...

example: build
	examples/mcp-guard/run

bench:
	$(GO) run ./cmd/holdfast bench kernel
	$(GO) run ./cmd/holdfast bench gateway
	$(GO) run ./cmd/holdfast bench egress
	$(GO) run ./cmd/holdfast bench page
	$(GO) run ./cmd/holdfast bench redact
	$(GO) run ./cmd/holdfast bench rules
	$(GO) run ./cmd/holdfast bench sandbox
	$(GO) test -run '^$$' -bench 'EightGates|Gate/|BareLibraries' ./kernel
	$(GO) test -run '^$$' -bench PastRebuild -benchtime 1x ./kernel
	cd bench && $(GO) test -run '^$$' -bench . -benchtime 1s ./...

clean:
	rm -rf bin
