#!/usr/bin/env bash
# Everything that must hold before a change lands: format, vet, lint, all
# tests, the short crash run, a short demo. Every stage runs, whatever the others
# say, within its own limit; the sum of the limits is below 40 minutes.
. "$(dirname "$0")/lib.sh"

results=()
failed=0

# stage NAME LIMIT COMMAND ...
stage() {
	local name=$1 limit=$2 status=0 began=$SECONDS word=ok guard=(timeout --kill-after=10s)
	shift 2
	# At a terminal its interrupt must reach the stage.
	[ ! -t 0 ] || guard+=(--foreground)
	say "== $name"
	"${guard[@]}" "$limit" "$@" || status=$?
	if [ "$status" -ne 0 ]; then
		failed=1
		word="failed ($status)"
		[ "$status" -ne 124 ] || word="not done within $limit"
	fi
	results+=("$(printf '%-8s %4ds  %s' "$name" $((SECONDS - began)) "$word")")
}

tests() {
	scripts/test.sh | tee "$cache/test.log"
}

if [ "${1:-}" = --tests ]; then
	tests
	exit
fi

rm -f "$cache/test.log"
scripts/setup.sh
stage format 1m bin/golangci-lint fmt --diff
stage vet 6m go vet ./...
stage lint 4m scripts/lint.sh
stage test 18m scripts/check.sh --tests
stage crash 7m scripts/crash.sh -short
stage demo 3m scripts/demo.sh -kills 6

say "== summary"
printf '%s\n' "${results[@]}"
[ ! -f "$cache/test.log" ] || tail -n 1 "$cache/test.log"
exit "$failed"
