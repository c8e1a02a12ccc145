r"""Train a model that labels pairs of sentences, or ranks candidates, on one process or many:

    accelerate launch scripts/train_pair_matcher.py --recipe hub_configs/coupled-lstm-tight-stacked-snli \
        --data-dir data/snli --embeddings glove.100d.txt --output-dir runs/snli

    python scripts/train_pair_matcher.py --recipe hub_configs/pair-lstm-snli-small --encoder parallel \
        --data-dir data/snli --output-dir runs/parallel

    python scripts/train_pair_matcher.py --recipe hub_configs/coupled-lstm-twitter-small --data-dir data/twitter_url \
        --output-dir runs/search --search learning_rate=0.05,0.0005,0.0001 --search weight_decay=0,5e-5,1e-5,1e-6

The same as `hf-paraphrase train`; `--help` lists every field of a recipe that can be overridden.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
