#!/usr/bin/env bash
# Figure 4: seconds of a training step of vanilla, Blockwise and Pyramidion with 2 to 16 layers.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" figure4 "$@"
