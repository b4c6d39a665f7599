#!/bin/sh
# Runs chserver out of the cache that scripts/setup.sh clickhouse has filled.
#
#   run.sh [FLAG OF chserver ...]
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rhizodat/clickhouse
lib=$("$(dirname "$0")/get-clickhouse.sh" "$cache")
CHDB_LIB_PATH=$lib exec "$cache/chserver" "$@"
