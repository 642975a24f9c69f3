#!/usr/bin/env bash
# Table 1 and a row each of tables 2 and 7 of Jaszczur et al. 2021: what models with sparse parts compute for a token, and
# in which time. It counts the models of 800M and 17B parameters, then times those of 800M, each in turns with the dense
# one: one document of 16 tokens, 12 tokens written, greedily, on the CPU. Weights are random. Sets up .venv where there is
# none.
#
#   scripts/reproduce/sparse_decoding.sh [--scale tiny|paper] [--out FOLDER]
#
#   --scale  paper (default): 24 + 24 layers, for 40 GB of memory; tiny: the times are those of 2 + 2 layers of width 128
#            and hidden width 512, in minutes
#   --out    where the numbers go, NAME.json each (default: reproduced/SCALE/sparse_decoding)
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "$*" >&2 && exit 2; }
scale=paper out=''
while (($#)); do
    case $1 in
        -h | --help) usage && exit ;;
        --scale | --out)
            (($# >= 2)) || fail "$1 needs a value."
            declare "${1#--}=$2" && shift 2
            ;;
        *) fail "An argument must be an option, but is $1; --help lists them." ;;
    esac
done
small=()
case $scale in
    paper) ;;
    tiny) small=(--vocab-size 2000 --repeats 2 --warmup 1 model.embed_dim=128 model.ffn_embed_dim=512 model.encoder_layers=2 model.decoder_layers=2) ;;
    *) fail "--scale must be tiny or paper, but is $scale." ;;
esac
out=${out:-reproduced/$scale/sparse_decoding}

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
[[ -x $root/.venv/bin/pyramidions && -x $root/.venv/bin/fairseq-hydra-train ]] || "$root/scripts/setup.sh" train
export PATH=$root/.venv/bin:$PATH
mkdir -p "$out"

texts=(--source-tokens 16 --target-tokens 12)
of() { printf "$root/configs/sparse/$1_%s.yaml\n" "${@:2}"; }
for size in 800m 17b; do
    mapfile -t models < <(of "$size" dense feed_forward projections both)
    pyramidions cost "${models[@]}" "${texts[@]}"
done
for part in feed_forward projections both output; do
    mapfile -t models < <(of 800m dense "$part")
    pyramidions time "${models[@]}" "${texts[@]}" --train-batch 1 --decode-batch 1 --decode-tokens 12 "${small[@]}" \
        --json "$out/$part.json"
done
echo "configs/sparse.csv has the published figures. A token is a twelfth of the seconds of decoding."
