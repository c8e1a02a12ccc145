#!/usr/bin/env bash
# From nothing to paraphrases: makes .venv if need be, trains a small residual LSTM on questions that a built-in
# grammar writes, evaluates it, and paraphrases with it. A finished training is kept for the next time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment
export PATH="$PWD/.venv/bin:$PATH"

recipe=residual-lstm-synthetic
run=runs/quickstart

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
    show hf-paraphrase train --recipe "$recipe" --output-dir "$run" --resume
else
    show hf-paraphrase train --recipe "$recipe" --output-dir "$run" --overwrite
fi
if [ -f "$run/evaluation/results-test.json" ]; then
    echo "==> it is evaluated already: $run/evaluation/results-test.json"
else
    show hf-paraphrase evaluate "$run" --num-beams 5 --output-dir "$run/evaluation"
fi
show hf-paraphrase paraphrase "$run" --num-return-sequences 3 \
    "How can I learn Spanish quickly?" \
    "Where can I buy a cheap keyboard in Stockholm?" \
    "What is the salary of a nurse in Germany?"

cat <<EOF
The same in Python:

    import hf_paraphrase
    from transformers import pipeline

    paraphraser = pipeline("text2text-generation", model="$run")
    paraphraser("How can I learn Spanish quickly?", num_return_sequences=3)
EOF
