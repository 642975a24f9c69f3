#!/usr/bin/env bash
# The shallow models of tables 2 and 7 with and without a pointer that copies through the pooling.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" pointing "$@"
