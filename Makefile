# Herald's commands. `make run` and `make test` set up everything on a fresh Debian machine with Go.

TAGS     := sqlite_fts5
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -s -w -X main.buildVersion=$(VERSION)
FUZZTIME ?= 3s
RUNS     ?= 100
SEED     ?= 1
export CGO_ENABLED := 1

.PHONY: help build run test quick unit crash torture fuzz lint generate bench clean compiler browser oracles engine sshd python
.DEFAULT_GOAL := build

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1:/p' $(MAKEFILE_LIST) | awk -F: '{ printf "  make %-10s %s\n", $$1, substr($$0, length($$1) + 2) }'

build: compiler ## bin/herald
	go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/herald ./cmd/herald

run: build ## build and run with no configuration: the browser chat on loopback
	bin/herald run

test: compiler browser sshd python oracles engine unit crash fuzz ## everything that CI runs beside lint

quick: compiler ## the tests that need no engine, no npm and no browser, without the race detector: under three minutes
	go test -short -tags $(TAGS) -timeout 5m ./...

unit: ## all tests with the race detector
	go test -race -tags $(TAGS) -timeout 15m ./...

crash: ## kill the real binary at every commit edge, and $(RUNS) seeded random runs
	RUNS=$(RUNS) SEED=$(SEED) go test -race -tags '$(TAGS) failpoint' -timeout 3h -count=1 ./cmd/herald/crash

torture: ## the same with 1,000 random runs, and 2,000 random histories of checkpoints
	$(MAKE) crash RUNS=1000
	go test -tags $(TAGS) -timeout 3h -count=1 ./tools/checkpoint -run TestDriver -histories 2000

fuzz: ## every fuzz target for $(FUZZTIME); a hunt is make fuzz FUZZTIME=5m
	@set -e; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -h '^func Fuzz' $$dir/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
			.ci/fuzz $$dir $$target $(FUZZTIME) $(TAGS); \
		done; \
	done

lint: compiler ## gofmt, vet, staticcheck, module checks, the dead-code gate
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	go vet -tags '$(TAGS)' ./...
	go vet -tags '$(TAGS) failpoint' ./sessions/... ./cmd/...
	go tool staticcheck -tags '$(TAGS)' ./...
	go mod verify
	go mod tidy -diff
	.ci/deadcode

generate: ## the documents that are made from the code: docs/configuration.md
	go test -tags $(TAGS) -count=1 ./gateway -run TestDocs -update

bench: build ## start, idle, latency, load, sessions, crash and soak phases against the fakes; BENCH=-help shows what can be set
	go build -tags $(TAGS) -o bin/heraldbench ./cmd/heraldbench
	bin/heraldbench -cmd 'bin/herald run' $(BENCH)

compiler: ## a C compiler, for SQLite
	@command -v cc >/dev/null 2>&1 || .ci/need gcc libc6-dev

browser: ## Chromium, for the tests of the page
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || .ci/need chromium

sshd: ## a server for the tests of commands on another host; it runs only inside of them
	@[ -x /usr/sbin/sshd ] || .ci/need openssh-server

ORACLE := platforms/platformtest/oracle

python: ## for the tests of jobs' scripts
	@[ -x /usr/bin/python3 ] || .ci/need python3-minimal

oracles: ## the clients that others wrote, for the tests of the fake servers
	@command -v npm >/dev/null 2>&1 || .ci/need nodejs npm
	@cmp -s $(ORACLE)/package-lock.json $(ORACLE)/node_modules/.installed || { echo "npm ci in $(ORACLE)"; \
		npm ci --prefix $(ORACLE) --no-progress --loglevel=error && cp $(ORACLE)/package-lock.json $(ORACLE)/node_modules/.installed; }

engine: ## a Docker engine and the images of the sandbox tests
	@.ci/engine

clean: ## remove what was built
	rm -rf bin dist
