#!/usr/bin/env bash
# Runs every test but the slow ones in .venv, which is made first if need be. Arguments go to pytest:
#   bash scripts/test.sh
#   bash scripts/test.sh -n 0 tests/metrics -k bleu
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment '[dev]'

# One thread for each of the two workers: the test models are too small to gain from more.
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
exec .venv/bin/python -m pytest -n 2 "$@"
