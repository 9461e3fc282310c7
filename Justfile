# Shorthand for those who have just; every recipe is one line that also works without it.

python := ".venv/bin/python"

default: lint types test

setup:
    python3 -m venv .venv && .venv/bin/pip install -q -e '.[test,test-slow,lint,docs]'

lint:
    .venv/bin/ruff check . && .venv/bin/ruff format --check .

fix:
    .venv/bin/ruff check --fix . && .venv/bin/ruff format .

types:
    .venv/bin/mypy

test *args:
    {{python}} -m pytest -n 2 {{args}}

docs:
    .venv/bin/sphinx-build -W --keep-going docs site

lowest *args:
    python3 -m venv .venv-lowest && .venv-lowest/bin/pip install -q -c constraints/lowest.txt '.[test,test-slow,lint]' && .venv-lowest/bin/python -m pytest -n 2 {{args}}

constraints:
    uv pip compile -q pyproject.toml --extra test --extra test-slow --extra lint --python-version 3.11 --no-annotate --no-header --no-emit-index-url --resolution lowest-direct -o constraints/lowest.txt
    uv pip compile -q pyproject.toml --extra test --extra test-slow --extra lint --python-version 3.11 --no-annotate --no-header --no-emit-index-url -o constraints/newest.txt

distribution:
    .venv/bin/pip install -q -e '.[release]' && tools/check_distribution.sh dist

ci:
    .ci/run
