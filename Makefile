# make run serves on ./data.svc; make test passes the tests. Both need Go alone.
SHELL := /bin/bash
export CGO_ENABLED := 0
# what /version tells; go build stamps it by itself unless -buildvcs=false is set
STAMP := $(shell git log -1 --format='-X main.commit=%H -X main.commitDate=%cI' 2>/dev/null)

.PHONY: bench-against bench-cores bench-group bench-network bench-publish bench-texts bench-upkeep run build release release-twice generate test check walk look api test-race test-arm64 test-invariants fuzz crash network-test powercut mutate-syncs bench bench-quick bench-ann bench-ann-peers hostile hostile-busy pprof

run: build
	./svc

build:
	go build -trimpath -ldflags "-s -w $(STAMP)" -o svc ./cmd/svc

# dist/ gets an archive for each of TARGETS, with a bill of materials in it, a package of Debian for each Linux, and SHA256SUMS. The
# same commit, maintainer and Go give the same bytes, wherever and whenever.
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,freebsd/amd64,windows/amd64
# who answers for the packages of Debian: MAINTAINER='Name <address>'
MAINTAINER ?=
release:
	go run ./release --out dist --targets $(TARGETS) $(if $(MAINTAINER),--maintainer '$(MAINTAINER)')

# the bytes of two releases from different directories are compared; FRESH=1 has each compile everything for itself
release-twice:
	TARGETS=$(TARGETS) .ci/release-twice

# the completions and the manual page, from the table of options
generate: build
	./svc generate bash > deploy/completions/svc.bash
	./svc generate zsh > deploy/completions/_svc
	./svc generate fish > deploy/completions/svc.fish
	./svc generate man > deploy/svc.1

# tests of fastapi take half of the time that go test allows by default; a busy machine needs more
test: check
	go test -timeout 25m ./...

# WALK random requests against a model; a run that fails names its seed
WALK ?= 100000
walk:
	go test -timeout 3h -count 1 -run '^TestWalk$$' ./fastapi -walk.requests $(WALK)

# fmt, vet, staticcheck and the rules of the house. Go downloads and builds staticcheck when it first runs; where it cannot, or with
# STATICCHECK=, staticcheck is left out.
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
check:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt-ed: $$bad"; exit 1; fi
	go vet ./...
	@if [ -z "$(STATICCHECK)" ] || ! go run $(STATICCHECK) -version > /dev/null 2>&1; then echo "staticcheck is left out"; \
	else go run $(STATICCHECK) ./...; fi

# the race detector is the one thing here that needs a C compiler
test-race:
	CGO_ENABLED=1 go test -race ./...

# the kernels of arm64, run by QEMU's qemu-aarch64 (Debian: qemu-user) as a processor with and one without the dot
# product of bytes, then what calls them, without the long tests
test-arm64: export GOARCH := arm64
test-arm64:
	go vet ./simd ./ann ./segment
	QEMU_CPU=cortex-a53 go test -exec qemu-aarch64 ./simd
	QEMU_CPU=max go test -exec qemu-aarch64 ./simd
	QEMU_CPU=max go test -exec qemu-aarch64 -skip FindsTheNearest ./ann
	QEMU_CPU=max go test -exec qemu-aarch64 -run Vector ./segment
	go build -o /dev/null ./cmd/svc

test-invariants:
	go test -tags invariants ./...

# ranking, queries and segments: the gate runs these. Segments that are damaged on purpose break orders that are checked.
.PHONY: test-core-invariants
test-core-invariants:
	go test -timeout 30m -tags invariants ./internal/rank/... ./internal/query
	go test -timeout 30m -tags invariants -skip 'HostileBytes|Damage' ./segment

# the container, as svc:latest, by docker, podman or buildah. Without any of them, the root file system of it is made below dist/image
.PHONY: image
image:
	@commit=$$(git rev-parse HEAD) && date=$$(git log -1 --format=%cI) && \
	if docker info > /dev/null 2>&1; then docker build -f deploy/Dockerfile -t svc --build-arg COMMIT=$$commit --build-arg COMMIT_DATE=$$date .; \
	elif command -v podman > /dev/null; then podman build -f deploy/Dockerfile -t svc --build-arg COMMIT=$$commit --build-arg COMMIT_DATE=$$date .; \
	elif command -v buildah > /dev/null; then buildah build -f deploy/Dockerfile -t svc --build-arg COMMIT=$$commit --build-arg COMMIT_DATE=$$date .; \
	else COMMIT=$$commit COMMIT_DATE=$$date deploy/rootfs dist/image && echo "no docker, podman or buildah answers here: the root file system is in dist/image"; fi

# the page in Chromium, on a machine that does nothing else: each part in each size and color with each kind of key over DOCUMENTS
# (NDJSON, by its absolute path; generated ones where it is empty), each control with a revoked key, and the time from an answer to its hits
DOCUMENTS ?=
TYPED ?= kalomi terpan suvero dinkalo
look:
	go test ./fastapi -run 'TestEveryLook|TestDashboard|TestTyping' -count 1 -timeout 60m -v -dashboard.every -dashboard.file '$(DOCUMENTS)' -dashboard.typed '$(TYPED)'

# random requests, made of /openapi.json, against the real program, for a minute at most
API_SEED ?= 1
api:
	go test ./cmd/svc -run 'TestTheDocumentMatchesTheServer|TestRandomRequestsOfTheDocument' -count 1 -v -args -api-requests 20000 -api-time 45s -api-seed $(API_SEED)

# every fuzz target for FUZZTIME. An input that reaches new code is made smaller by MINIMIZE tries: by default that takes a minute each where
# what is reached varies from run to run, as in a search of a graph, and nothing else is tried meanwhile
FUZZTIME ?= 20s
MINIMIZE ?= 20x
fuzz:
	@for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime $(MINIMIZE) $$pkg || exit 1; \
	  done; \
	done

# kill -9 at any moment, ROUNDS times
ROUNDS ?= 200
crash: build
	go test ./cmd/svc -run TestKilledServerKeepsItsPromises -count 1 -timeout 60m -v -args -rounds $(ROUNDS)

# three instances of a network that are killed, cut off from each other and changed under writes, ROUNDS times; then searched
# 12,000 times, with connections and goroutines counted; then, for root on Linux, in namespaces whose links are cut
network-test:
	go test ./cmd/svc -run 'TestNetworkKeepsItsPromises|TestNetworkSearchesLeakNothing|TestNetworkOfNamespaces' -count 1 -timeout 60m -v -args \
	  -network-rounds $(ROUNDS) -network-searches 12000 -network-namespaces

# a writer and a reader of a group, and three voters, that are killed, stopped, promoted, cut off from each other, and whose disk is filled (by root on Linux), ROUNDS times
.PHONY: group-test
group-test:
	go test ./cmd/svc -run 'TestGroupKeepsItsPromises|TestVotersKeepAcceptedWrites' -count 1 -timeout 120m -v -args -group-rounds $(ROUNDS) -voter-rounds $(ROUNDS)
	go test ./internal/consensus -run TestAcceptedEntriesStay -count 1 -v -args -consensus-seeds $(ROUNDS)

# three members on a log in one process, in SEEDS orders of what happens to them. The directories are in memory where the system has room
SEEDS ?= 10000
.PHONY: ideal-test
ideal-test:
	go test ./internal/standby -run "TestMembersOfAnIdealLog|TestHistoriesOfAnIdealLog" -count 1 -timeout 5h -args -ideal-seeds $(SEEDS)

# three voters whose programs are exchanged under load, one after the other: from that of the commit OLD to this one, and back
OLD ?= b5bd25b3
.PHONY: rolling
rolling:
	work=$$(mktemp -d) && git worktree add --detach $$work/tree $(OLD) && (cd $$work/tree && go build -o $$work/svc ./cmd/svc); built=$$?; \
	git worktree remove --force $$work/tree; \
	[ $$built = 0 ] && go test ./cmd/svc -run TestRollingUpgrade -count 1 -v -args -older-svc $$work/svc; failed=$$?; rm -rf $$work; exit $$failed

# a server that publishes to a directory and to a store that fails at times, and is killed ROUNDS times with each: every published position
# restores to what its tasks say
.PHONY: publish-test s3-test
publish-test:
	go test ./cmd/svc -run TestPublishedPositionsOutliveKills -count 1 -timeout 60m -v -args -publish-rounds $(ROUNDS)

# the tests of buckets and of publication with a store that is there: S3_ENDPOINT=http://localhost:9000 S3_BUCKET=… S3_REGION=…
# S3_ACCESS_KEY=… S3_SECRET_KEY=…
s3-test:
	go test ./internal/bucket ./internal/publish -run 'TestStores/a_real_one|TestARealStore' -count 1 -v

# what power cuts may leave of a recorded run of WRITES writes of the real program, in STATES ways: it must start on each and have lost nothing.
# Then the same of three voters of a group, whose power is cut meanwhile, too, in GROUP_STATES ways
STATES ?= 10000
GROUP_STATES ?= 1000
GROUP_CUTS ?= 20
WRITES ?= 200
powercut:
	go test ./cmd/svc -run TestPowerCutsLoseNothing -count 1 -timeout 5h -v -args -states $(STATES) -cut-writes $(WRITES)
	go test ./cmd/svc -run TestPowerCutsOfAGroupLoseNothing -count 1 -timeout 5h -v -args -group-states $(GROUP_STATES) -group-writes $(WRITES) -group-cuts $(GROUP_CUTS)

# each sync is removed in turn, and power cuts must tell; SYNCS=internal/index tries those whose place contains that
SYNCS ?= all
mutate-syncs:
	go test ./cmd/svc -run TestEverySyncIsNeeded -count 1 -timeout 5h -v -args -states 1000 -mutate-syncs $(SYNCS)

# flips bytes of a small data directory, FLIPS of each kind of its files, or all, with the server stopped and with it running: no answer is
# ever wrong. PART=3/10 takes the third of ten parts of all. The directories are in memory where the system has room for files there; the
# program of the test is not, as some systems execute nothing from there
FLIPS ?= all
PART ?= 1/1
flips:
	GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=$(wildcard /dev/shm) go test ./cmd/svc -run TestFlippedBytes -count 1 -timeout 12h -v -args -flips $(FLIPS) -flips-part $(PART)

# rewrites the tables of BENCHMARKS.md; DATA=file.ndjson[.gz] measures with real documents, LARGE=500000 with so many generated ones, too
DATA ?=
LARGE ?=
bench: build
	go run ./bench --server ./svc --out BENCHMARKS.md $(if $(DATA),--data $(DATA)) $(if $(LARGE),--large $(LARGE))

# what one more filterable attribute costs, 10,000 small indexes, 200,000 tasks, and a million documents that expire: it prints tables
bench-upkeep: build
	go run ./bench --server ./svc --measure attribute,indexes,queue,lifecycle $(if $(DATA),--data $(DATA))

# indexing and searches with the server held to CORES processors, one number after the other: half of the machine at most, the other half asks
CORES ?= 1,2,4,8
bench-cores: build
	go run ./bench --server ./svc --cores $(CORES) --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# first queries beside the server of another commit: a table, and lines for benchstat -col /server; COUNTS=1 counts instructions under valgrind
COMMIT ?= HEAD~1
COUNTS ?=
bench-against: build
	go run ./bench --server ./svc --against $(COMMIT) $(if $(COUNTS),--counts) $(if $(DATA),--data $(DATA))

# three instances that move documents and search together
bench-network: build
	go run ./bench --server ./svc --network --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# a writer with a reader: lag, catch-up, and what the reader costs the writer
bench-group: build
	go run ./bench --server ./svc --group --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# what a publication costs its server, how far behind it is, and how fast it is restored and followed
bench-publish: build
	go run ./bench --server ./svc --publish --out BENCHMARKS.md --documents 300000 $(if $(DATA),--data $(DATA))

# three voters beside a lone server, and without their leader
.PHONY: bench-voters
bench-voters: build
	go run ./bench --server ./svc --voters --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# three voters for an hour without faults, on whom documents and searches press at full speed: the leader stays
.PHONY: bench-steady
bench-steady: build
	go run ./bench --server ./svc --voters --steady 1h --documents 20000 --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# searches with aggregations, groups, score functions and filters on one object, beside those without
.PHONY: bench-members
bench-members: build
	go run ./bench --server ./svc --members --documents $(or $(N),500000) --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# crops of texts of 1 MB
bench-texts: build
	go run ./bench --server ./svc --texts --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

# an import of short texts, searches right after it and once merges have ended; N=10000000 documents
.PHONY: bench-fresh
bench-fresh: build
	go run ./bench --server ./svc --fresh --short --documents $(or $(N),1113316)

# svc beside search libraries: PYTHON with the packages tantivy and xapian, JARS a directory with lucene-core and lucene-analysis-common;
# LIBRARIES names those to run (Xapian and bleve take the longest)
.PHONY: bench-engines
bench-engines: build
	go run ./bench --server ./svc --engines $(PYTHON) --jars $(JARS) --documents $(or $(N),500000) $(if $(LIBRARIES),--libraries $(LIBRARIES)) --out BENCHMARKS.md $(if $(DATA),--data $(DATA))

bench-quick: build
	go run ./bench --server ./svc --quick $(if $(DATA),--data $(DATA))

# vectors; DATA=dir takes two .npy files from there (queries have "quer" in their name), else ROWS are generated, of so many DIMENSIONS.
# KEEP=dir keeps the graphs there, and finds those of a run before
ROWS ?=
DIMENSIONS ?=
KEEP ?=
ANN = --vectors $(or $(DATA),generated) $(if $(ROWS),--rows $(ROWS)) $(if $(DIMENSIONS),--dimensions $(DIMENSIONS)) $(if $(KEEP),--keep $(KEEP))
bench-ann: build
	go run ./bench --server ./svc $(ANN) --out BENCHMARKS.md

# recall and time of searches of vectors of many kinds; DATA=dir and KEEP=dir are as above, KINDS=text selects some
.PHONY: bench-recall
bench-recall:
	go run ./bench --recall $(if $(DATA),--vectors $(DATA)) $(if $(KEEP),--keep $(KEEP)) $(if $(KINDS),--kinds "$(KINDS)")

# the same as bench-ann beside hnswlib, faiss and usearch, of which PYTHON uses those it has: pip install numpy hnswlib faiss-cpu usearch
PYTHON ?= python3
bench-ann-peers: build
	go run ./bench --server ./svc $(ANN) --peers $(PYTHON) --out BENCHMARKS.md

# attacks a server of its own, on loopback and with 2 GiB of memory, and says what harm is done, all of it in BENCHMARKS.md; ONLY is a
# regular expression of attacks
ONLY ?=
hostile: build
	go run ./hostile --server ./svc $(if $(ONLY),--only '$(ONLY)',--out BENCHMARKS.md)
	$(if $(ONLY),,go run ./hostile --server ./svc --busy --time 20s)

# large requests beside busy loops, to one server and to a network of three, TIME for each load; ONLY is a regular expression of loads
hostile-busy: build
	go run ./hostile --server ./svc --busy --time $(or $(TIME),60s) $(if $(ONLY),--only '$(ONLY)')

pprof: build
	go run ./bench --server ./svc --profiles profiles $(if $(DATA),--data $(DATA))
