#!/usr/bin/env bash
# Three processes run one pipeline under leases. Holders are stopped past the
# expiry of their leases, killed, and cut off from the journal; then every line of
# the source is looked for in both stores. Last comes the same with the check of
# the fence taken out, which must be caught. Where this machine has no engine of
# PostgreSQL or ClickHouse the exit code is 4.
#
#   scripts/pipeline.sh [FLAG OF testbed/pipeline ...]
. "$(dirname "$0")/lib.sh"

need testbed/pipeline
scripts/setup.sh postgresql clickhouse
program=$(build ./testbed/pipeline)
figures -- "$program" "$@"
