r"""Compare paraphrasers on one split in one table:

    accelerate launch scripts/compare.py FSET=runs/fset-quora-small LSTM=runs/residual-lstm-quora-small \
        --dataset quora --dataset-name clean --data-dir data/quora --output-dir runs/comparison

The same as `hf-paraphrase compare`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["compare", *sys.argv[1:]])
