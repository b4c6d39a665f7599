#!/usr/bin/env bash
# Everything that must hold before a change lands: format, vet, lint, all
# tests, the short runs of crash, demo, pipeline and interop. Every stage runs,
# whatever the others say. Its limit ends what hangs; all of them together take less
# than 40 minutes on two cores, a first build with the race detector included. The
# last lines say again why a stage failed: often they are all that is kept of a log.
. "$(dirname "$0")/lib.sh"

results=()
failed=()

# stage NAME LIMIT COMMAND ...
stage() {
	local name=$1 limit=$2 status=0 began=$SECONDS word=ok guard=(timeout --kill-after=10s)
	shift 2
	# At a terminal its interrupt must reach the stage.
	[ ! -t 0 ] || guard+=(--foreground)
	say "== $name"
	"${guard[@]}" "$limit" "$@" > >(tee "$cache/check-$name.log") 2>&1 || status=$?
	if [ "$status" -ne 0 ]; then
		failed+=("$name")
		word="failed ($status)"
		[ "$status" -ne 124 ] || word="not done within $limit"
	fi
	results+=("$(printf '%-8s %4ds  %s' "$name" $((SECONDS - began)) "$word")")
}

# reasons STAGE prints the few lines of a stage's log that say why it failed.
reasons() {
	local log=$cache/check-$1.log found
	found=$(grep -E '^figures: short|malformed|--- FAIL|^FAIL|^panic:|DATA RACE|is a failure|violated|^left out:' "$log" |
		grep -v -- '--- FAIL: .*/.* ' | cut -c 1-150 | head -n 8) || true
	[ -n "$found" ] || found=$(tail -n 4 "$log" | cut -c 1-150)
	printf '%s: %s\n' "$1" "$found"
}

rm -f "$cache"/check-*.log
scripts/setup.sh
scripts/setup.sh interop || true # its stage says why
stage format 1m bin/golangci-lint fmt --diff
stage vet 6m go vet ./...
stage lint 4m scripts/lint.sh
stage test 18m scripts/test.sh
stage crash 10m scripts/crash.sh -short
stage demo 3m scripts/demo.sh -kills 6
stage pipeline 4m scripts/pipeline.sh -rounds 1
stage interop 6m scripts/interop.sh -short

say "== summary"
printf '%s\n' "${results[@]}"
tail -n 1 "$cache/check-test.log"
[ ${#failed[@]} -gt 0 ] || exit 0
say "== what failed"
for name in "${failed[@]}"; do reasons "$name"; done
exit 1
