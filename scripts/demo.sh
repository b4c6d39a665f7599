#!/usr/bin/env bash
# The demonstration: a program that moves money between two databases, and tells
# ClickHouse of it, is killed again and again, recovery runs as another process, and
# the money is counted, and the rows of every transaction in every store.
#
#   scripts/demo.sh [FLAG OF testbed/demo ...]
. "$(dirname "$0")/lib.sh"

need testbed/demo
scripts/setup.sh postgresql
# A store whose engine this machine cannot have is left out, and the exit code says so.
scripts/setup.sh clickhouse || [ $? -eq "$exit_left_out" ]
program=$(build ./testbed/demo)
figures -- "$program" "$@"
