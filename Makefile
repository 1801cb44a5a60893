# Needs Go, git and make; `make deps` installs the rest. `make` alone shows what there is.

GO         ?= go
VERSION    ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
STATICCHECK = $(GO) tool -modfile=tools/lint/go.mod staticcheck
TESTFLAGS  ?=
FUZZTIME   ?= 10s

.DEFAULT_GOAL := help
.PHONY: release release-test vulncheck help deps page page-types page-test screenshots build run test check test-mysql lint fmt bench bench-page bench-peers bench-compare bench-baseline bench-go fuzz poison faults soak search clean test-galera test-group-replication

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## Install a database server program and a C compiler, if missing
	@tools/deps.sh

# Without cgo: the same binary everywhere, whether or not there is a C compiler. The version comes from here, not from
# Go's own stamp, which stops the build where git is missing or distrusts the folder's owner.
build: page ## Build bin/go-crontab with its web console
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-X go-crontab/cli.version=$(VERSION)' -o bin/go-crontab .

# The console is built again when something of it has changed. What it holds is embedded, so it comes before the program.
page: page/dist/index.html ## Build the web console (page/dist)

page/node_modules/.package-lock.json: page/package-lock.json
	@tools/deps.sh page
	cd page && npm ci --no-audit --no-fund
	@touch $@

page/dist/index.html: page/node_modules/.package-lock.json page/index.html page/vite.config.ts page/tsconfig.json $(wildcard page/src/* page/src/*/*)
	@tools/deps.sh page
	cd page && npm run --silent build
	@touch $@

page-types: ## Write the types of the API for the console (page/src/types.ts)
	$(GO) run ./tools/pagetypes page/src/types.ts

page-test: page ## Test the console: a real browser on a real cluster
	@tools/deps.sh server page browser
	CGO_ENABLED=0 $(GO) build -o bin/go-crontab .
	cd page && npm run --silent e2e

screenshots: build ## Take the pictures in docs/images
	@tools/deps.sh server page browser
	cd page && npm run --silent screenshots

run: ## Build, then run a cluster with its own database and web page (bin/go-crontab dev)
	@tools/deps.sh server
	@$(MAKE) --no-print-directory build
	bin/go-crontab dev

# Packages that take long begin first. lint has run go vet already.
LONG_FIRST = ./node ./cli ./api ./schedule
TESTS      = -vet=off -parallel 4 -timeout 25m $(TESTFLAGS) $(LONG_FIRST) ./...

# Most tests wait, for due times or for the end of a session, so one package more than there are processors is tested at
# a time.
test: deps lint ## Lint, and run the tests of all packages, without the longest (TESTFLAGS='-run X -v')
	$(GO) test -short -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) $(TESTS)

# tools/release reads the Dockerfile, the compose file, the manifests, the unit and the packages against what serve takes.
check: deps lint ## What CI runs: lint, all tests with the race detector, some faults, deploy/, known vulnerabilities
	CGO_ENABLED=1 $(GO) test -race $(TESTS)
	$(GO) test -timeout 10m $(TESTFLAGS) ./test/model
	$(GO) test -tags failpoint $(TESTFLAGS) ./internal/failpoint
	$(FAULTS) -parallel 4 -timeout 15m -run '$(GATE)'
	cd tools/release && $(GO) test -timeout 10m $(TESTFLAGS) ./...
	cd tools/benchplot && $(GO) test $(TESTFLAGS) ./...
	GO=$(GO) tools/vulncheck.sh

# The server comes out of Debian or Ubuntu into a folder of its own (tools/engine.sh, which names those there are). All
# tests that use a database, one package after the other, and those faults that an engine may answer in its own way.
ENGINE      ?= mysql-9
MYSQL_FAULTS = F01|F03|F07|F09|F10|F11|F12|F13|F14|F16|F17|F21|F22|F23|F24|F25|F27|F41|F42Kills|F44|F47

test-mysql: deps ## Run the tests that use a database, and a cut of the faults, on a real MySQL 9 (ENGINE=mysql-8.4)
	@server=$$(tools/engine.sh $(ENGINE)) || exit 1; export GOCRONTAB_MYSQLD="$$server"; status=0; set -x; \
	$(GO) test -count 1 -p 1 -parallel 4 -timeout 25m $(TESTFLAGS) $$(grep -rlE --include='*_test.go' '"go-crontab/(internal/privatedb|test/testdb)"' . | \
		xargs -n 1 dirname | grep -vx ./test/faults | sort -u) || status=1; \
	($(FAULTS) -parallel 4 -timeout 40m -run '$(or $(RUN),$(MYSQL_FAULTS))') || status=1; exit $$status

lint: ## Check formatting, go vet, staticcheck
	@files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run make fmt:" $$files >&2; exit 1; }
	$(GO) vet ./...
	GOOS=windows $(GO) build -o /dev/null . # the client
	$(GO) vet -tags faults ./test/faults
	$(GO) vet -tags 'faults members' ./test/faults ./test/members
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags faults ./test/faults
	$(STATICCHECK) -tags 'faults members' ./test/faults ./test/members

fmt: ## Format the code
	gofmt -w .

# What is measured goes to bin/bench/*.json, and from there into docs/internals/performance.md with its plots.
REPEAT ?= 3
BENCH   = mkdir -p bin/bench && bin/go-crontab bench --repeat $(REPEAT) -o json

bench: deps build ## Measure, and write docs/internals/performance.md (REPEAT=3; an hour on a quiet machine)
	$(BENCH) steady herd burst shell http idle failover > bin/bench/usual.json
	$(BENCH) steady --rate 5000 > bin/bench/steady-5000.json
	$(BENCH) steady --rate 10000 > bin/bench/steady-10000.json
	$(BENCH) steady --rate 20000 > bin/bench/steady-20000.json
	$(BENCH) http-steady --rate 5000 > bin/bench/http-5000.json
	$(BENCH) slow --rate 5000 --round-trip 20ms > bin/bench/slow-5000.json
	$(BENCH) burst --nodes 3 > bin/bench/burst-3.json
	$(BENCH) http-herd nodes slow handler api > bin/bench/more.json
	$(BENCH) table > bin/bench/table.json
	$(BENCH) purge --rate 5000 > bin/bench/purge.json
	$(BENCH) table --jobs 10000000 --repeat 1 > bin/bench/table-10000000.json
	$(BENCH) idle --jobs 1000000 > bin/bench/idle-1000000.json
	$(BENCH) --binlog steady herd burst api > bin/bench/binlog.json
	$(MAKE) --no-print-directory bench-page

bench-peers: build ## Measure a backlog beside River on PostgreSQL (needs apt-get install postgresql; REPEAT=3; 5 minutes)
	$(GO) test -c -o bin/trip.test ./test/trip
	cd tools/peers && $(GO) run . -repeat $(REPEAT) -go-crontab ../../bin/go-crontab -trip ../../bin/trip.test

bench-page: ## Write what make bench measured into docs/internals/performance.md
	$(GO) run ./tools/benchpage -page docs/internals/performance.md -plots images bin/bench/*.json
	cd tools/benchplot && $(GO) run . -out ../../docs/internals/images ../../bin/bench/*.json

# How often hot functions allocate is the same on any machine; how long they take is for benchstat to compare.
HOT = $(GO) test ./job -run '^$$' -bench 'CronNext|ParseCron' -benchmem -count 6 -benchtime 2000x

bench-compare: ## Hold the hot functions against internal/bench/baseline.txt
	@mkdir -p bin
	$(HOT) > bin/bench-now.txt
	$(GO) tool -modfile=tools/lint/go.mod benchstat internal/bench/baseline.txt bin/bench-now.txt
	$(GO) run ./tools/benchcheck internal/bench/baseline.txt bin/bench-now.txt

bench-baseline: ## Take the hot functions of now as the baseline
	$(HOT) > internal/bench/baseline.txt

bench-go: deps ## Measure with Go's benchmarks: a cluster in one process, claims, commands, HTTP, the guard
	$(GO) test ./node -run '^$$' -bench . -benchtime 1x
	$(GO) test ./test/trip -run '^$$' -bench . -benchtime 1x
	$(GO) test ./execute -run '^$$' -bench 'Bash|BareExec|HTTP' -count 3
	$(GO) test ./internal/guard -run '^$$' -bench . -count 3
	$(GO) test ./job -run '^$$' -bench .

# One package and one fuzz test at a time is all that go test takes.
fuzz: deps ## Run every fuzz test for a short time (FUZZTIME=10s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u | while read -r dir; do \
		for name in $$($(GO) test -list '^Fuzz' "$$dir" | grep '^Fuzz'); do \
			echo "$$dir $$name"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
		done || exit 1; \
	done

poison: ROUNDS ?= 100
poison: deps ## Write what no API would take into all columns of all tables of running nodes (ROUNDS=100, SEED=n the first one, else any)
	GOCRONTAB_POISON_ROUNDS=$(ROUNDS) GOCRONTAB_POISON_SEED=$(or $(SEED),$(shell date +%s)) $(GO) test -race -count 1 -timeout 0 -run '^TestPoison$$' -v ./node

# Real node processes on real servers, see docs/internals/reliability.md. Inside the folder go test shows each line at once.
FAULTS = cd test/faults && GOCRONTAB_FAULTS_SEED=$(SEED) GOCRONTAB_FAULTS_LONG=$(LONG) GOCRONTAB_FAULTS_HOURS=$(HOURS) GOCRONTAB_FAULTS_ROUNDS=$(ROUNDS) GOCRONTAB_FAULTS_POINTS='$(POINTS)' $(GO) test -tags faults -count 1

# What each change has to pass: a node killed, stopped, cut off; MySQL killed; commits of which nobody knows; commands that
# hold on to their output or hide.
GATE = F01|F05|F09|F10|F12|F33|F35

faults: deps ## Break running clusters in all ways (LONG=1 more often, RUN=F01 one of them, SEED=n the same again)
	$(FAULTS) -parallel 6 -timeout $(if $(LONG),8h,30m) -run '$(or $(RUN),.)'

# Servers that replicate among each other, see docs/engines.md: the tests of what makes transactions on one of three, then
# nodes on all of them, some of which are killed or frozen.
MEMBERS = cd test/faults && GOCRONTAB_FAULTS_SEED=$(SEED) GOCRONTAB_FAULTS_LONG=$(LONG) $(GO) test -tags 'faults members' -count 1 -parallel 1 -timeout $(if $(LONG),8h,3h)

test-galera: deps ## Break clusters on three members of Galera
	@tools/deps.sh galera
	$(MEMBERS) -run '$(or $(RUN),^TestGalera)'

test-group-replication: deps ## Break clusters on three members of MySQL Group Replication
	GOCRONTAB_MYSQLD=$$(tools/engine.sh mysql-9) && export GOCRONTAB_MYSQLD && $(MEMBERS) -run '$(or $(RUN),^TestGroup)'

search: ## Search the states of the trip of a run with one fault more
	GOCRONTAB_LONG_SEARCH=1 $(GO) test ./test/model -run TestNoViolation -timeout 4h -v

soak: HOURS ?= 1
soak: deps ## A random fault every 90 s for HOURS=1; what must not grow is not to have grown
	$(FAULTS) -timeout 0 -run '^TestSoak$$'

release: page ## Make what a release consists of, in dist/ (programs, .deb, .rpm, bill of materials)
	@tools/deps.sh release
	tools/release.sh dist

# As root, with debootstrap: the packages are installed into a Debian of their own.
release-test: release ## Install the packages into a clean Debian, run a node and the unit there; build twice, compare
	tools/package-test.sh dist
	tools/release.sh dist/again >/dev/null
	cmp dist/SHA256SUMS dist/again/SHA256SUMS
	rm -r dist/again
	cd tools/release && $(GO) test -count 1 ./...

vulncheck: ## Look for known vulnerabilities in what is used (asks vuln.go.dev; a warning if it does not answer)
	GO=$(GO) tools/vulncheck.sh

clean: ## Remove what was built, and test leftovers (not /data)
	rm -rf bin dist page/node_modules page/dist/assets page/dist/index.html page/e2e/out
	find . -path ./.git -prune -o -type f \( -name '*.test' -o -name '*.prof' -o -name 'coverage.out' -o -name 'coverage.html' \) -exec rm -f {} +
