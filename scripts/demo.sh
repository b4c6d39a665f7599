#!/usr/bin/env bash
# The demonstration: a program that moves money between two databases is killed
# again and again, recovery runs as another process, and the money is counted.
#
#   scripts/demo.sh [FLAG OF testbed/demo ...]
. "$(dirname "$0")/lib.sh"

need testbed/demo
scripts/setup.sh postgresql
program=$(build ./testbed/demo)
figures -- "$program" "$@"
