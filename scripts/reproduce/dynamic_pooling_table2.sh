#!/usr/bin/env bash
# Table 2 of Nawrot et al. 2023: the mean of a segment's characters beside its last one. Options are those of table 1.
exec "$(dirname "${BASH_SOURCE[0]}")/dynamic_pooling_table1.sh" \
    --rows fixed_2,fixed_2_last,entropy,entropy_last,whitespace,whitespace_last "$@"
