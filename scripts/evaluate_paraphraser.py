r"""Evaluate a paraphrase model on a test split, the paper's figures beside it:

    python scripts/evaluate_paraphraser.py runs/residual-lstm-mscoco --data-dir data/mscoco \
        --num-beams 5 --num-beams 10 --output-dir runs/residual-lstm-mscoco/evaluation

    python scripts/evaluate_paraphraser.py facebook/bart-base --dataset mscoco --data-dir data/mscoco

The same as `hf-paraphrase evaluate`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
