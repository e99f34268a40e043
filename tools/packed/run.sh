#!/usr/bin/env bash
# Entry of a packed folder (tools/gpu pack): ./run.sh --help
set -euo pipefail
python=${PYTHON:-python3}
command -v "$python" >/dev/null || {
  echo "run.sh: found no '$python', expected the Python that has torch; set PYTHON=/path/to/python3" >&2
  exit 64
}
exec "$python" "$(dirname "$(realpath "$0")")/run.py" "$@"
