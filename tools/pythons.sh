#!/usr/bin/env bash
# Print the path of one interpreter for each Python that crowdveil supports and this machine has, the oldest first.
# Those on the path come first, then those that pyenv keeps.
set -euo pipefail

kept=$( (pyenv root || true) 2>/dev/null)
for minor in 11 12 13 14; do
  for python in "python3.$minor" "$kept"/versions/"3.$minor".*/bin/python3; do
    if "$python" -c "import sys; print(sys.executable); sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
      break
    fi
  done
done
