#!/usr/bin/env bash
# Runs every fuzz target of the project for FUZZTIME (default 30s) and prints
# how many inputs each tried. An input that fails is kept by go test in the
# package's testdata/fuzz: commit it with the repair.
#
#   FUZZTIME=5m scripts/fuzz.sh [PATTERN OF TARGETS]
. "$(dirname "$0")/lib.sh"

readonly time_each=${FUZZTIME:-30s} pattern=${1:-^Fuzz}

# targets prints "package target" lines; go test -list prints the targets of a
# package and then its "ok" line.
targets() {
	go test -list "$pattern" ./... | awk '
		/^Fuzz/ { names[++n] = $1 }
		$1 == "ok" || $1 == "?" {
			for (i = 1; i <= n; i++) print $2, names[i]
			n = 0
		}
	'
}

# fuzz runs one target and prints its figure; go test reports the executions so far
# every 3 seconds.
fuzz() {
	local package=$1 target=$2 log verdict=ok execs
	log=$(mktemp "$cache/fuzz.XXXXXX")
	say "fuzz $target of $package, $time_each"
	go test -run='^$' -fuzz="^$target\$" -fuzztime="$time_each" "$package" >"$log" 2>&1 || verdict=short
	execs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
	[ "${execs:-0}" -gt 0 ] || verdict=short
	[ "$verdict" = ok ] || cat "$log"
	rm -f "$log"
	say "figure fuzz_$(basename "$package")_${target#Fuzz}_execs ${execs:-0} >0 $verdict"
}

all() {
	local package target
	while read -r package target; do
		fuzz "$package" "$target" </dev/null
	done < <(targets)
}

figures -- all
