r"""Train an autoencoder of documents, on one process or many:

    accelerate launch scripts/train_autoencoder.py --recipe hub_configs/hierarchical-autoencoder-hotel-reviews \
        --data-dir data/hotel_reviews --output-dir runs/hierarchical-autoencoder

The same as `hf-paraphrase train`: the recipe's `task: autoencode` says what is learnt. `--help` lists every field of a
recipe that can be overridden.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
