#!/usr/bin/env bash
# From nothing to summaries on the CPU: sets up .venv, extracts summaries of the bundled sample of real papers without
# training, then trains a tiny model that copies and writes, summarizes the held-out papers and scores both beside the
# lead.
#
#   scripts/quickstart.sh
#
#   OUT             where data, checkpoints and summaries go (quickstart)
#   UPDATES         training updates (400, two to four minutes; after five the training stops, and another run goes on)
#   PYTHON, TORCH   as in scripts/setup.sh
#
# Safe to run again: what is prepared or trained is kept, and an interrupted training goes on from its last checkpoint.
set -euo pipefail

case ${1:-} in
    "") ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;;
    *) echo "quickstart: no argument is known but --help, but there is '$1'." >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${OUT:-quickstart}
UPDATES=${UPDATES:-400}
[[ $UPDATES =~ ^[1-9][0-9]{0,8}$ ]] || {
    echo "quickstart: UPDATES must be a number of updates, at least 1, but is '$UPDATES'." >&2
    exit 2
}
readonly WORDS=220  # of an extract
readonly LIMIT=300  # seconds that one run trains at most, however slow the machine

say() { printf '\n%s\n' "$*"; }
# failed COMMAND LOG   Shows the end of what a command said, and stops.
failed() {
    tail -20 "$2" >&2
    echo "quickstart: $1 failed; all of its output is in $2." >&2
    exit 1
}
# count_updates AFTER   Turns the log of a training that goes on AFTER updates into one line that counts them, or where
# there is no terminal into a line from time to time.
count_updates() {
    local line text before=$1 updates loss shown=0 start=$SECONDS elapsed left most
    while IFS= read -r line; do
        [[ $line =~ \"loss\":\ \"([0-9.]+)\".*\"num_updates\":\ \"([0-9]+)\" ]] || continue
        loss=${BASH_REMATCH[1]} updates=${BASH_REMATCH[2]} elapsed=$((SECONDS - start))
        left=$((elapsed * (UPDATES - updates) / (updates > before ? updates - before : 1))) most=$((LIMIT - elapsed))
        ((left < most)) || left=$((most > 0 ? most : 0))
        printf -v text '  %d of %d updates, loss %s, %d:%02d left' "$updates" "$UPDATES" "$loss" $((left / 60)) $((left % 60))
        if [[ -t 1 ]]; then
            printf '\r%-60s' "$text"
        elif ((SECONDS - shown >= 15)); then
            shown=$SECONDS
            printf '%s\n' "$text"
        fi
    done
    [[ ! -t 1 ]] || printf '\n'
}
# Prints the updates of the newest checkpoint that is whole, and the hours they took plus those that this run may take.
trained() {
    python - "$OUT/checkpoints" "$LIMIT" <<'PYTHON'
import sys
from pathlib import Path

import torch

updates, seconds = 0, 0.0
for path in sorted(Path(sys.argv[1]).glob("*.pt"), key=lambda path: path.stat().st_mtime):
    try:
        state = torch.load(path, weights_only=True)
    except Exception:
        continue  # fairseq's task takes the newest that is whole, too
    updates = state["optimizer_history"][-1]["num_updates"]
    seconds = state["extra_state"]["previous_training_time"]
print(updates, (seconds + float(sys.argv[2])) / 3600)
PYTHON
}
interrupted() {
    printf '\nquickstart: interrupted; run it again to go on.\n' >&2
    exit 130
}

scripts/setup.sh train
PATH=$PWD/.venv/bin:$PATH
plugin=$(pyramidions user-dir)
trap interrupted INT
# Threads that wait must not take the processor from others that work.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

say "1. Prepare 260 papers, of each the sentences that HipoRank selects ($OUT/data)"
pyramidions prepare data/sample --out "$OUT/data" --vocab-size 4000 --select hiporank --budget 512

say "2. Extract summaries of the 40 held-out papers, without training ($OUT/extracts.jsonl; look at $OUT/extracts.html)"
pyramidions extract data/sample/test.jsonl.xz --field article --words "$WORDS" --method hiporank \
    -o "$OUT/extracts.jsonl" --explain "$OUT/extracts.html"
pyramidions extract data/sample/test.jsonl.xz --field article --words "$WORDS" --method lead -o "$OUT/lead.jsonl"
pyramidions score "$OUT/extracts.jsonl" --data "$OUT/data" --baseline "$OUT/lead.jsonl" --show 0

say "3. Train a tiny model for $UPDATES updates, 2 to 5 minutes ($OUT/checkpoints; log in $OUT/train.log)"
read -r updates hours < <(trained)
if ((updates >= UPDATES)); then
    echo "It is trained already, for $updates updates."
else
    ((updates == 0)) || echo "It has $updates updates of an earlier run and goes on."
    # In the first updates it learns to copy. fairseq counts hours from the start of the first run.
    fairseq-train "$OUT/data" --user-dir "$plugin" --cpu \
        --task long_document_summarization --arch pointer_generator \
        --max-source-positions 512 --max-target-positions 200 --decoding-long extract \
        --embed-dim 96 --ffn-embed-dim 192 --num-heads 4 --normalize-before \
        --recurrence sru --copying-updates $((UPDATES / 2)) \
        --dropout 0 --attention-dropout 0 --activation-dropout 0 \
        --criterion pooled_cross_entropy \
        --optimizer adam --adam-betas '(0.9, 0.98)' --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 50 \
        --clip-norm 1 --batch-size 8 --max-update "$UPDATES" --disable-validation \
        --stop-time-hours "$hours" \
        --save-dir "$OUT/checkpoints" --save-interval-updates 100 --keep-interval-updates 1 --no-epoch-checkpoints \
        --log-format json --log-interval 5 2>&1 | tee -ai "$OUT/train.log" | count_updates "$updates" ||
        failed fairseq-train "$OUT/train.log"
    read -r updates hours < <(trained)
    if ((updates < UPDATES)); then
        echo "Stopped after $updates of $UPDATES updates, since five minutes were over. Run it again to train on: the" \
            "summaries get better."
    fi
fi

say "4. Summarize the 40 held-out papers, 10 to 60 seconds, minutes on a busy machine ($OUT/generate-test.txt)"
fairseq-generate "$OUT/data" --user-dir "$plugin" --cpu --task long_document_summarization --gen-subset test \
    --path "$OUT/checkpoints/checkpoint_last.pt" --batch-size 8 --no-repeat-ngram-size 3 \
    --results-path "$OUT" 2>"$OUT/generate.log" || failed fairseq-generate "$OUT/generate.log"

say "5. Score the tiny model beside the extracts and the lead"
pyramidions score "$OUT/generate-test.txt" --data "$OUT/data" --baseline "$OUT/extracts.jsonl" \
    --baseline "$OUT/lead.jsonl" --json "$OUT/scores.json" --show 0

cat <<'NOTE'

What this shows: extracts are summaries worth reading, and the pipeline works on this machine, from papers to scores.
What it does not show: how good a model can be. One this small, trained for minutes on 200 papers, copies the terms of
its paper into the shape of an abstract, but hardly writes a whole sentence. The tutorial in docs/ says how to train on
a whole corpus.
NOTE
cat <<NEXT

Try next (source .venv/bin/activate first):
  pyramidions extract paper.pdf --explain page.html
  pyramidions summarize $OUT/checkpoints data/sample/README.md --explain page.html
NEXT
