r"""Evaluate a model of sentence pairs on a test split, published figures beside it:

    python scripts/evaluate_pair_matcher.py runs/twitter --data-dir data/twitter_url \
        --output-dir runs/twitter/evaluation

The same as `hf-paraphrase evaluate-matcher`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["evaluate-matcher", *sys.argv[1:]])
