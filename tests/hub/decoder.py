"""Decodes with transformers alone, by the code of a repository, as somebody does who has never heard of this package.

Run as a script it makes sure that the package cannot be imported, and prints what `decode` gives for every order.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

TEXTS = ["the cat sat on the mat", "a dog", "how do i learn faster ?"]


def decode(folder: str, custom_generate: Any, trust_remote_code: bool = True, **options: Any) -> list[list[int]]:
    """The tokens that a model generates, by a function or by the code of a repository."""
    trust = {"trust_remote_code": trust_remote_code}
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, **trust)
    inputs = AutoTokenizer.from_pretrained(folder, **trust)(TEXTS, padding=True, return_tensors="pt")
    if isinstance(custom_generate, str):
        options |= trust | {"revision": "main"}
    return model.generate(**inputs, custom_generate=custom_generate, **options).tolist()


def refusal(folder: str, custom_generate: str) -> str:
    """What transformers says to somebody who does not trust the code."""
    try:
        decode(folder, custom_generate, trust_remote_code=False)
    except ValueError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.modules["hf_paraphrase"] = None
    orders = json.loads(sys.argv[1])
    print(json.dumps([[decode(*order, **options), refusal(*order)] for order, options in orders]))
