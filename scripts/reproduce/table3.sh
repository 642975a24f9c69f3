#!/usr/bin/env bash
# Table 3: Blockwise and DeepPyramidion of 6 + 6 layers, on arXiv and on PubMed.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table3 "$@"
