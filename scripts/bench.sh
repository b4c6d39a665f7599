#!/usr/bin/env bash
# The benchmarks, side by side with their opponents in one run. Figures named
# time_... are timings of a machine that others may be using: they are printed,
# and short ones do not fail the run.
#
#   scripts/bench.sh [FLAG OF bench ...]
#   scripts/bench.sh -only drevo -rounds 3
#
# Parts: single, double, recovery (PostgreSQL), clickhouse, drevo, iceberg,
# concurrent (leases, steps, archive).
. "$(dirname "$0")/lib.sh"

need bench
scripts/setup.sh postgresql
# What needs an engine that this machine cannot have is left out, and the exit code
# says so.
for part in clickhouse drevo; do
	scripts/setup.sh "$part" || [ $? -eq "$exit_left_out" ]
done
program=$(build ./bench)
figures --noisy time_ -- "$program" "$@"
