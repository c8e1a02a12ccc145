"""Research models of paraphrasing as first-class citizens of the Hugging Face ecosystem.

Importing this package registers its models with transformers' Auto classes and brings the `text2text-generation`
pipeline back, as soon as transformers is imported too. Its public names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common.lazy import lazy_names
from .registration import ARCHITECTURES, register_with_transformers

if TYPE_CHECKING:  # for editors and type checkers, which do not run what is below
    from .augmentation import augment as augment
    from .common.errors import InputError as InputError
    from .datasets import dataset_card as dataset_card
    from .datasets import list_datasets as list_datasets
    from .datasets import load_dataset as load_dataset
    from .distillation import distill as distill
    from .generation.paraphraser import Paraphrase as Paraphrase
    from .generation.paraphraser import Paraphraser as Paraphraser
    from .metrics import list_metrics as list_metrics
    from .metrics import load_metric as load_metric
    from .models.search.pipeline_text2text import Text2TextGenerationPipeline as Text2TextGenerationPipeline
    from .registration import register as register
    from .retrieval import ParaphraseRetriever as ParaphraseRetriever
    from .tokenization import train_tokenizer as train_tokenizer
    from .tokenization import train_word_tokenizer as train_word_tokenizer

__version__ = "0.1.0"

# The module of every public name; names of architectures are derived from their rows.
MODULES = {
    "InputError": "common.errors",
    "Paraphrase": "generation.paraphraser",
    "ParaphraseRetriever": "retrieval",
    "Paraphraser": "generation.paraphraser",
    "Text2TextGenerationPipeline": "models.search.pipeline_text2text",
    "augment": "augmentation",
    "dataset_card": "datasets",
    "distill": "distillation",
    "list_datasets": "datasets",
    "list_metrics": "metrics",
    "load_dataset": "datasets",
    "load_metric": "metrics",
    "register": "registration",
    "train_tokenizer": "tokenization",
    "train_word_tokenizer": "tokenization",
} | {name: module for row in ARCHITECTURES for name, module in row.modules.items()}

__all__ = sorted(MODULES)


__getattr__ = lazy_names(__name__, MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_with_transformers()
