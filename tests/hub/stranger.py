"""Uses checkpoints by transformers alone, as somebody does who has never heard of this package.

Run as a script it makes sure that the package cannot be imported, and prints what `use` gives for every checkpoint.
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import transformers
from transformers import AutoTokenizer, PreTrainedModel, pipeline

TEXTS = ["the cat sat on the mat", "a dog", "how do i learn faster ?"]
PAIRS = ["a cat sat", "the dog sat on a mat", "the cat"]
DECODING = {"num_beams": 3, "max_new_tokens": 6}


def use(where: str, auto_classes: list[str], trust_remote_code: bool | None = None) -> dict[str, Any]:
    """Load a checkpoint in every way, and run it.

    Args:
        where: A folder or repository.
        auto_classes: Those that load it: that of its head, and `AutoModel` where there is a body.
        trust_remote_code: Handed to transformers.
    """
    auto_class, *bodies = auto_classes
    trust = {"trust_remote_code": trust_remote_code}
    tokenizer = AutoTokenizer.from_pretrained(where, **trust)
    model = getattr(transformers, auto_class).from_pretrained(where, **trust)
    found = {"class": type(model).__name__, "ids": tokenizer(TEXTS)["input_ids"]}
    for name in bodies:
        body = getattr(transformers, name).from_pretrained(where, **trust)
        found["body"] = type(body).__name__
        found["weights"] = [float(weight.double().sum()) for weight in body.state_dict().values()]
    if auto_class == "AutoModelForSequenceClassification":
        logits = model(**tokenizer(TEXTS, PAIRS, padding=True, return_tensors="pt")).logits
        texts = [{"text": text, "text_pair": pair} for text, pair in zip(TEXTS, PAIRS, strict=True)]
        return found | {
            "logits": logits.tolist(),
            "pipeline": pipeline("text-classification", model=where, device="cpu", **trust)(texts),
        }
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    found["tokens"] = model.generate(**inputs, **retrieved(model, tokenizer), **DECODING).tolist()
    if not retrieved(model, tokenizer):
        pipe = pipeline("text2text-generation", model=where, device="cpu", **trust)
        found["pipeline"] = pipe(TEXTS, batch_size=2, **DECODING)
    return found


def retrieved(model: PreTrainedModel, tokenizer: Any) -> dict[str, Any]:
    """The further inputs of a model that edits retrieved pairs."""
    if "retrieved_source_ids" not in inspect.signature(model.forward).parameters:
        return {}
    sources, targets = (tokenizer(texts, padding=True, return_tensors="pt") for texts in (PAIRS, TEXTS))
    return {
        "retrieved_source_ids": sources["input_ids"],
        "retrieved_source_mask": sources["attention_mask"],
        "retrieved_target_ids": targets["input_ids"],
        "retrieved_target_mask": targets["attention_mask"],
    }


def refusal(where: str, auto_classes: list[str]) -> str:
    """What transformers says to somebody who does not trust the code."""
    try:
        use(where, auto_classes, trust_remote_code=False)
    except ValueError as error:
        return str(error)
    return ""


class Absent:
    """Finds that there is no such package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "hf_paraphrase":
            raise ModuleNotFoundError(name)


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent)
    checkpoints = json.loads(sys.argv[1])
    print(json.dumps([[refusal(*one), use(*one, trust_remote_code=True)] for one in checkpoints]))
