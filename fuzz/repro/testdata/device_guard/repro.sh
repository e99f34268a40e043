#!/bin/sh
# Run this anywhere inside a clone of slotgraph, or inside a packed folder (tools/gpu pack).
folder=$(dirname "$(realpath "$0")")
if [ -x ./run.sh ]; then exec ./run.sh repro "$folder" "$@"; fi
exec bazel run //:repro -- "$folder" "$@"
