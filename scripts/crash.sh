#!/usr/bin/env bash
# Kills the program, its stores and its journal's server before and after every
# step of the protocol, and checks what recovery makes of it. Last come the runs
# with one guard taken out, each of which must be caught. Where this machine has
# no ClickHouse engine the rest is run, and the exit code is 4.
#
#   scripts/crash.sh [-long | -short | other flags of testbed/crash]
. "$(dirname "$0")/lib.sh"

need testbed/crash
scripts/setup.sh postgresql
# What cannot be set up here is left out by the program, which knows the rest.
scripts/setup.sh clickhouse || [ $? -eq "$exit_left_out" ]
[ $# -gt 0 ] || set -- -long
program=$(build ./testbed/crash)
figures -- "$program" "$@"
