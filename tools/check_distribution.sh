#!/usr/bin/env bash
# Build the wheel and the source distribution, and use both as a stranger would.
# Usage: tools/check_distribution.sh OUT [PYTHON...]
# OUT, a new folder, receives the two files, their SHA-256 sums and the bill of materials (CycloneDX) of a default install.
# Each PYTHON (default: those of tools/pythons.sh) installs the wheel into a clean environment, infers truths, and asks a
# campaign from its settings to the truths. The first one runs the demo, too.
# Needs the packages of the extra `release` in the Python named by BUILDER (default: .venv/bin/python).
set -euo pipefail

out=${1:?"usage: tools/check_distribution.sh OUT [PYTHON...]"}
builder=$(realpath -s "${BUILDER:-.venv/bin/python}")
shift
pythons=("$@")
if [ $# = 0 ]; then mapfile -t pythons < <("$(dirname "$0")/pythons.sh"); fi
mkdir "$out"
out=$(realpath "$out")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

use() { # environment: the command works outside the source tree, from files of labels to truths and to a page
  (cd "$(mktemp -d -p "$scratch")" && printf 'task,worker,label\na,v,yes\na,w,yes\nb,v,no\n' > labels.csv &&
    "$1/bin/crowdveil" --version && "$1/bin/crowdveil" infer labels.csv --out found > log && test -s found/truths.csv &&
    "$1/bin/crowdveil" report found --out found.html > log && test -s found.html)
}

ask() ( # environment: a campaign is made, served, answered with the one file of a device, closed, read and shown
  cd "$(mktemp -d -p "$scratch")"
  python=$1/bin/python crowdveil=$1/bin/crowdveil
  port=$("$python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  printf 'id,text\nant,Ant\ncow,Cow\n' > tasks.csv
  printf 'name\nAda\nBen\n' > workers.csv
  printf 'task,label\nant,no\ncow,yes\n' > mine.csv
  cat > campaign.toml <<END
title = "Animals"
question = "Is it larger than a cat?"
language = "en"
consent = "Your answers are randomized on this device before they are sent."
open = { from = 2026-01-10, until = 2099-12-31 }
min_reports = 1
participation = "public"
answers = { labels = ["yes", "no"] }
tasks = { file = "tasks.csv", per_worker = 2 }
workers = { names = "workers.csv" }
privacy = { mechanism = "randomized-response", budget_per_worker = 8.0 }
service = { url = "http://127.0.0.1:$port" }
END
  "$crowdveil" campaign new campaign.toml --out asked > log
  "$crowdveil" campaign invite asked > log
  "$crowdveil" campaign page asked --out page.html > log
  grep -q '<html' page.html
  "$crowdveil" campaign page --python device.py > log

  "$crowdveil" campaign serve asked/campaign.json --port "$port" > service.log 2>&1 &
  trap "kill $! || true" EXIT
  "$python" - "http://127.0.0.1:$port/readyz" <<'END' || { cat service.log; exit 1; }
import sys, time, urllib.error, urllib.request
stop = time.monotonic() + 60
while True:
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=5) as response:
            sys.exit(response.status != 200)
    except OSError:
        if time.monotonic() > stop:
            raise
        time.sleep(0.2)
END
  "$python" -I -S device.py "$(tail -n 1 asked/links.csv)" --answers mine.csv --home home > log
  "$crowdveil" campaign close asked/campaign.json > log
  "$crowdveil" campaign export asked/campaign.json --out collected > log
  "$crowdveil" infer collected > log
  "$crowdveil" report collected > log
  printf 'a campaign with %s reports\n' "$(grep -c w0001 collected/reports.csv)"
)

printf '== built twice, equal byte for byte\n'
"$builder" -m build -q --outdir "$out" . > "$scratch/log"
"$builder" -m build -q --outdir "$scratch/again" . > "$scratch/log"
for file in "$out"/*; do cmp "$file" "$scratch/again/$(basename "$file")"; done
(cd "$out" && sha256sum ./* | tee SHA256SUMS)
"$builder" -m twine check --strict "$out"/*.whl "$out"/*.tar.gz

for number in "${!pythons[@]}"; do
  environment=$scratch/python-$number
  printf '== the wheel on %s\n' "$("${pythons[number]}" --version)"
  "${pythons[number]}" -m venv "$environment"
  "$environment/bin/python" -m pip install -q "$out"/*.whl
  use "$environment"
  "$environment/bin/python" -m pip install -q "$(echo "$out"/*.whl)[service]"
  ask "$environment"
done

printf '== the demo from the wheel\n'
(cd "$(mktemp -d -p "$scratch")" && unset CROWDVEIL_DATA && "$scratch/python-0/bin/crowdveil" demo --out demo > log && test -s demo/demo.html)

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
