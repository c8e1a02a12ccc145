r"""Train a paraphrase model, on one process or many:

    accelerate launch scripts/train_paraphraser.py --recipe hub_configs/residual-lstm-mscoco \
        --data-dir data/mscoco --output-dir runs/residual-lstm-mscoco

    accelerate launch --cpu --num_processes 2 scripts/train_paraphraser.py \
        --recipe hub_configs/residual-lstm-synthetic --output-dir runs/two-processes --learning_rate 0.002

or fine-tune a trained one by a reward (Li et al. 2018): ROUGE-2 with the targets, then what a matcher thinks of the
outputs:

    python scripts/train_paraphraser.py --recipe hub_configs/rbm-quora-small --data-dir data/quora \
        --objective rbm --reward rouge --pretrained runs/residual-lstm-quora-small --output-dir runs/rbm-by-rouge

    python scripts/train_paraphraser.py --recipe hub_configs/rbm-quora-small --data-dir data/quora \
        --objective rbm --reward runs/pair-lstm-quora-small --pretrained runs/rbm-by-rouge --output-dir runs/rbm

The same as `hf-paraphrase train`; `--help` lists every field of a recipe that can be overridden.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
