#!/bin/sh
# Run this anywhere inside a clone of slotgraph.
folder=$(dirname "$(realpath "$0")")
exec bazel run //fuzz:repro -- "$folder" "$@"
