#!/usr/bin/env bash
# From nothing to paraphrases: makes .venv if need be, and paraphrases with the model that comes with the package. With
# --corpus it also trains a small model of your own, evaluates it, and paraphrases with that; a finished training is kept.
#
#     bash scripts/quickstart.sh "A sentence of yours." …
#     bash scripts/quickstart.sh --corpus synthetic_questions   questions of a built-in grammar; two minutes, no download
#     bash scripts/quickstart.sh --corpus mscoco                captions: downloads 241 MB and trains for 20 minutes
#     bash scripts/quickstart.sh --corpus mscoco --data-dir DIR "A sentence of yours." …
set -euo pipefail

# The `${options[@]+…}` below: the bash of macOS takes an empty list for an unset one.
corpus=
corpus_options=()
sentences=()
while [ $# -gt 0 ]; do
    case "$1 ${2-}" in
        "--corpus synthetic_questions" | "--corpus mscoco") corpus=$2 ;;
        "--data-dir "?*) corpus_options=(--data-dir "$(cd "$2" && pwd)") ;;
        -*)
            echo "error: $1 ${2-}: there are --corpus synthetic_questions, --corpus mscoco, --data-dir DIR" >&2
            exit 2
            ;;
        *)
            sentences+=("$1")
            shift
            continue
            ;;
    esac
    shift 2
done

if [ -z "$corpus" ] && [ ${#corpus_options[@]} -gt 0 ]; then
    echo "error: --data-dir goes with --corpus mscoco" >&2
    exit 2
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
if [ -z "$corpus" ]; then prepare_environment; else prepare_environment '[dev]'; fi
export PATH="$PWD/.venv/bin:$PATH"

show() {
    printf '\n$'
    local word
    for word in "$@"; do
        if [[ $word == *' '* ]]; then word="\"$word\""; fi
        printf ' %s' "$word"
    done
    printf '\n'
    "$@"
}

# Paraphrase with a model, or with none named; then say how Python does the same.
paraphrase() {
    show hf-paraphrase paraphrase "$@" -n 3 "${sentences[@]}"
    cat <<EOF
Before each: its score, made of adequacy, fluency and novelty, which follow.
The same in Python:

    from hf_paraphrase import Paraphraser

    paraphraser = Paraphraser${1:+.from_pretrained}(${1:+"\"$1\""})
    paraphraser("${sentences[0]}", n=3)
EOF
}

if [ -z "$corpus" ]; then
    sentences=(
        "The meeting was moved to Thursday because the room was taken."
        "Heavy rain flooded the main road, leaving 140 drivers stranded overnight."
        "Could you send me the report before you leave?"
        ${sentences[@]+"${sentences[@]}"}
    )
    paraphrase
    exit
fi

if [ "$corpus" = mscoco ]; then
    recipe=residual-lstm-mscoco-small
    run=runs/quickstart-mscoco
    train_options=(${corpus_options[@]+"${corpus_options[@]}"} --max_train_time 20)
    evaluation_options=(${corpus_options[@]+"${corpus_options[@]}"} --max-samples 1000 --sample-seed 1)
    [ ${#sentences[@]} -gt 0 ] || sentences=(
        "A man is riding a wave on a surfboard."
        "Two dogs are playing with a frisbee in the park."
        "A plate of food is on a wooden table next to a window."
    )
else
    recipe=residual-lstm-synthetic
    run=runs/quickstart
    train_options=()
    evaluation_options=()
    [ ${#sentences[@]} -gt 0 ] || sentences=(
        "How can I learn Spanish quickly?"
        "Where can I buy a cheap keyboard in Stockholm?"
        "What is the salary of a nurse in Germany?"
    )
    echo "==> this model will know only the questions of a small built-in grammar"
fi

# Trained by this very recipe, or by an older one? A recipe may extend others, so all of them count.
state=$(cat hub_configs/*/* | cksum)
if [ "$(cat "$run.recipe" 2>/dev/null)" != "$state" ]; then
    rm -rf "$run"
    mkdir -p runs
    echo "$state" >"$run.recipe"
fi

if [ -f "$run/training_summary.json" ]; then
    echo "==> $run is trained already; remove it to train anew"
elif compgen -G "$run/checkpoints/last-*" >/dev/null; then
    show hf-paraphrase train --recipe "$recipe" ${train_options[@]+"${train_options[@]}"} --output-dir "$run" --resume
else
    show hf-paraphrase train --recipe "$recipe" ${train_options[@]+"${train_options[@]}"} --output-dir "$run" --overwrite
fi
if [ -f "$run/evaluation/results-test.json" ]; then
    echo "==> it is evaluated already: $run/evaluation/results-test.json"
else
    show hf-paraphrase evaluate "$run" ${evaluation_options[@]+"${evaluation_options[@]}"} --num-beams 5 --output-dir "$run/evaluation"
fi
paraphrase "$run"
