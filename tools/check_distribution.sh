#!/usr/bin/env bash
# Build the wheel and the source distribution, and use both as a stranger would.
# Usage: tools/check_distribution.sh OUT [PYTHON...]
# OUT, a new folder, receives the two files, their SHA-256 sums and the bill of materials (CycloneDX) of a default install.
# Each PYTHON (default: every python3.11 to python3.14 that starts) installs the wheel into a clean environment.
# Needs the packages of the extra `release` in the Python named by BUILDER (default: .venv/bin/python).
set -euo pipefail

out=${1:?"usage: tools/check_distribution.sh OUT [PYTHON...]"}
builder=$(realpath -s "${BUILDER:-.venv/bin/python}")
shift
pythons=("$@")
if [ $# = 0 ]; then
  for name in python3.11 python3.12 python3.13 python3.14; do
    if "$name" -c '' 2>/dev/null; then pythons+=("$name"); fi
  done
fi
mkdir "$out"
out=$(realpath "$out")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

use() { # environment: the command works outside the source tree, from files of labels to truths and to a page
  (cd "$(mktemp -d -p "$scratch")" && printf 'task,worker,label\na,v,yes\na,w,yes\nb,v,no\n' > labels.csv &&
    "$1/bin/crowdveil" --version && "$1/bin/crowdveil" infer labels.csv --out found > log && test -s found/truths.csv &&
    "$1/bin/crowdveil" report found --out found.html > log && test -s found.html)
}

printf '== built twice, equal byte for byte\n'
"$builder" -m build -q --outdir "$out" . > "$scratch/log"
"$builder" -m build -q --outdir "$scratch/again" . > "$scratch/log"
for file in "$out"/*; do cmp "$file" "$scratch/again/$(basename "$file")"; done
(cd "$out" && sha256sum ./* | tee SHA256SUMS)
"$builder" -m twine check --strict "$out"/*.whl "$out"/*.tar.gz

for python in "${pythons[@]}"; do
  printf '== the wheel on %s\n' "$("$python" --version)"
  "$python" -m venv "$scratch/$(basename "$python")"
  "$scratch/$(basename "$python")/bin/python" -m pip install -q "$out"/*.whl
  use "$scratch/$(basename "$python")"
done

printf '== the source distribution, without a cache\n'
"${pythons[0]}" -m venv "$scratch/source"
"$scratch/source/bin/python" -m pip install -q "$out"/*.tar.gz
use "$scratch/source"

printf '== the bill of materials of a default install\n'
"$builder" -m cyclonedx_py environment --output-reproducible --pyproject pyproject.toml --mc-type library \
  --output-file "$out/crowdveil.cdx.json" "$scratch/source/bin/python"
"$builder" -c 'import json, sys
parts = [part["name"] for part in json.load(open(sys.argv[1]))["components"]]
print(*sorted(parts))
assert {"numpy", "scipy", "pyarrow"} <= set(parts)' "$out/crowdveil.cdx.json"
