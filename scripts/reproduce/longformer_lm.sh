#!/usr/bin/env bash
# Longformer's small model of characters on text8 or enwik8 (Beltagy et al. 2020, section 4, tables 2 and 12): five
# phases, each from the weights of the one before, with windows and texts twice as long and half the rate. Sets up .venv
# where there is none. The same command again goes on where it was interrupted.
#
#   scripts/reproduce/longformer_lm.sh [--scale tiny|small|paper] [--corpus text8|enwik8] [--data FILE] [--out FOLDER]
#       [--cpu]
#
#   --scale  paper (default): 12 layers of width 512, 570,000 updates, texts of 2,048 to 23,040 characters; small: 6
#            layers of width 128, 2,000 updates, texts of 256 to 2,880, for hours on a CPU; tiny: 3 layers of width 16, 16
#            updates, in minutes
#   --corpus text8 (default), whose letters are read, or enwik8, whose bytes are
#   --data   a text, or JSON lines with a field `article`, instead of the corpus; tiny takes the sample papers
#   --out    data, and a folder for each phase (default: reproduced/SCALE/longformer_lm, with -enwik8 for enwik8)
#   --cpu    without a GPU; tiny and small never use one
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }
scale=paper corpus=text8 data='' out='' machine=(--fp16)
while (($#)); do
    case $1 in
        -h | --help) usage && exit ;;
        --cpu) machine=(--cpu) && shift ;;
        --scale | --corpus | --data | --out)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *) fail "An argument must be an option that --help lists, but is $1." ;;
    esac
done
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
[[ $scale == paper ]] || machine=(--cpu)
limits=() size=() workers=2
# Windows of the lowest layer and, at most, of the highest, in the first phase; then, ours grow to at most twice the
# highest. Texts of the first phase and of the last. The test scores the last characters of texts that overlap.
case $scale in
    paper)
        layers=12 narrow=32 wide=8192 length=2048 longest=23040 text=32256 scored=512
        updates=(430000 50000 50000 35000 5000) batches=(32 32 16 16 16)
        ;;
    small)
        layers=6 narrow=8 wide=256 length=256 longest=2880 text=4096 scored=512
        updates=(1000 400 300 200 100) batches=(16 8 4 2 1)
        size=(--embed-dim 128 --ffn-embed-dim 512 --num-heads 4)
        limits=(--train-characters 10000000 --valid-characters 200000 --test-characters 200000)
        ;;
    tiny)
        layers=3 narrow=4 wide=16 length=32 longest=160 text=192 scored=64 workers=0
        updates=(8 2 2 2 2) batches=(4 2 2 1 1)
        size=(--embed-dim 16 --ffn-embed-dim 32 --num-heads 4)
        limits=(--train-characters 20000 --valid-characters 2000 --test-characters 2000)
        data=${data:-$root/data/sample/train.jsonl.xz}
        ;;
    *) fail "--scale must be tiny, small or paper, but is $scale." ;;
esac
case $corpus in
    text8) characters=en published=1.10 ;;
    enwik8) characters=bytes published=1.00 ;;
    *) fail "--corpus must be text8 or enwik8, but is $corpus." ;;
esac
[[ -z $data || -f $data ]] || fail "--data must be a file, but $data is none."
[[ $corpus == text8 ]] && suffix='' || suffix=-$corpus
out=${out:-reproduced/$scale/longformer_lm$suffix}

[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH
plugin=$(pyramidions user-dir)
mkdir -p "$out" && out=$(cd "$out" && pwd)

# Two heads of the upper half leave out 1, 2 and 3 positions.
windows() {
    local layer window kinds=''
    for ((layer = 0; layer < layers; layer++)); do
        window=$((narrow << (layer + $1))) most=$((wide << ($1 > 0)))
        kinds+="${kinds:+ | }relative_window(window=$((window < most ? window : most))"
        ((2 * layer < layers)) || kinds+=", dilation=$((2 + (6 * layer - 3 * layers) / layers)), dilated_heads=2"
        kinds+=')'
    done
    echo "$kinds"
}

case $data in '') source=("$corpus") ;; *.jsonl*) source=("$data" --source-field article) ;; *) source=("$data") ;; esac
pyramidions prepare "${source[@]}" --characters "$characters" "${limits[@]}" --out "$out/data"
before=()
for phase in 0 1 2 3 4; do
    folder=$out/phase_$((phase + 1)) most=${updates[phase]}
    window=$((length << phase)) warmup=$((most / 10 < 10000 ? most / 10 : 10000))
    mkdir -p "$folder"
    # Weights of the phase before are read only where this one has not begun.
    [[ -f $folder/done ]] || fairseq-train "$out/data" --user-dir "$plugin" --task character_language_modeling \
        --arch longformer_lm --layers "$layers" --self-attention "$(windows "$phase")" "${size[@]}" \
        --tokens-per-sample $((window < longest ? window : longest)) --batch-size "${batches[phase]}" \
        --required-batch-size-multiple 1 --criterion cross_entropy --optimizer adam --weight-decay 0.01 \
        --clip-norm 0.25 --lr "$(awk "BEGIN {printf \"%.10f\", 0.00025 / 2 ^ $phase}")" --lr-scheduler fixed \
        --warmup-updates "$warmup" --max-update "$most" --save-interval-updates $((most < 1000 ? most : 1000)) \
        --keep-interval-updates 1 --no-epoch-checkpoints --disable-validation --num-workers "$workers" --seed 1 \
        --stack recomputing --distributed-world-size 1 --log-format json --save-dir "$folder" "${machine[@]}" "${before[@]}" |
        tee -a "$folder/train.log"
    touch "$folder/done"
    before=(--finetune-from-model "$folder/checkpoint_last.pt")
done
[[ -f $out/test.log ]] || {
    fairseq-eval-lm "$out/data" --user-dir "$plugin" --task character_language_modeling \
        --path "$folder/checkpoint_last.pt" --gen-subset test --tokens-per-sample "$text" \
        --context-window $((text - scored)) --batch-size 1 --model-overrides "{'max_target_positions': $text}" \
        "${machine[@]}" 2>&1 | tee "$out/test.unfinished.log"
    mv "$out/test.unfinished.log" "$out/test.log"
}
bits=$(sed -nE 's/.*Loss \(base 2\): ([0-9.]+),.*/\1/p' "$out/test.log" | tail -n 1)
echo
echo "| $scale | bits per character | published |"
echo "|---|---|---|"
echo "| longformer_lm on ${data:-$corpus} | $bits | $corpus: $published |"
[[ $scale == paper ]] || echo "Models at scale $scale say nothing about the published one."
