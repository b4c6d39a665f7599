#!/usr/bin/env bash
# The same Iceberg tables written and read by this library, PyIceberg, the Java
# reference implementation and ClickHouse: one after the other, at once, and with
# compaction and expiry in between. Then the suite of all stores on the Java project's own
# REST server and on an S3 server that keeps files.
#
#   scripts/interop.sh [-short | other flags of testbed/interop]
#
# -short: one catalog, 20 tables, one race; within 5 minutes. What this machine
# cannot have is left out, and the exit code is 4.
. "$(dirname "$0")/lib.sh"

need testbed/interop
scripts/setup.sh postgresql s3gateway interop
scripts/setup.sh clickhouse || [ $? -eq "$exit_left_out" ]
program=$(build ./testbed/interop)
figures -- "$program" -peers "${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/interop" "$@"
