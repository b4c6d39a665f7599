#!/usr/bin/env bash
# The demonstration: a program that moves money between two databases is killed
# again and again, recovery runs as another process, and the money is counted.
#
#   scripts/demo.sh [FLAG OF examples/transfer ...]
. "$(dirname "$0")/lib.sh"

need examples/transfer
[ -n "${RHIZODAT_TEST_PG:-}" ] || scripts/setup.sh postgresql
program=$(build ./examples/transfer)
figures -- with_server -- "$program" "$@"
