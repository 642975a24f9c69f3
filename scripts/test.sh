#!/usr/bin/env bash
# Lint, types and tests, in the .venv that scripts/setup.sh makes: all tests but the slow ones. --slow adds those, as
# the continuous integration does, and --all what is run by night. What follows goes to pytest.
#
#   scripts/test.sh [--slow | --all] [-k topk] [tests/nn]
#
#   PYTHON, TORCH   as in scripts/setup.sh
#
# Without more arguments two jobs run side by side: lint, types and the tests above the seam (tests/conftest.py), which
# take some three minutes; and all other tests, in two processes. PYTEST_ADDOPTS has more options for both.
set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac

tier=(-m "not slow")
case ${1:-} in
    --slow) tier=(-m "slow or not slow") && shift ;;
    --all) tier=(-m "slow or not slow" --all) && shift ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh dev
# The tests call fairseq's commands and ours by name.
PATH=$PWD/.venv/bin:$PATH
# One thread a job: more only get into each other's way.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

lint() {
    echo "Lint"
    ruff check . && ruff format --check . || return
    echo "Types"
    # Without its cache, which has been seen to complain of modules that were added since: a few seconds for certainty.
    mypy --no-incremental
}

if (($#)); then
    lint
    echo "Tests"
    exec python -m pytest "${tier[@]}" "$@"
fi

above() {
    local status=0
    lint || status=1
    python -m pytest "${tier[@]}" --side above-the-seam || status=1
    return "$status"
}

# job NAME COMMAND...: run a command without an input, whose lines begin with a name.
job() {
    local name=$1
    shift
    "$@" </dev/null 2>&1 | sed -u "s/^/$name: /"
}

# Each job is a process group, so that an interrupt ends all of it.
set -m
job "first job" above &
first=$!
# Whole files go to one process, so that what a file prepares once is prepared once.
job "second job" python -m pytest --numprocesses 2 --dist loadfile "${tier[@]}" --side rest &
second=$!
trap 'kill -- "-$first" "-$second" 2>/dev/null || true' EXIT
failed=()
wait "$first" || failed+=("first job (lint, types, tests above the seam)")
wait "$second" || failed+=("second job (the other tests)")
trap - EXIT
((${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "${failed[@]}" && exit 1; }
