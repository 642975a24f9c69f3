#!/usr/bin/env bash
# Parts of other systems in the shallow model of table 2: windows, LSH, Sinkhorn, HEPOS, and a Pyramidion that looks back.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" neighbours "$@"
