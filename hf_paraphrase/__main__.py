"""`python -m hf_paraphrase` is `hf-paraphrase`."""

from __future__ import annotations

from .cli.app import main

if __name__ == "__main__":
    main()
