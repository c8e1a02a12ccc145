r"""Train a model from a recipe, on one process or many:

    accelerate launch scripts/train.py --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco

    torchrun --standalone --nproc-per-node 2 scripts/train.py --recipe residual-lstm-synthetic \
        --output-dir runs/two-processes --learning_rate 0.002

The latter is for a machine without a GPU, where `accelerate launch` starts several processes by MPI alone.

A language model is trained stage by stage: first the next sentence is learnt; then, if wanted, the style of one
author; or, to paraphrase, the sentence itself, by the sentence decoder alone:

    accelerate launch scripts/train.py --recipe sarah-lm-gutenberg-small --data-dir data/gutenberg \
        --output-dir runs/sarah-lm
    accelerate launch scripts/train.py --recipe sarah-lm-paraphrase-small --data-dir data/gutenberg \
        --pretrained runs/sarah-lm --output-dir runs/sarah-paraphrase

A trained paraphraser is fine-tuned by a reward (Li et al. 2018), ROUGE-2 with the targets or what a matcher thinks:

    accelerate launch scripts/train.py --recipe rbm-quora-small --data-dir data/quora --objective rbm --reward rouge \
        --pretrained runs/residual-lstm-quora-small --output-dir runs/rbm-by-rouge

The same as `hf-paraphrase train`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
