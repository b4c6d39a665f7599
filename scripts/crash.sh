#!/usr/bin/env bash
# Kills the program, its store's sessions and its journal's server before and
# after every step of the protocol, and checks what recovery makes of it. Last
# come the runs with one guard taken out, each of which must be caught.
#
#   scripts/crash.sh [-long | -short | other flags of testbed/crash]
. "$(dirname "$0")/lib.sh"

need testbed/crash
scripts/setup.sh postgresql
[ $# -gt 0 ] || set -- -long
program=$(build ./testbed/crash)
figures -- "$program" "$@"
