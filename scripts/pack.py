"""Packs a checkpoint as the model that comes with the package; see `hf_paraphrase.released`.

python scripts/pack.py runs/open/checkpoints/best-00100000 hf_paraphrase/released/paraphraser_en_small \\
    model_cards/paraphraser-en-small/README.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.released.packing import pack

if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        size = pack(*map(Path, sys.argv[1:]))
    except InputError as error:
        sys.exit(f"error: {error}")
    print(f"{sys.argv[2]}: {size:,} bytes of weights")
