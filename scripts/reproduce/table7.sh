#!/usr/bin/env bash
# Table 7: deeper encoders and bottlenecks, rows 21 to 26, on arXiv.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table7 "$@"
