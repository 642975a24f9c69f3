#!/usr/bin/env bash
# Table 1 of Nawrot et al. 2023: bits per character of language models whose segments are found in eight ways. Each is
# trained on a stream of letters and spaces, then scored on the whole test split in windows that overlap. Sets up .venv
# where there is none. The same command again goes on where it was interrupted.
#
#   scripts/reproduce/dynamic_pooling_table1.sh [--scale tiny|small|paper] [--corpus NAME] [--data FILE]
#       [--rows ROW,...] [--out FOLDER] [--cpu]
#
#   --scale   paper (default): 12 layers of width 512, 200,000 updates of 8 windows of 2,048 characters; small: 8 layers
#             of width 128, 2,000 updates of 4 windows of 512, for an hour or two on a CPU; tiny: 3 layers of width 16, 20
#             updates, in minutes
#   --corpus  text8 (default), wiki40b-en, cc100-en, wiki40b-fi, wiki40b-he or wiki40b-vi
#   --data    a text, or JSON lines with a field `article`, instead of the corpus; tiny takes the sample papers
#   --rows    files of configs/dynamic_pooling (default: vanilla,fixed_2,fixed_3,fixed_4,gumbel,entropy,unigram,whitespace)
#   --out     data, and a folder for each model (default: reproduced/SCALE/dynamic_pooling)
#   --cpu     without a GPU; tiny and small never use one
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }
scale=paper corpus=text8 data='' out='' cpu=()
rows=vanilla,fixed_2,fixed_3,fixed_4,gumbel,entropy,unigram,whitespace
while (($#)); do
    case $1 in
        -h | --help) usage && exit ;;
        --cpu) cpu=(common.cpu=true common.fp16=false) && shift ;;
        --scale | --corpus | --data | --rows | --out)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *) fail "An argument must be an option that --help lists, but is $1." ;;
    esac
done
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
case $corpus in
    text8) name=text8 language=en ;;
    wiki40b-en | wiki40b-fi | wiki40b-he | wiki40b-vi | cc100-en) name=${corpus%-*} language=${corpus#*-} ;;
    *) fail "--corpus must be text8, wiki40b-en, cc100-en, wiki40b-fi, wiki40b-he or wiki40b-vi, but is $corpus." ;;
esac
# As the paper has them: the best number of pieces of each language.
case $language in fi | he) pieces=200 ;; *) pieces=10000 ;; esac
limits=() size=() window=2048 context=1536 batch=16
[[ $scale == paper ]] || cpu=(common.cpu=true common.fp16=false)
case $scale in
    paper) ;;
    small)
        window=512 context=384
        limits=(--train-characters 10000000 --valid-characters 200000 --test-characters 200000)
        size=(model.embed_dim=128 model.ffn_embed_dim=512 model.num_heads=4 "model.layers='2,4,2'"
            dataset.batch_size=4 optimization.max_update=2000 "optimization.lr=[0.001]"
            lr_scheduler.warmup_updates=100 checkpoint.save_interval_updates=500)
        ;;
    tiny)
        window=64 context=48 pieces=100 data=${data:-$root/data/sample/train.jsonl.xz}
        limits=(--train-characters 20000 --valid-characters 2000 --test-characters 2000)
        size=(model.embed_dim=16 model.ffn_embed_dim=32 model.num_heads=2 "model.layers='1,1,1'"
            dataset.batch_size=4 dataset.num_workers=0 optimization.max_update=20 "optimization.lr=[0.001]"
            lr_scheduler.warmup_updates=5 checkpoint.save_interval_updates=10)
        ;;
    *) fail "--scale must be tiny, small or paper, but is $scale." ;;
esac
for row in ${rows//,/ }; do
    [[ -f $root/configs/dynamic_pooling/$row.yaml ]] || fail "--rows must be files of configs/dynamic_pooling, but one is $row."
done
[[ -z $data || -f $data ]] || fail "--data must be a file, but $data is none."
out=${out:-reproduced/$scale/dynamic_pooling}

[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH
plugin=$(pyramidions user-dir)
mkdir -p "$out/$corpus" && out=$(cd "$out/$corpus" && pwd)

case $data in '') source=("$name") ;; *.jsonl*) source=("$data" --source-field article) ;; *) source=("$data") ;; esac
pyramidions prepare "${source[@]}" --characters "$language" --pieces "$pieces" "${limits[@]}" --out "$out/data"
for row in ${rows//,/ }; do
    config=$row folder=$out/$row
    # The paper's best prior for Finnish.
    [[ $corpus-$row != wiki40b-fi-gumbel ]] || config=gumbel_fi
    mkdir -p "$folder"
    [[ -f $folder/test.log ]] && continue
    # One process: an update has as many windows as the paper's on two GPUs.
    fairseq-hydra-train --config-dir "$root/configs" --config-name dynamic_pooling "+dynamic_pooling=$config" \
        "common.user_dir='$plugin'" "task.data='$out/data'" "checkpoint.save_dir='$folder'" \
        "task.tokens_per_sample=$window" "${size[@]}" distributed_training.distributed_world_size=1 "${cpu[@]}" |
        tee -a "$folder/train.log"
    fairseq-eval-lm "$out/data" --user-dir "$plugin" --task character_language_modeling \
        --path "$folder/checkpoint_last.pt" --gen-subset test --tokens-per-sample "$window" --context-window "$context" \
        --batch-size "$batch" ${cpu:+--cpu} 2>&1 | tee "$folder/test.unfinished.log"
    mv "$folder/test.unfinished.log" "$folder/test.log"
done

echo
echo "| $corpus, $scale | bits per character | published |"
echo "|---|---|---|"
for row in ${rows//,/ }; do
    bits=$(sed -nE 's/.*Loss \(base 2\): ([0-9.]+),.*/\1/p' "$out/$row/test.log" | tail -n 1)
    published=$(grep -m 1 -E "^dynamic_pooling_table[12],$row-$corpus," "$root/configs/dynamic_pooling.csv" | cut -d, -f15 || true)
    echo "| $row | $bits | ${published:-–} |"
done
[[ $scale == paper ]] || echo "Models at scale $scale say nothing about the published ones."
