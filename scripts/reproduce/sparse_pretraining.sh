#!/usr/bin/env bash
# Table 8 of Jaszczur et al. 2021: log-perplexity of models with sparse parts, pretrained on missing spans of arXiv.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" sparse_table8 "$@"
