# Each target is a script in scripts/; run "make" for what they do.
.DEFAULT_GOAL := help
.PHONY: help setup build demo pipeline test check lint fmt fuzz crash interop bench clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building and testing needs and this machine lacks
	@scripts/setup.sh

build: ## compile everything; programs go to bin/
	go build ./...
	go build -o bin/ ./cmd/...

demo: ## kill programs that commit to several stores, recover, count what is in each
	@scripts/demo.sh

pipeline: ## stop, kill and cut off the holders of leases, count what each of them has written
	@scripts/pipeline.sh

test: ## vet, and all tests against real servers; a skipped test is a failure
	@scripts/test.sh

check: ## what must hold before a change lands: fmt, vet, lint, test, and the rest in short forms
	@scripts/check.sh

lint: ## run the linters
	@scripts/lint.sh

fmt: ## format the code
	@scripts/setup.sh linters
	bin/golangci-lint fmt

fuzz: ## fuzz every target for 30 s (FUZZTIME=5m for longer)
	@scripts/fuzz.sh

crash: ## kill at every step of the protocol, in every mode, and check recovery
	@scripts/crash.sh -long

interop: ## write and read the same Iceberg tables with PyIceberg, Java and ClickHouse
	@scripts/interop.sh

bench: ## measure against pgx, clickhouse-go and a hand-written opponent
	@scripts/bench.sh

clean: ## remove what the targets made; the test cache of Go stays
	rm -rf bin .cache coverage.out
