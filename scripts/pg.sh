#!/usr/bin/env bash
# A throw-away PostgreSQL server to work with by hand: own data directory, own
# password, free loopback port, never the system's cluster.
#
#   scripts/pg.sh start [name=value ...]   starts it, prints how to use it
#   scripts/pg.sh stop                     stops it and removes its data
#   scripts/pg.sh run [name=value ...] -- COMMAND
#                                          runs COMMAND with RHIZODAT_TEST_PG set
. "$(dirname "$0")/lib.sh"

readonly pid_file=$cache/pg.pid dsn_file=$cache/pg.dsn

# serving tells whether the process of pid_file is ours and not one that got
# its number later.
serving() {
	[ -f "$pid_file" ] || return 1
	case $(ps -ww -o args= -p "$(cat "$pid_file")" 2>/dev/null) in
	"$cache/pg serve"*) return 0 ;;
	esac
	return 1
}

start() {
	! serving || die "already started: $(cat "$dsn_file")"
	local pg pid tries=0
	pg=$(build ./testbed/pg)
	(umask 077 && : >"$dsn_file")
	# Of its own session: it outlives this script and its terminal.
	setsid "$pg" serve "$@" >"$dsn_file" 2>"$cache/pg.log" </dev/null &
	pid=$!
	printf '%s\n' "$pid" >"$pid_file"
	until [ -s "$dsn_file" ]; do
		kill -0 "$pid" 2>/dev/null || {
			rm -f "$pid_file" "$dsn_file"
			cat "$cache/pg.log"
			die "the server did not start"
		}
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || die "the server is not up after a minute; see $cache/pg.log"
		sleep 0.1
	done
	say "export RHIZODAT_TEST_PG='$(cat "$dsn_file")'"
}

stop() {
	serving || {
		rm -f "$pid_file" "$dsn_file"
		say "not started"
		return
	}
	local pid
	pid=$(cat "$pid_file")
	kill -TERM "$pid"
	while serving; do sleep 0.1; done
	rm -f "$pid_file" "$dsn_file"
	say "stopped"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
start) start "$@" ;;
stop) stop ;;
run) with_server "$@" ;;
*) die "usage: scripts/pg.sh start [name=value ...] | stop | run [name=value ...] -- COMMAND" ;;
esac
