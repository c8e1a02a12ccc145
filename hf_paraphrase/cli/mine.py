"""The command `hf-paraphrase mine`. What is heavy is imported inside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .options import TrustRemoteCode
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command()
def mine(
    file: Annotated[Path, typer.Argument(help="Texts: a .csv, .tsv, .jsonl or .parquet file, or a text a line.")],
    output: Annotated[Path, typer.Option(help="Folder for train.jsonl, validation.jsonl and test.jsonl.")],
    column: Annotated[
        str | None, typer.Option(help="The column of a table that holds the texts [default: text or source]")
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            help="What says how alike two texts are: a folder or Hub repository of sentence-transformers, or of any "
            "model that embeds, or jaccard, which compares their words."
        ),
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    min_score: Annotated[float, typer.Option(min=-1, max=1, help="Less like pairs are left out.")] = 0.8,
    max_score: Annotated[float, typer.Option(max=1, help="More like ones are too, such as near copies.")] = 1.0,
    top_k: Annotated[int, typer.Option(min=1, help="The most alike texts to look at for each.")] = 10,
    max_pairs: Annotated[int, typer.Option(min=1, help="The best so many pairs.")] = 500_000,
    validation_size: Annotated[int, typer.Option(min=0, help="Most pairs to validate on.")] = 1000,
    test_size: Annotated[int, typer.Option(min=0, help="Most pairs to test on.")] = 1000,
    max_held_out: Annotated[float, typer.Option(min=0, max=1, help="The share that both have at most.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Decides which pairs are in which split.")] = 42,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that the encoder reads at once.")] = 64,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Mine paraphrase pairs from the texts of a file, and divide them for training, as the corpus `pairs` has them.

    \b
    hf-paraphrase mine questions.txt --output mined --min-score 0.85
    hf-paraphrase mine questions.txt --output mined --encoder jaccard --min-score 0.5 --max-score 0.9
    hf-paraphrase train --recipe t5-small-quora --dataset pairs --data-files train=mined/train.jsonl \\
        --data-files validation=mined/validation.jsonl --output-dir runs/mined

    Each row has `source`, `target`, `score` and the `lines` that they come from. No text of one split stands in
    another. A high score does not prove that two texts mean the same: look at some before training on them.
    """
    from ..datasets.sampling import divide_linked, held_out_sizes
    from ..files import write_text
    from ..retrieval.mining import mine_paraphrases
    from .text_tables import read_numbered_texts

    paths = {split: output / f"{split}.jsonl" for split in ("train", "validation", "test")}
    there = [str(path) for path in paths.values() if path.exists()]
    if there and not overwrite:
        raise FileExistsError(f"--output: {', '.join(there)} would be replaced; --overwrite does so")
    # Of equal texts the first speaks for all: memory follows the distinct ones.
    lines: dict[str, int] = {}
    for number, text in read_numbered_texts(file, column):
        lines.setdefault(" ".join(text.split()), number)
    lines.pop("", None)
    texts, numbers = list(lines), list(lines.values())
    mined = mine_paraphrases(
        texts,
        encoder,
        min_score=min_score,
        max_score=max_score,
        top_k=top_k,
        max_pairs=max_pairs,
        batch_size=batch_size,
        trust_remote_code=trust_remote_code,
    )
    if not mined:
        raise InputError(f"{file}: no two of its {len(texts):,} texts are from {min_score} to {max_score} alike")
    pairs = [(texts[pair.first], texts[pair.second]) for pair in mined]
    sizes = held_out_sizes(len(pairs), validation_size, test_size, max_held_out)
    output.mkdir(parents=True, exist_ok=True)
    for split, places in divide_linked(pairs, *sizes, seed).items():
        rows = (
            {
                "source": pairs[place][0],
                "target": pairs[place][1],
                "score": round(mined[place].score, 4),
                "lines": [numbers[mined[place].first], numbers[mined[place].second]],
            }
            for place in places
        )
        write_text(paths[split], "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        echo(f"{paths[split]}: {len(places):,} pairs")
