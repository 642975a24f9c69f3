#!/usr/bin/env bash
# Table 8 of Jaszczur et al. 2021: log-perplexity of models with sparse parts, pretrained on missing spans of arXiv; and
# figures 3, 5 and 7: of one part alone in several forms.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" sparse_table8 sparse_figure3 sparse_figure5 sparse_figure7 "$@"
