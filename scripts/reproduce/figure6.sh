#!/usr/bin/env bash
# Figure 6: quality of top-k operators (measured together with figure 5).
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" figure6 "$@"
