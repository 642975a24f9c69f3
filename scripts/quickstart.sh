#!/usr/bin/env bash
# From nothing to summaries on the CPU: sets up .venv, prepares the bundled sample of real papers, trains a tiny
# DeepPyramidion, summarizes the held-out papers and scores the result beside a lead baseline.
#
#   scripts/quickstart.sh
#
#   OUT             where data, checkpoints and summaries go (quickstart)
#   UPDATES         training updates (300)
#   PYTHON, TORCH   as in scripts/setup.sh
#
# Safe to run again: prepared data are kept and training goes on from its last checkpoint.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${OUT:-quickstart}
UPDATES=${UPDATES:-300}
VOCAB_SIZE=4000
SOURCE_POSITIONS=4096
TARGET_POSITIONS=256

say() { printf '\n%s\n' "$*"; }

scripts/setup.sh train
PATH=$PWD/.venv/bin:$PATH
plugin=$(pyramidions user-dir)

say "1. Prepare 260 papers ($OUT/data)"
pyramidions prepare data/sample --out "$OUT/data" --vocab-size "$VOCAB_SIZE"

say "2. Train a tiny DeepPyramidion for $UPDATES updates ($OUT/checkpoints)"
# The preset's shape (six layers, pooling after the second and third), with small sizes and short memories.
fairseq-train "$OUT/data" --user-dir "$plugin" --cpu \
    --task long_document_summarization --arch deep_pyramidion \
    --max-source-positions "$SOURCE_POSITIONS" --max-target-positions "$TARGET_POSITIONS" \
    --embed-dim 128 --num-heads 4 --ffn-embed-dim 256 \
    --pooling-lengths None,512,128,None,None,None \
    --criterion pooled_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 50 --clip-norm 1.0 \
    --batch-size 4 --max-update "$UPDATES" --disable-validation --seed 1 \
    --save-dir "$OUT/checkpoints" --save-interval-updates 100 --keep-interval-updates 1 --no-epoch-checkpoints \
    --log-format tqdm

say "3. Summarize the 40 held-out papers ($OUT/generate-test.txt)"
fairseq-generate "$OUT/data" --user-dir "$plugin" --cpu \
    --task long_document_summarization --gen-subset test \
    --path "$OUT/checkpoints/checkpoint_last.pt" --batch-size 8 --beam 2 \
    --results-path "$OUT"

say "4. Score"
pyramidions score "$OUT/generate-test.txt" --data "$OUT/data" --lead --show 1 --json "$OUT/scores.json"

cat <<'NOTE'

What this shows: the pipeline works on this machine, from papers to scores. What it does not show: how good a
DeepPyramidion is. A model this small, trained for minutes on 200 papers, learns the shape and vocabulary of an
abstract and hardly anything about the paper in front of it; the lead baseline beside it copies real sentences.
The README says how to train on a whole corpus.
NOTE
