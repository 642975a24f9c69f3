#!/usr/bin/env bash
# Lint, types and tests, in the .venv that scripts/setup.sh makes: all tests but the slow ones, or with --slow all, as
# the continuous integration runs them. What follows goes to pytest.
#
#   scripts/test.sh [--slow] [-k topk] [tests/nn]
#
#   PYTHON, TORCH   as in scripts/setup.sh
#   WORKERS         processes that run tests (2)
set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac

tier=(-m "not slow")
if [[ ${1:-} == --slow ]]; then
    tier=(-m "slow or not slow")
    shift
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh dev
# The tests call fairseq's commands and ours by name.
PATH=$PWD/.venv/bin:$PATH
# One thread a worker: more only get into each other's way.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

echo "Lint"
ruff check .
ruff format --check .
echo "Types"
# Without its cache, which has been seen to complain of modules that were added since: a few seconds for certainty.
mypy --no-incremental
echo "Tests"
# Whole files go to one worker, so that what a file prepares once is prepared once.
python -m pytest --numprocesses "${WORKERS:-2}" --dist loadfile "${tier[@]}" "$@"
