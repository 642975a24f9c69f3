#!/usr/bin/env bash
# Tables 1, 2, 6 and 7 and the projections of figure 5 of Jaszczur et al. 2021: what models with sparse parts compute for a
# token, and in which time. It counts the models of 800M and 17B parameters, then times those of 800M, each in turns with
# the dense one: one document of 16 tokens, 12 tokens written, greedily, on the CPU. Weights are random. Sets up .venv where
# there is none.
#
#   scripts/reproduce/sparse_decoding.sh [--scale tiny|small|paper] [--rows ROW,...] [--out FOLDER]
#
#   --scale  paper (default): 24 + 24 layers, for 40 GB of memory; small: the times are those of 6 + 6 layers of width 512
#            and hidden width 2048; tiny: of 2 + 2 layers of width 128 and hidden width 512, in minutes
#   --rows   files 800m_... of configs/sparse to time (default: feed_forward,feed_forward_128,projections,multiplicative,
#            conv,both,output_2,output,output_8,terraformer)
#   --out    where the numbers go, NAME.json each (default: reproduced/SCALE/sparse_decoding)
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }
scale=paper out=''
rows=feed_forward,feed_forward_128,projections,multiplicative,conv,both,output_2,output,output_8,terraformer
while (($#)); do
    case $1 in
        -h | --help) usage && exit ;;
        --scale | --rows | --out)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *) fail "An argument must be an option that --help lists, but is $1." ;;
    esac
done
of_size() { small=(--repeats "$1" --warmup 1 model.embed_dim="$2" model.ffn_embed_dim="$3" model.{en,de}coder_layers="$4"); }
small=()
case $scale in
    paper) ;;
    small) of_size 5 512 2048 6 ;;
    tiny) of_size 2 128 512 2 && small+=(--vocab-size 2000) ;;
    *) fail "--scale must be tiny, small or paper, but is $scale." ;;
esac
out=${out:-reproduced/$scale/sparse_decoding}

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
for row in ${rows//,/ }; do
    [[ -f $root/configs/sparse/800m_$row.yaml ]] || fail "--rows must be files 800m_... of configs/sparse, but one is $row."
done
[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
mkdir -p "$out"

texts=(--source-tokens 16 --target-tokens 12)
of() { printf "$root/configs/sparse/$1_%s.yaml\n" "${@:2}"; }
count() {
    mapfile -t models < <(of "$@")
    pyramidions cost "${models[@]}" "${texts[@]}"
}
count 800m dense feed_forward feed_forward_128
count 800m dense multiplicative conv projections both
count 800m dense output_2 output output_8 terraformer
count 17b dense feed_forward projections both
count 17b terraformer_dense terraformer_feed_forward terraformer_both terraformer
for part in ${rows//,/ }; do
    mapfile -t models < <(of 800m dense "$part")
    python -m lab time "${models[@]}" "${texts[@]}" --train-batch 1 --decode-batch 1 --decode-tokens 12 "${small[@]}" \
        --json "$out/$part.json"
done
echo "configs/sparse.csv has the published figures. A token is a twelfth of the seconds of decoding."
