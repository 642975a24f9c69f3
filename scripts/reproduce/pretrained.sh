#!/usr/bin/env bash
# Fine-tunes a pretrained model: imports it, prepares a corpus with its tokenizer, trains, summarizes the test documents
# and scores them. Sets up .venv where there is none. The same command again goes on where it was interrupted; the
# arguments of a finished step, which FOLDER/arguments lists, cannot change any more.
#
#   scripts/reproduce/pretrained.sh RECIPE CORPUS [--source MODEL] [--data DOCUMENTS] [--out FOLDER] [--gpus N]
#                                   [--configs FOLDER] [KEY=VALUE...]
#
#   RECIPE     a file of configs/pretrained: bart_base_4k_blockwise, bart_base_16k_pyramidion, led_base_16k,
#              pegasus_large_4k_blockwise, pegasus_x_base_16k_pyramidion, longt5_base_16k_pyramidion
#   CORPUS     a file of configs/corpus: arxiv, pubmed, govreport, qmsum
#   --source   the pretrained model, a name on the Hugging Face hub or a folder; by default the one the recipe names
#   --data     documents as `pyramidions prepare` reads them, with summaries; needed for qmsum, where it may be its
#              release, or documents with the field `query`; the others come from the hub
#   --out      where all results go (default: pretrained/RECIPE-CORPUS)
#   --gpus     GPUs of this machine (default: 1; 0 for the CPU); an update has about 64 documents with any number
#   --configs  folder with base.yaml, pretrained and corpus (default: configs of this repository)
#   KEY=VALUE  further settings of fairseq-hydra-train, e.g. optimization.max_update=1000 task.freeze=embeddings
#
#   scripts/reproduce/pretrained.sh bart_base_16k_pyramidion govreport --gpus 8
#   scripts/reproduce/pretrained.sh led_base_16k qmsum --data QMSum
set -euo pipefail

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }

case ${1:-} in -h | --help) usage && exit ;; esac
(($# >= 2)) || fail "RECIPE and CORPUS must be given; --help lists them."
recipe=$1 corpus=$2 && shift 2
source='' out=pretrained/$recipe-$corpus data='' gpus=1 configs=$root/configs settings=()
while (($#)); do
    case $1 in
        --source | --data | --out | --gpus | --configs)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *=*) settings+=("$1") && shift ;;
        *) fail "An argument must be KEY=VALUE or an option that --help lists, but is $1." ;;
    esac
done
[[ -d $configs/pretrained && -d $configs/corpus ]] || fail "--configs must hold pretrained and corpus, but is $configs."
configs=$(cd -P "$configs" && pwd -P)
names() { (cd "$configs/$1" && printf '%s, ' *.yaml | sed 's/\.yaml//g'); }
[[ -f $configs/pretrained/$recipe.yaml ]] || fail "RECIPE must be one of $(names pretrained)but is $recipe."
[[ -f $configs/corpus/$corpus.yaml ]] || fail "CORPUS must be one of $(names corpus)but is $corpus."
said() { sed -n "s/^# $1: //p" "$configs/pretrained/$recipe.yaml"; }
[[ -n $source ]] || source=$(said Source)
read -ra changes <<<"$(said Import)"
[[ $gpus =~ ^[0-9]+$ ]] || fail "--gpus must be a number, but is $gpus."
case $corpus in
    arxiv | pubmed | govreport)
        [[ -n $data || ! -e $corpus ]] || fail "--data must be given here, where $corpus is a path."
        documents=("${data:-$corpus}")
        ;;
    *)
        [[ -n $data ]] || fail "--data must be given: $corpus is not on the hub in a form that can be read."
        documents=("$data")
        ;;
esac
# Several questions about one meeting have its id.
[[ $corpus != qmsum ]] || documents+=(--query-field query --number-repeated-ids)
[[ $corpus != qmsum || ! -d $data/data/ALL ]] || documents=(qmsum --release "$data")

mkdir -p "$out"
out=$(cd -P "$out" && pwd -P)
start=$out/start.pt best=$out/checkpoints/checkpoint_best.pt arguments=()
# Others would report the scores of what was made with these.
hold() {
    arguments+=("$1: ${*:3}")
    [[ ! -e $2 ]] || grep -qxFs -- "${arguments[-1]}" "$out/arguments" ||
        fail "Finished steps must keep the arguments in $out/arguments, but now it is ${arguments[-1]}; another" \
            "--out begins anew."
}
saved=("$out"/checkpoints/*.pt)
hold import "$start" "${configs@Q}" "${recipe@Q}" "${source@Q}"
hold prepare "$out/data/manifest.json" "${documents[@]@Q}"
hold train "${saved[0]}" "${corpus@Q}" "${settings[@]@Q}"
printf '%s\n' "${arguments[@]}" >"$out/arguments"

[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH
plugin=$(pyramidions user-dir)

[[ -f $start ]] || pyramidions import "$source" "${changes[@]}" -o "$start"
[[ -f $out/data/manifest.json ]] ||
    pyramidions prepare "${documents[@]}" --skip-empty --tokenizer "$start" --out "$out/data"

processes=$((gpus > 0 ? gpus : 1)) cpu=()
((gpus)) || cpu=(common.cpu=true)
[[ -f $out/trained ]] || {
    fairseq-hydra-train --config-dir "$configs" --config-name base "+pretrained=$recipe" "+corpus=$corpus" \
        "common.user_dir='$plugin'" "task.data='$out/data'" "checkpoint.save_dir='$out/checkpoints'" \
        "checkpoint.finetune_from_model='$start'" "distributed_training.distributed_world_size=$processes" \
        "optimization.update_freq=[$(((64 + processes - 1) / processes))]" "${cpu[@]}" "${settings[@]}"
    touch "$out/trained"
}
[[ -f $out/generate-test.txt ]] || {
    fairseq-generate "$out/data" --user-dir "$plugin" --task long_document_summarization --gen-subset test \
        --path "$best" --batch-size 1 --results-path "$out/generating" "${cpu[@]:+--cpu}"
    mv "$out/generating/generate-test.txt" "$out"
}
pyramidions score "$out/generate-test.txt" --data "$out/data" --json "$out/scores.json"
echo "Model: $best. To use it without fairseq: pyramidions export $best $out/export"
