#!/bin/sh
# Fetches a pinned rustup-init, checks its sum and installs a pinned Rust into
# DIR/rust, where nothing else sees it.
#
#   get-rust.sh DIR
#
# Exit codes: 0; 3 where none is pinned for this machine or it cannot be
# fetched, with the reason on standard error; else 1.
set -eu
rustup=1.28.2
rust=1.85.1
case "$(uname -s)-$(uname -m)" in
Linux-x86_64)
	triple=x86_64-unknown-linux-gnu
	sum=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c
	;;
*)
	echo "get-rust: no rustup-init is pinned for $(uname -s) on $(uname -m)" >&2
	exit 3
	;;
esac
mkdir -p "$1"
dir=$(cd "$1" && pwd)
tmp=$(mktemp -d "$dir/.rust.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
echo "get-rust: fetching rustup $rustup and Rust $rust into $dir/rust" >&2
curl --proto =https --tlsv1.2 -fsSL --retry 2 --max-time 120 -o "$tmp/rustup-init" \
	"https://static.rust-lang.org/rustup/archive/$rustup/$triple/rustup-init" || {
	echo "get-rust: rustup-init could not be fetched" >&2
	exit 3
}
echo "$sum  $tmp/rustup-init" | sha256sum -c - >&2
chmod 755 "$tmp/rustup-init"
CARGO_HOME=$dir/rust/cargo RUSTUP_HOME=$dir/rust/rustup \
	"$tmp/rustup-init" -y -q --no-modify-path --profile minimal --default-toolchain "$rust" >&2 || {
	echo "get-rust: Rust $rust could not be fetched" >&2
	exit 3
}
