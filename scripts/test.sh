#!/usr/bin/env bash
# All tests, against real servers, with nothing skipped: the units and the
# facade with the race detector, then the nested modules: the ORMs, the observers.
# The last line is "N passed, N failed, N skipped"; a skip is a failure here.
#
#   scripts/test.sh [FLAG OF GO TEST ...]
. "$(dirname "$0")/lib.sh"

if [ -z "${RHIZODAT_TEST_PG:-}" ]; then
	scripts/setup.sh compiler postgresql pgbouncer clickhouse drevo s3gateway
	# One server for all packages. No test of the shared server crashes the
	# machine, so it need not sync.
	with_server fsync=off full_page_writes=off max_connections=400 -- scripts/test.sh "$@"
	exit
fi

run() {
	local status=0
	go test -json -race -shuffle=on -count=1 -timeout=15m "$@" ./... || status=1
	# They run over PostgreSQL alone, so they leave out what the other stores need.
	local module tags=rhizodat_no_clickhouse,rhizodat_no_drevo,rhizodat_no_iceberg
	for module in testbed/orm observers/*/; do
		(cd "$module" && go test -tags="$tags" -json -count=1 -timeout=10m "$@" ./...) || status=1
	done
	return "$status"
}

PATH=$PATH:/usr/sbin # PgBouncer lies there
export RHIZODAT_REQUIRE_ALL=1
go vet ./...
if [ -z "${RHIZODAT_TEST_DREVO:-}" ]; then
	testbed/drevo/build.sh -test "${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/drevo" >/dev/null
fi
tally=$(build ./testbed/tally)
# Items of the suite that cannot apply: branches/memory is the example of a small
# adapter, branches/clickhouse and branches/iceberg prepare nothing, branches/drevo
# takes no locks.
run "$@" | "$tally" -may-leave-out "$(go list ./branches/{memory,clickhouse,iceberg,drevo})"
