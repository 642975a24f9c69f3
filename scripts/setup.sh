#!/usr/bin/env bash
# Sets up .venv beside this folder: torch, fairseq and pyramidions in editable mode.
#
#   scripts/setup.sh [train|dev]       train (the default) is enough to use it; dev adds lint, types and tests
#
#   PYTHON   the Python 3.11, 3.12 or 3.13 to use; found on the PATH if not given
#   TORCH    what pip installs as torch; if not given, the CUDA build where nvidia-smi lists a GPU, else the CPU build.
#            TORCH=torch==2.13.0 takes the CUDA build on a machine that has no GPU itself, such as a cluster's login
#            node. Any arguments of pip will do, as in
#            TORCH="torch==2.13.0 --index-url <the index your platform needs, see pytorch.org>"
#
# Safe to run again: a finished .venv is kept with its torch, an outdated one updated, a broken or half-made one made
# anew.
set -euo pipefail

readonly torch_version=2.13.0
readonly fairseq="fairseq-fixed==0.12.3.1"
readonly build_tools=("setuptools>=77.0.3,<81" "wheel>=0.43,<1" "cython>=3,<4" "numpy>=1.26,<3")

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly venv=$root/.venv
readonly log=$venv/setup.log
readonly extra=${1:-train}
readonly pythons="3.11, 3.12 or 3.13"

case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;; esac

say() { printf '%s\n' "$*"; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# Prints the version as 3.11; fails where the argument is no Python that runs.
python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

is_supported() { [[ -n $1 && ", ${pythons/ or/,}," == *", $1,"* ]]; }

find_python() {
    local candidate version seen=""
    if [[ -n ${PYTHON:-} ]]; then
        version=$(python_version "$PYTHON") || stop "PYTHON=$PYTHON is not a Python that runs."
        is_supported "$version" ||
            stop "the set-up needs Python $pythons, but PYTHON=$PYTHON is Python $version."
        python=$PYTHON
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        version=$(python_version "$candidate") || continue
        if is_supported "$version"; then
            python=$candidate
            return
        fi
        seen="$seen, but $candidate is Python $version"
    done
    stop "the set-up needs Python $pythons${seen:-, but no Python was found}; \
install one, or name it with PYTHON=/path/to/python3.11."
}

check_python() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python cannot make virtual environments; install its venv module (Debian, Ubuntu: python3-venv)."
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        stop "$python has no C headers (Python.h), and fairseq is compiled against them; \
install them (Debian, Ubuntu: python3-dev)."
}

compiles() {
    local folder status=0
    folder=$(mktemp -d)
    printf '#include <string>\nint main() { return std::string("ok").size() == 2 ? 0 : 1; }\n' >"$folder/try.cpp"
    "$1" "$folder/try.cpp" -o "$folder/try" >/dev/null 2>&1 || status=1
    rm -rf "$folder"
    return $status
}

# Sets CXX, and CC where the C compiler that Python was built with is not on this machine.
find_compiler() {
    local candidate cc
    for candidate in ${CXX:+"$CXX"} g++ c++ clang++; do
        if compiles "$candidate"; then
            export CXX=$candidate
            cc=$("$python" -c 'import sysconfig; print((sysconfig.get_config_var("CC") or "cc").split()[0])')
            [[ -n ${CC:-} ]] || command -v "$cc" >/dev/null || export CC=$candidate
            return
        fi
    done
    stop "fairseq is compiled here and no C++ compiler works (tried ${CXX:+$CXX, }g++, c++, clang++); \
install one (Debian, Ubuntu: g++; macOS: xcode-select --install)."
}

# Prints the first NVIDIA GPU as "NVIDIA H100 80GB HBM3"; nothing where there is none.
first_gpu() {
    local line
    command -v nvidia-smi >/dev/null || return 0
    while read -r line; do
        if [[ $line =~ ^GPU\ [0-9]+:\ (.*)\ \(UUID ]]; then
            say "${BASH_REMATCH[1]}"
            return
        fi
    done < <(nvidia-smi -L 2>/dev/null)
}

# Sets asked, what TORCH says or said when the .venv was made, and torch, what pip installs: that; else the build that
# the .venv has, since machines with and without a GPU may share a disk; else the build that this machine can use.
choose_torch() {
    local made_with=""
    asked=${TORCH:-}
    [[ -n $asked || ! -s $venv/.torch ]] || asked=$(<"$venv/.torch")
    [[ ! -s $venv/.base ]] || { read -r _ && read -r made_with; } <"$venv/.base" || true
    if [[ -n $asked ]]; then
        torch=$asked
    elif [[ $made_with == *+cpu ]]; then
        torch=torch==$torch_version+cpu
    elif [[ -n $made_with ]]; then
        torch=torch==$torch_version
    elif [[ -n $gpu ]]; then
        torch=torch==$torch_version
    else
        torch=torch==$torch_version+cpu
    fi
}

# A .venv of the same base (place, torch) can be updated; with the same files it is finished.
base_stamp() { printf '%s\n' "$root" "$torch"; }
full_stamp() { base_stamp; cksum <"$root/setup.py"; cksum <"$root/pyproject.toml"; cksum <"${BASH_SOURCE[0]}"; }

has_packages() {
    [[ -x $venv/bin/pyramidions && -x $venv/bin/fairseq-train ]] && "$venv/bin/python" -I -c '
import importlib.util as util, sys
sys.exit(not all(map(util.find_spec, ["torch", "fairseq", "sentencepiece", "pyramidions"])))' 2>/dev/null
}

# Its Python runs and is the one asked for, it was not moved here from elsewhere, no set-up broke off in it, and
# what a finished set-up left is still there.
is_sound() {
    local version wanted
    [[ ! -e $venv/.unfinished ]] || return 1
    version=$(python_version "$venv/bin/python") || return 1
    is_supported "$version" || return 1
    if [[ -n ${PYTHON:-} ]] && wanted=$(python_version "$PYTHON"); then
        [[ $version == "$wanted" ]] || return 1
    fi
    head -3 "$venv/bin/pip" 2>/dev/null | grep -qF "$venv/bin/" || return 1
    [[ ! -e $venv/.base ]] || { [[ $(cat "$venv/.base") == "$(base_stamp)" ]] && has_packages; }
}

is_finished() { [[ -e $venv/.ready-$extra && $(cat "$venv/.ready-$extra") == "$(full_stamp)" ]]; }

# step "what, and how long it usually takes" command...   The output goes to the log, a sign of life to the user.
step() {
    local what=$1 status=0 start=$SECONDS ticker
    shift
    say "  $what"
    printf '\n### %s\n' "$*" >>"$log"
    # The sleep outlives its loop, and who reads what we say must not wait for it.
    if [[ -t 1 ]]; then
        while sleep 1 &>/dev/null; do printf '\r    %d s ' $((SECONDS - start)); done &
    else
        while sleep 30 &>/dev/null; do printf '    … %d s\n' $((SECONDS - start)); done &
    fi
    ticker=$!
    trap 'kill $ticker 2>/dev/null || true; say ""; stop "interrupted; run it again to start over."' INT TERM
    # In a subshell, so that what the trap says goes to the user and not to the log.
    ("$@") >>"$log" 2>&1 || status=$?
    trap - INT TERM
    kill $ticker 2>/dev/null || true
    wait $ticker 2>/dev/null || true
    [[ ! -t 1 ]] || printf '\r'
    if ((status)); then
        tail -25 "$log" >&2
        stop "this step failed (see the lines above; all of them are in $log): $what"
    fi
    say "    done in $((SECONDS - start)) s"
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

install_torch() {
    local -a wanted
    local answer=""
    read -ra wanted <<<"$torch"
    if [[ -n $asked ]]; then
        say "  TORCH asks for $torch."
    elif [[ $torch == *+cpu ]]; then
        say "  torch is the CPU build${gpu:+, as it was before} (TORCH=... chooses another)."
    else
        say "  torch is the CUDA build, several GB${gpu:+, for the GPU ($gpu)} (TORCH=... chooses another)."
    fi
    # Not every index has a CPU build under this name; the plain one serves, and the user hears of it.
    if [[ -z $asked && $torch == *+cpu ]]; then
        answer=$(pip install --dry-run --no-deps "${wanted[@]}" 2>&1 || true)
    fi
    if [[ $answer == *"No matching distribution found"* ]]; then
        say "  The package index has no $torch, so torch==$torch_version is taken instead: it runs on the CPU" \
            "too, but on Linux it brings the CUDA libraries, several GB (TORCH=... chooses another)."
        wanted=("torch==$torch_version")
    fi
    step "torch (about 1 minute; several with the CUDA build)" pip install "${wanted[@]}"
}

# Nothing that follows may replace the torch that is there, or bring a second one.
hold_torch() {
    local -r constraints=$venv/constraints.txt
    "$venv/bin/python" -c 'from importlib.metadata import version; print("torch==" + version("torch"))' \
        >"$constraints"
    hold=(--constraint "$constraints" --no-build-isolation)
}

# fairseq has seven extensions, of which each takes a compiler and a gigabyte or two for half a minute.
compile_side_by_side() {
    local cores
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
    printf '[build_ext]\nparallel = %d\n' "$((cores < 4 ? cores : 4))" >"$venv/build.cfg"
    export DIST_EXTRA_CONFIG=$venv/build.cfg
}

# Says which torch there is, and whether it can use the GPU.
report_torch() {
    local told
    say "Set-up: $venv is ready; \`source $venv/bin/activate\` puts its commands on the path."
    [[ -n $gpu ]] || return 0
    told=$("$venv/bin/python" -c 'import torch; print(torch.__version__, torch.cuda.is_available())')
    if [[ $told == *True ]]; then
        say "  torch ${told% *} computes on the GPU ($gpu)."
    elif [[ $told == *+cpu* ]]; then
        say "  torch ${told% *} does not use the GPU ($gpu): TORCH=torch==$torch_version scripts/setup.sh $extra installs the" \
            "build that does."
    else
        say "  torch ${told% *} cannot use the GPU ($gpu), perhaps because its driver is too old for this build:" \
            "nvidia-smi names the newest CUDA it can run, pytorch.org the build for it, and TORCH=... takes that."
    fi
}

main() {
    local python torch asked gpu
    local -a hold
    [[ $extra == train || $extra == dev ]] || stop "the extra must be train or dev, but it is '$extra'."
    gpu=$(first_gpu)
    choose_torch
    if is_sound && is_finished; then
        report_torch
        return
    fi
    find_python
    check_python
    find_compiler

    say "Set-up: $venv with Python $(python_version "$python"), 3 to 5 minutes the first time."
    if [[ -e $venv ]] && ! is_sound; then
        say "  The .venv that is there is broken, half-made or for something else: it is made anew."
        rm -rf "$venv"
    fi
    if [[ ! -e $venv ]]; then
        mkdir "$venv"
        touch "$venv/.unfinished"
        step "virtual environment (a few seconds)" "$python" -m venv "$venv"
    fi
    touch "$venv/.unfinished"
    rm -f "$venv"/.ready-*
    install_torch
    step "build tools (a few seconds)" pip install "${build_tools[@]}"
    hold_torch
    compile_side_by_side
    step "fairseq, compiled here (1 to 3 minutes)" pip install "${hold[@]}" "$fairseq"
    step "pyramidions with [$extra] (about 1 minute)" pip install "${hold[@]}" --editable "${root}[$extra,bench]"
    # fairseq asks for it, for speech alone, and gets one of another torch, with which transformers cannot be imported.
    step "torchaudio, which no text needs, taken out again; pip check will miss it" pip uninstall --yes torchaudio
    step "check (some seconds)" "$venv/bin/python" -c 'import fairseq.data.data_utils_fast, pyramidions'

    [[ -z $asked ]] || printf '%s' "$asked" >"$venv/.torch"
    base_stamp >"$venv/.base"
    full_stamp >"$venv/.ready-$extra"
    [[ $extra != dev ]] || full_stamp >"$venv/.ready-train"
    rm "$venv/.unfinished"
    report_torch
}

main
