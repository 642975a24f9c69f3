#!/usr/bin/env bash
# Systems for long documents that a lecture of 2021 compares, as published and with our pooling, on GovReport and PubMed.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" lecture_govreport lecture_pubmed "$@"
