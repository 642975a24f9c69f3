#!/usr/bin/env bash
# Table 10: seconds of a training step and of decoding 256 and 512 tokens, rows 1 to 32.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" table10 "$@"
