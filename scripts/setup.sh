#!/usr/bin/env bash
# Installs what building and testing this project needs and this machine
# lacks: with apt-get as root or through sudo, and the linter into ./bin. It starts no
# service, makes no system cluster, and does nothing the second time.
#
#   scripts/setup.sh [PART ...]    parts: go compiler postgresql pgbouncer linters clickhouse drevo s3gateway interop;
#   default all but interop, which only scripts/interop.sh needs
. "$(dirname "$0")/lib.sh"

readonly oldest_go=1.26 linter_version=2.15.0 s3gateway_version=1.8.0

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		left_out "installing needs root or sudo: $*"
	fi
}

# install_packages WHAT PACKAGE ...: WHAT names the part for people.
install_packages() {
	local what=$1
	shift
	command -v apt-get >/dev/null ||
		left_out "$what: no apt-get on this system; install it by its own means and run this again"
	say "setup: installing $what ($*)"
	if [ -z "${lists_read:-}" ]; then
		as_root apt-get update -qq
		lists_read=yes
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$cache/apt.log" 2>&1 || {
		tail -n 20 "$cache/apt.log"
		die "apt-get could not install $*"
	}
}

setup_go() {
	command -v go >/dev/null ||
		left_out "Go $oldest_go or newer: not found; get it from https://go.dev/dl/"
	local found
	found=$(go env GOVERSION) # go1.26.1, or "devel go1.27-..."
	found=${found#devel }
	found=${found#go}
	[ "$(printf '%s\n' "$oldest_go" "$found" | sort -V | head -n 1)" = "$oldest_go" ] ||
		left_out "Go $oldest_go or newer: this is $found; get a newer one from https://go.dev/dl/"
	say "setup: Go $found"
}

# The race detector needs cgo, and cgo a C compiler.
setup_compiler() {
	command -v "$(go env CC)" >/dev/null || install_packages "a C compiler" gcc libc6-dev
	say "setup: C compiler $(go env CC)"
}

# without_services runs a command while Debian's packages may start nothing.
without_services() (
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		trap 'as_root rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$cache/policy-rc.d"
		as_root install -m 755 "$cache/policy-rc.d" "$policy"
	fi
	"$@"
)

setup_postgresql() {
	local pg
	pg=$(build ./testbed/pg)
	if ! "$pg" find >/dev/null 2>&1; then
		without_services install_postgresql
	fi
	say "setup: $("$pg" find)"
}

# install_postgresql keeps the package from making a cluster: this project
# makes its own, and one that nobody wants would start with the machine.
install_postgresql() (
	install_packages "PostgreSQL's cluster tools" postgresql-common
	no_cluster=/etc/postgresql-common/createcluster.d/rhizodat-setup.conf
	trap 'as_root rm -f "$no_cluster"' EXIT
	printf 'create_main_cluster = false\n' >"$cache/createcluster.conf"
	as_root install -D -m 644 "$cache/createcluster.conf" "$no_cluster"
	install_packages "PostgreSQL's server" postgresql
)

setup_pgbouncer() {
	# Debian keeps it where only root's PATH looks.
	local PATH=$PATH:/usr/sbin
	if ! command -v pgbouncer >/dev/null; then
		without_services install_packages PgBouncer pgbouncer
		if [ -d /run/systemd/system ]; then
			as_root systemctl --quiet disable pgbouncer # else it starts with the machine
		fi
	fi
	say "setup: $(pgbouncer --version | head -n 1)"
}

# A pinned ClickHouse engine, some 570 MB, in the user's cache directory, and
# the program that serves it; see testbed/clickhouse.
setup_clickhouse() {
	if [ -n "${RHIZODAT_TEST_CLICKHOUSE:-}" ]; then
		say "setup: ClickHouse of RHIZODAT_TEST_CLICKHOUSE"
		return
	fi
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/clickhouse status=0 engine
	[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
		left_out "ClickHouse: no engine for $(uname -s) on $(uname -m); set RHIZODAT_TEST_CLICKHOUSE to a server of your own"
	command -v npm >/dev/null || install_packages npm npm
	engine=$(testbed/clickhouse/get-clickhouse.sh "$dir") || status=$?
	case $status in
	0) ;;
	3) left_out "ClickHouse: set RHIZODAT_TEST_CLICKHOUSE to a server of your own" ;;
	*) die "the ClickHouse engine could not be fetched" ;;
	esac
	(cd testbed/clickhouse && CGO_ENABLED=0 go build -trimpath -o "$dir/chserver" ./chserver)
	say "setup: ClickHouse engine $engine"
}

# drevo's engine behind a Bolt front of our own, built from source into the
# user's cache directory; see testbed/drevo. Rust is what the machine has, else
# Debian's where that is new enough, else a pinned one beside the program.
setup_drevo() {
	if [ -n "${RHIZODAT_TEST_DREVO:-}" ]; then
		say "setup: drevo of RHIZODAT_TEST_DREVO"
		return
	fi
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/drevo program status=0
	program=$(testbed/drevo/build.sh "$dir") || status=$?
	if [ "$status" -eq 3 ]; then
		command -v cc >/dev/null || install_packages "a C compiler" gcc libc6-dev
		if debian_has_rust; then
			install_packages Rust cargo rustc
		else
			testbed/drevo/get-rust.sh "$dir" || left_out "drevo: no Rust; set RHIZODAT_TEST_DREVO to a server of your own"
		fi
		status=0
		program=$(testbed/drevo/build.sh "$dir") || status=$?
	fi
	case $status in
	0) say "setup: drevo engine $program" ;;
	3) left_out "drevo: no Rust that is new enough; set RHIZODAT_TEST_DREVO to a server of your own" ;;
	*) die "drevo-rig could not be built" ;;
	esac
}

# debian_has_rust: is the Rust of this system's packages new enough for build.sh?
debian_has_rust() {
	local oldest=1.85 found
	command -v apt-cache >/dev/null || return 1
	found=$(apt-cache policy rustc | sed -n 's/^ *Candidate: //p')
	[ "$(printf '%s\n' "$oldest" "$found" | sort -V | head -n 1)" = "$oldest" ]
}

# A pinned S3 server, Versity's gateway, built from source into the user's cache
# directory. Its folder is named after the version, so that a newer one does not
# take the place of one that runs.
setup_s3gateway() {
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/s3gateway
	if [ ! -x "$dir/$s3gateway_version/versitygw" ]; then
		say "setup: building versitygw $s3gateway_version (some minutes)"
		rm -rf "$dir/build"
		mkdir -p "$dir"
		GOBIN=$dir/build CGO_ENABLED=0 go install -trimpath "github.com/versity/versitygw/cmd/versitygw@v$s3gateway_version"
		mkdir -p "$dir/$s3gateway_version"
		mv "$dir/build/versitygw" "$dir/$s3gateway_version/versitygw"
		rmdir "$dir/build"
	fi
	ln -sfn "$s3gateway_version" "$dir/current"
	say "setup: S3 gateway $dir/$s3gateway_version/versitygw"
}

# The other engines of testbed/interop, some 500 MB, in the user's cache directory.
setup_interop() {
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/interop
	python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages "Python with venv" python3 python3-venv
	if ! javac -version 2>&1 | awk -F '[ .]' '$1 == "javac" && $2 >= 17 { found = 1 } END { exit !found }'; then
		install_packages "a JDK" openjdk-17-jdk-headless
	fi
	command -v mvn >/dev/null || install_packages Maven maven
	mkdir -p "$dir"
	testbed/interop/get-peers.sh "$dir" || die "the other engines of Iceberg could not be fetched"
	say "setup: $("$dir/venv/bin/python" -m pip list --disable-pip-version-check 2>/dev/null | sed -n 's/^pyiceberg  */PyIceberg /p'), Java's Iceberg of testbed/interop/java"
}

setup_linters() {
	local found=
	[ ! -x bin/golangci-lint ] || found=$(bin/golangci-lint version --short)
	if [ "${found#v}" != "$linter_version" ]; then
		say "setup: building golangci-lint $linter_version into bin/ (some minutes)"
		GOBIN=$PWD/bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$linter_version"
	fi
	command -v shellcheck >/dev/null || install_packages ShellCheck shellcheck
	say "setup: golangci-lint $linter_version, $(shellcheck --version | sed -n 's/^version: /ShellCheck /p')"
}

setup_go
[ $# -gt 0 ] || set -- compiler postgresql pgbouncer linters clickhouse drevo s3gateway
for part; do
	case $part in
	go) ;; # always checked
	compiler | postgresql | pgbouncer | linters | clickhouse | drevo | s3gateway | interop) "setup_$part" ;;
	*) die "no such part: $part" ;;
	esac
done
