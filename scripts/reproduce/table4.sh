#!/usr/bin/env bash
# Table 4: eight ways of scoring and pooling in a Transpooler, on arXiv.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table4 "$@"
