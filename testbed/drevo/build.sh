#!/bin/sh
# Builds drevo-rig, the drevo server for tests, out of engine/.
#
#   build.sh DIR          prints DIR/<hash of the sources>/drevo-rig; DIR/current leads there
#   build.sh -test DIR    runs drevo-rig's own tests, too
#
# Nothing is built or tested a second time. Exit codes: 0; 3 where there is no Rust that
# is new enough, with the reason on standard error; else 1. It looks for cargo in
# PATH, in rustup's usual place and in DIR, where get-rust.sh puts it.
set -eu
oldest=1.85
tests=
if [ "${1:-}" = -test ]; then
	tests=yes
	shift
fi
engine=$(cd "$(dirname "$0")/engine" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
hash=$(cd "$engine" && find Cargo.toml Cargo.lock src -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c 1-16)

current() {
	ln -sfn "$hash" "$dir/current.$$"
	mv -T "$dir/current.$$" "$dir/current"
	echo "$dir/$hash/drevo-rig"
	exit 0
}
if [ -x "$dir/$hash/drevo-rig" ] && { [ -z "$tests" ] || [ -e "$dir/$hash/tested" ]; }; then
	current
fi

cargo=
for candidate in "$(command -v cargo || true)" "$HOME/.cargo/bin/cargo" "$dir/rust/cargo/bin/cargo"; do
	[ -x "$candidate" ] || continue
	case $candidate in
	"$dir"/*) export CARGO_HOME="$dir/rust/cargo" RUSTUP_HOME="$dir/rust/rustup" ;;
	esac
	version=$("$(dirname "$candidate")/rustc" --version 2>/dev/null | cut -d ' ' -f 2)
	if [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ]; then
		cargo=$candidate
		break
	fi
	echo "build: $candidate is Rust ${version:-without rustc}, older than $oldest" >&2
done
[ -n "$cargo" ] || {
	echo "build: no Rust $oldest or newer found" >&2
	exit 3
}
echo "build: drevo-rig with $cargo, Rust $version (one or two minutes the first time)" >&2
PATH=$(dirname "$cargo"):$PATH # cargo runs the rustc that it finds there
export PATH CARGO_TARGET_DIR="$dir/build"
"$cargo" build --quiet --release --locked --manifest-path "$engine/Cargo.toml"
mkdir -p "$dir/$hash"
cp "$dir/build/release/drevo-rig" "$dir/$hash/drevo-rig.$$"
mv "$dir/$hash/drevo-rig.$$" "$dir/$hash/drevo-rig"
if [ -n "$tests" ]; then
	"$cargo" test --quiet --release --locked --manifest-path "$engine/Cargo.toml" >&2
	touch "$dir/$hash/tested"
fi
current
