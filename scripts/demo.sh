#!/usr/bin/env bash
# The demonstration: programs whose every transaction writes to several stores are
# killed again and again, recovery runs as another process, and then everything is
# counted: the money, and the rows of every transaction in every store. Where this
# machine can have no engine of ClickHouse or drevo the rest is shown, and the exit
# code is 4.
#
#   scripts/demo.sh [FLAG OF testbed/demo ...]
. "$(dirname "$0")/lib.sh"

need testbed/demo
scripts/setup.sh postgresql
for engine in clickhouse drevo; do
	scripts/setup.sh "$engine" || [ $? -eq "$exit_left_out" ]
done
program=$(build ./testbed/demo)
figures -- "$program" "$@"
