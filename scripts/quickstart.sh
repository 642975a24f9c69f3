#!/usr/bin/env bash
# From nothing to summaries on the CPU: sets up .venv, prepares the bundled sample of real papers, trains a tiny
# DeepPyramidion, summarizes the held-out papers and scores the result beside a lead baseline.
#
#   scripts/quickstart.sh
#
#   OUT             where data, checkpoints and summaries go (quickstart)
#   UPDATES         training updates (400, two to four minutes)
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

say() { printf '\n%s\n' "$*"; }
# logged LOG command...   Keeps what a command says in a file, and shows its end where the command fails.
logged() {
    local log=$1
    shift
    "$@" || { tail -20 "$log" >&2; echo "quickstart: $1 failed; all of its output is in $log." >&2; exit 1; }
}
# Where there is no terminal for a progress bar, fairseq logs a line from time to time: those are shown.
steps() { if [[ -t 2 ]]; then cat >/dev/null; else grep --line-buffered -o 'epoch [0-9]*:.*num_updates=[0-9]*' || true; fi; }

scripts/setup.sh train
PATH=$PWD/.venv/bin:$PATH
plugin=$(pyramidions user-dir)
# fairseq warns of its own use of what newer versions of torch and hydra deprecate.
export PYTHONWARNINGS=ignore
# Threads that wait must not take the processor from others that work.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

say "1. Prepare 260 papers ($OUT/data)"
pyramidions prepare data/sample --out "$OUT/data" --vocab-size 4000

say "2. Train a tiny DeepPyramidion for $UPDATES updates, 2 to 5 minutes ($OUT/checkpoints; log in $OUT/train.log)"
if [[ -e $OUT/checkpoints/trained-$UPDATES ]]; then
    echo "It is trained already, for $(cat "$OUT/checkpoints/trained-$UPDATES") updates."
else
    # The preset's shape (six layers each, pooling after the second and third of the encoder) in a small size; five
    # minutes at most, however slow the machine.
    logged "$OUT/train.log" fairseq-train "$OUT/data" --user-dir "$plugin" --cpu \
        --task long_document_summarization --arch deep_pyramidion \
        --max-source-positions 1024 --max-target-positions 200 \
        --embed-dim 96 --ffn-embed-dim 192 --num-heads 4 --normalize-before \
        --self-attention-args '{"block_size": 256}' --pooling-lengths None,256,64,None,None,None \
        --dropout 0 --attention-dropout 0 --activation-dropout 0 \
        --criterion pooled_cross_entropy \
        --optimizer adam --adam-betas '(0.9, 0.98)' --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 50 \
        --clip-norm 1 --batch-size 8 --max-update "$UPDATES" --stop-time-hours 0.083 --disable-validation \
        --save-dir "$OUT/checkpoints" --save-interval-updates 100 --keep-interval-updates 1 --no-epoch-checkpoints \
        --log-format tqdm --log-interval 25 > >(tee -a "$OUT/train.log" | steps)
    updates=$(python -c 'import sys, torch
print(torch.load(sys.argv[1], weights_only=True)["optimizer_history"][-1]["num_updates"])' "$OUT/checkpoints/checkpoint_last.pt")
    if ((updates < UPDATES)); then
        echo "Stopped after $updates of $UPDATES updates, since five minutes were over: on a faster or quieter machine the" \
            "summaries read better."
    fi
    echo "$updates" >"$OUT/checkpoints/trained-$UPDATES"
fi

say "3. Summarize the 40 held-out papers, 10 to 60 seconds, minutes on a busy machine ($OUT/generate-test.txt)"
logged "$OUT/generate.log" fairseq-generate "$OUT/data" --user-dir "$plugin" --cpu --task long_document_summarization --gen-subset test \
    --path "$OUT/checkpoints/checkpoint_last.pt" --batch-size 8 --no-repeat-ngram-size 3 \
    --results-path "$OUT" 2>"$OUT/generate.log"

say "4. Score"
pyramidions score "$OUT/generate-test.txt" --data "$OUT/data" --lead --json "$OUT/scores.json" --show 0

cat <<'NOTE'

What this shows: the pipeline works on this machine, from papers to scores. What it does not show: how good a
DeepPyramidion is. A model this small, trained for minutes on the heads of 200 papers, learns the vocabulary and the
shape of an abstract and hardly anything about the paper in front of it; the lead baseline beside it copies real
sentences. The README says how to train on a whole corpus.
NOTE
cat <<NEXT

Try next (source .venv/bin/activate first):
  pyramidions summarize $OUT/checkpoints data/sample/README.md --explain page.html
  pyramidions plot $OUT/train.log
NEXT
