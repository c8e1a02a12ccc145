"""Paraphrases of a dataset that fits one machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import datasets
from datasets.fingerprint import generate_random_fingerprint

from ..errors import InputError
from ..generation.paraphraser import Paraphraser
from ..released import RELEASED
from .outcomes import ADDED, RowParaphraser, check_columns, make_rows


def augment(
    dataset: datasets.Dataset,
    model: str | os.PathLike | Paraphraser = RELEASED,
    column: str = "text",
    n: int = 3,
    *,
    keep_columns: Sequence[str] | None = None,
    batch_size: int = 16,
    backend: str | None = None,
    prompt: str | os.PathLike | None = None,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> datasets.Dataset:
    """Paraphrase a column of a dataset: a row for each paraphrase, beside the columns of its source.

    ```python
    augment(dataset, column="question", n=3, keep_columns=["label"], min_adequacy=0.5)
    ```

    For corpora too large for one machine or one run, the command `hf-paraphrase augment` gives the same rows.

    Args:
        dataset: Rows with a text.
        model: A checkpoint folder, a Hub repository, or a paraphraser that is loaded already; by default the model
            that comes with the package.
        column: Where the text is.
        n: Paraphrases of each row, at most.
        keep_columns: The other columns to keep; None for all.
        batch_size: Batch size, in rows; rows of similar length share a batch.
        backend: Runs the model instead of `generate()`: "ctranslate2", or the address of a server.
        prompt: YAML file with the prompt of a language model.
        dtype: Precision of a model that is loaded here, as in `Paraphraser.from_pretrained`.
        trust_remote_code: Run the code in the named checkpoints.
        options: Further arguments of a `Paraphraser`'s call, such as `min_adequacy`, `decoding` and `seed`.

    Returns:
        The columns that are kept, and `source_id` (the number of the row, from 0), `paraphrase`, `rank` (1 for the
        best), `score`, `adequacy`, `fluency`, `novelty` and `error`. A row that failed, or whose candidates were all
        rejected, has no paraphrase; `error` gives the reason.

    Raises:
        InputError: A column or an argument that cannot be, or a model that cannot be loaded.
    """
    if not isinstance(dataset, datasets.Dataset):
        raise InputError(f"`dataset` must be a datasets.Dataset, such as one split, not a {type(dataset).__name__}")
    kept = check_columns(column, keep_columns, dataset.column_names, "`dataset`")
    if isinstance(model, Paraphraser):
        paraphraser = model
    else:
        paraphraser = Paraphraser.from_pretrained(
            model, trust_remote_code=trust_remote_code, backend=backend, prompt=prompt, dtype=dtype
        )
    ask = RowParaphraser(paraphraser, n, batch_size, **options)

    def paraphrase(rows: dict[str, list], places: list[int]) -> dict[str, list]:
        for place, text in zip(places, rows[column], strict=True):
            if text is not None and not isinstance(text, str):
                raise InputError(f"`dataset`, row {place}: `{column}` is not text: {text!r:.100}")
        made = [
            row
            for at, (place, outcome) in enumerate(zip(places, ask(rows[column]), strict=True))
            for row in make_rows({name: rows[name][at] for name in kept}, str(place), outcome)
        ]
        return {name: [row[name] for row in made] for name in features}

    features = datasets.Features({name: dataset.features[name] for name in kept} | ADDED)
    return dataset.with_format(None).map(
        paraphrase,
        with_indices=True,
        batched=True,
        batch_size=ask.rows_at_once,
        remove_columns=dataset.column_names,
        features=features,
        desc="augmenting",
        # A model under the same name may have been trained on since.
        load_from_cache_file=False,
        new_fingerprint=generate_random_fingerprint(),
    )
