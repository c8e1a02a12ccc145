r"""Evaluate a paraphraser on a test split, the paper's figures beside it:

    accelerate launch scripts/evaluate.py runs/mscoco --data-dir data/mscoco --num-beams 5 --num-beams 10 \
        --output-dir runs/mscoco/evaluation

The same as `hf-paraphrase evaluate`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
