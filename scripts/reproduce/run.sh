#!/usr/bin/env bash
# Reproduces tables and figures of the paper: what table2.sh and the others call. Sets up .venv where there is none.
#
#   scripts/reproduce/run.sh TABLE... [options of `python -m lab reproduce`; TABLE --help lists them]
#
#   scripts/reproduce/table2.sh --scale tiny                     every row in a small size, on the CPU, in minutes
#   scripts/reproduce/table2.sh --data corpora --gpus 8          at the paper's size, on one machine
#   scripts/reproduce/table2.sh --dry-run --gpus 8               only print the commands
#   scripts/reproduce/lecture.sh --scale tiny --rows stride,hat  systems of a lecture on GovReport and PubMed
#   scripts/reproduce/table2.sh --scale small --data papers      compare rows with each other on real papers, on a CPU
#   scripts/reproduce/table3.sh --data corpora --gpus 8 --nodes 2 --launcher slurm    from a SLURM cluster's login node
set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;; esac

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
python=$root/.venv/bin/python
if [[ " $* " =~ " --dry-run "|" --help "|" -h " ]]; then
    # They run nothing, so they install nothing either.
    [[ -x $python ]] || python=$(command -v python3)
    "$python" -c 'import click, hydra, pydantic, torch' 2>/dev/null ||
        { echo "--dry-run and --help need what scripts/setup.sh train installs, and do not install it." >&2; exit 1; }
elif ! [[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]]; then
    "$root/scripts/setup.sh" train
fi
PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} exec "$python" -m lab reproduce "$@"
