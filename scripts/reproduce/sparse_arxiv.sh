#!/usr/bin/env bash
# Table 5 of Jaszczur et al. 2021: models with sparse parts, pretrained on missing spans, then trained on arXiv's summaries.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" sparse_table5 "$@"
