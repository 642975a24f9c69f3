#!/usr/bin/env bash
# Table 2: lengths and attention kinds in models of 2 + 2 layers, rows 1 to 20, on arXiv.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table2 "$@"
