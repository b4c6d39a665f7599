# What the scripts of this project share. Sourced, from any directory:
#
#   . "$(dirname "$0")/lib.sh"
#
# It changes to the top of the project. Exit codes of all scripts: 0 all is well,
# 4 this machine lacks a part (printed as "left out: ..."), else a failure.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# cache holds what the scripts make for themselves; git ignores it.
cache=$PWD/.cache
mkdir -p "$cache"

readonly exit_left_out=4

say() { printf '%s\n' "$*"; }

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# left_out ends the script because this machine lacks something.
left_out() {
	printf 'left out: %s\n' "$*"
	exit "$exit_left_out"
}

# need ends the script if a part of the project that it runs is not there.
need() { [ -d "$1" ] || left_out "$1 is not part of this checkout"; }

# build makes a program of the project and prints its path. "go run" would
# hide the program's exit code.
build() {
	local out
	out=$cache/$(basename "$1")
	go build -o "$out" "$1"
	printf '%s\n' "$out"
}

# with_server runs a command with RHIZODAT_TEST_PG set: to what it is already,
# or to a throw-away server that ends with the command. Arguments before -- are
# the server's settings, "name=value".
with_server() {
	if [ -n "${RHIZODAT_TEST_PG:-}" ]; then
		while [ "$1" != -- ]; do shift; done
		shift
		"$@"
		return
	fi
	local pg
	pg=$(build ./testbed/pg)
	"$pg" run "$@"
}

# figures runs a command, shows its output, and fails if the command fails or
# one of its figures is short; see scripts/figures. Arguments before -- are its options.
figures() {
	local options=() log status=0
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	log=$(mktemp "$cache/figures.XXXXXX")
	"$@" | tee "$log" || status=$?
	scripts/figures ${options[@]+"${options[@]}"} "$log" || [ "$status" -ne 0 ] || status=1
	rm -f "$log"
	return "$status"
}
