#!/usr/bin/env bash
# The linters, over Go and over these scripts.
. "$(dirname "$0")/lib.sh"

scripts/setup.sh linters
bin/golangci-lint run --allow-parallel-runners --max-issues-per-linter=0 --max-same-issues=0 ./...
shellcheck scripts/*.sh scripts/figures .ci/run
