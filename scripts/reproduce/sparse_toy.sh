#!/usr/bin/env bash
# Table 4 of Jaszczur et al. 2021: a Transformer and a Terraformer learn to copy and to add decimal numbers, and are tested
# on longer ones. Sets up .venv where there is none. The same command again goes on where it was interrupted.
#
#   scripts/reproduce/sparse_toy.sh [--scale tiny|paper] [--out FOLDER] [--cpu]
#
#   --scale  paper (default): 12 + 4 layers of width 256, 100,000 updates of 128 examples, inputs of up to 128 symbols and
#            of 256 to 300 in the test; tiny: 2 + 1 layers of width 32, 20 updates, short inputs, in minutes
#   --out    a folder for each model (default: reproduced/SCALE/sparse_toy)
#   --cpu    without a GPU; tiny never uses one
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }
scale=paper out='' cpu=()
while (($#)); do
    case $1 in
        -h | --help) usage && exit ;;
        --cpu) cpu=(--cpu) && shift ;;
        --scale | --out)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *) fail "An argument must be an option that --help lists, but is $1." ;;
    esac
done
case $scale in
    paper) size=(--batch-size 128 --max-update 100000 --warmup-updates 1000) ;;
    tiny)
        cpu=(--cpu)
        size=(--batch-size 16 --max-update 20 --warmup-updates 5 --examples 160 --test-examples 16
            --longest 8 --test-shortest 12 --test-longest 16
            --embed-dim 32 --ffn-embed-dim 64 --encoder-layers 2 --decoder-layers 1)
        ;;
    *) fail "--scale must be tiny or paper, but is $scale." ;;
esac
out=${out:-reproduced/$scale/sparse_toy}

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH
plugin=$(pyramidions user-dir)

for problem in copy addition; do
    for arch in toy_vanilla toy_terraformer; do
        folder=$out/$problem-$arch
        mkdir -p "$folder"
        fairseq-train --user-dir "$plugin" --task toy_sequences --problem "$problem" --arch "$arch" \
            --criterion pooled_cross_entropy --optimizer adam --lr 0.0005 --lr-scheduler inverse_sqrt "${size[@]}" \
            --valid-subset valid,test --best-checkpoint-metric symbols_right --maximize-best-checkpoint-metric \
            --no-epoch-checkpoints --num-workers 0 --log-format json --seed 1 \
            --distributed-world-size 1 "${cpu[@]}" --save-dir "$folder" |
            tee -a "$folder/train.log"
    done
done
echo
echo "Share of symbols, and of whole sequences, that are right in the test; configs/sparse.csv has the published ones."
for folder in "$out"/*-toy_*; do
    grep '"test_symbols_right"' "$folder/train.log" | tail -n 1 |
        sed -E 's/.*"test_(symbols_right)": "([0-9.]+)".*"test_(sequences_right)": "([0-9.]+)".*/\1 \2, \3 \4/' |
        sed "s/^/${folder##*/}: /"
done
