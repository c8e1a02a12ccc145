"""The command `hf-paraphrase mine`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path

from ..common.fields import option
from ..errors import InputError
from .terminal import echo
from .text_tables import read_numbered_texts
from .verbs import Verb, verb

__all__ = ["Mine"]


@verb("mine")
class Mine(Verb):
    """Find paraphrase pairs among the sentences of a file.

    \b
    hf-paraphrase mine questions.txt --output mined --min-score 0.85
    hf-paraphrase mine questions.txt --output mined --encoder jaccard --min-score 0.5 --max-score 0.9
    hf-paraphrase train --recipe t5-small-quora --dataset pairs --data-files train=mined/train.jsonl \\
        --data-files validation=mined/validation.jsonl --output-dir runs/mined

    They are divided for training, as the corpus `pairs` has them. Each row has `source`, `target`, `score` and the
    `lines` that they come from. No text of one split stands in another. A high score does not prove that two texts
    mean the same: look at some before training on them.
    """

    file: Path = option("Texts: a .csv, .tsv, .jsonl or .parquet file, or a text a line.", positional=True)
    column: str | None = option("The column of a table that holds the texts.  [default: text or source]", None)
    output: Path = option("Folder for train.jsonl, validation.jsonl and test.jsonl.")
    encoder: str = option(
        "What says how alike two texts are: a folder or Hub repository of sentence-transformers, or of any model that "
        "embeds, or jaccard, which compares their words.",
        "sentence-transformers/all-MiniLM-L6-v2",
    )
    min_score: float = option("Less like pairs are left out.", 0.8, least=-1, most=1)
    max_score: float = option("More like ones are too, such as near copies.", 1.0, most=1)
    top_k: int = option("The most alike texts to look at for each.", 10, least=1)
    max_pairs: int = option("The best so many pairs.", 500_000, least=1)
    validation_size: int = option("Most pairs to validate on.", 1000, least=0)
    test_size: int = option("Most pairs to test on.", 1000, least=0)
    max_held_out: float = option("The share that both have at most.", 0.2, least=0, most=1)
    seed: int = option("Decides which pairs are in which split.", 42)
    batch_size: int = option("Texts that the encoder reads at once.", 64, least=1)
    overwrite: bool = option("Replace files that are there.", False)
    trust_remote_code: bool = option("Let code beside the encoder run, and read weights in a pickle.", False)

    def run(self) -> None:
        """Mine, and write the files."""
        from ..common.files import write_lines
        from ..datasets.sampling import divide_linked, held_out_sizes
        from ..retrieval.mining import mine_paraphrases

        paths = {split: self.output / f"{split}.jsonl" for split in ("train", "validation", "test")}
        there = [str(path) for path in paths.values() if path.exists()]
        if there and not self.overwrite:
            raise FileExistsError(f"--output: {', '.join(there)} already exists; pass --overwrite to replace it")
        # Of equal texts the first speaks for all: memory follows the distinct ones.
        lines: dict[str, int] = {}
        for number, text in read_numbered_texts(self.file, self.column):
            lines.setdefault(" ".join(text.split()), number)
        lines.pop("", None)
        texts, numbers = list(lines), list(lines.values())
        encoding = {"batch_size": self.batch_size, "trust_remote_code": self.trust_remote_code}
        mined = self.call(mine_paraphrases, texts=texts, **encoding)
        if not mined:
            raise InputError(
                f"{self.file}: no two of its {len(texts):,} texts are from {self.min_score} to {self.max_score} alike"
            )
        pairs = [(texts[pair.first], texts[pair.second]) for pair in mined]
        sizes = held_out_sizes(len(pairs), self.validation_size, self.test_size, self.max_held_out)
        self.output.mkdir(parents=True, exist_ok=True)
        for split, places in divide_linked(pairs, *sizes, self.seed).items():
            rows = (
                {
                    "source": pairs[place][0],
                    "target": pairs[place][1],
                    "score": round(mined[place].score, 4),
                    "lines": [numbers[mined[place].first], numbers[mined[place].second]],
                }
                for place in places
            )
            write_lines(paths[split], rows)
            echo(f"{paths[split]}: {len(places):,} pairs")
