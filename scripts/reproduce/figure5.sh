#!/usr/bin/env bash
# Figure 5: seconds of top-k operators (measured together with figure 6).
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" figure5 "$@"
