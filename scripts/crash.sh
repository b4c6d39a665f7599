#!/usr/bin/env bash
# Kills the program, its stores and its journal's server before and after every
# step of the protocol, and checks what recovery makes of it. Last come the runs
# with one guard taken out, each of which must be caught. Where this machine has
# no engine of ClickHouse or drevo the rest is run, and the exit code is 4.
#
#   scripts/crash.sh [-long | -short | other flags of testbed/crash]
. "$(dirname "$0")/lib.sh"

need testbed/crash
scripts/setup.sh postgresql
# What cannot be set up here is left out by the program, which knows the rest.
for engine in clickhouse drevo; do
	scripts/setup.sh "$engine" || [ $? -eq "$exit_left_out" ]
done
[ $# -gt 0 ] || set -- -long
program=$(build ./testbed/crash)
figures -- "$program" "$@"
