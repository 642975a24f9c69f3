#!/usr/bin/env bash
# Table 8: block sizes, rows 27 to 32, on arXiv.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table8 "$@"
