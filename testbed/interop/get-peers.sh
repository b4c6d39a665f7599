#!/usr/bin/env bash
# Puts the other engines of this test bed into DIR and prints nothing of theirs: PyIceberg
# in a virtual environment, from wheels with pinned hashes, and the Java programs
# with the artefacts of their pinned poms, whose sums are looked at. Does nothing the second time.
#
#   get-peers.sh DIR
#
# Needs python3 with venv, a JDK of 17 or newer and Maven.
set -euo pipefail
dir=$1
cd "$(dirname "$0")"

# sum of what a part is made of.
sum() { find "$@" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1; }

python=$(sum python/requirements.txt)-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$(cat "$dir/venv/made-of" 2>/dev/null)" != "$python" ]; then
	rm -rf "$dir/venv"
	python3 -m venv "$dir/venv"
	"$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r python/requirements.txt >&2
	printf '%s\n' "$python" >"$dir/venv/made-of"
fi

java=$(sum java)
if [ "$(cat "$dir/java/made-of" 2>/dev/null)" != "$java" ]; then
	rm -rf "$dir/java"
	cp -R java "$dir/java"
	(
		cd "$dir/java"
		mvn --batch-mode --quiet compile dependency:build-classpath -Dmdep.outputFile=target/classpath >&2
		for module in peer restserver; do
			tr ':' '\n' <"$module/target/classpath" | sort | xargs sha256sum | sed 's|  .*/|  |' >"$module/target/sums"
		done
	)
	if [ -e java/jars.sha256 ]; then
		sort -u "$dir"/java/*/target/sums | cmp -s - java/jars.sha256 || {
			echo "get-peers.sh: other artefacts than java/jars.sha256 names:" >&2
			sort -u "$dir"/java/*/target/sums | diff java/jars.sha256 - >&2 || true
			exit 1
		}
	fi
	printf '%s\n' "$java" >"$dir/java/made-of"
fi
