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
    `lines` that they come from. No text occurs in two splits. A high score does not prove that two texts
    mean the same: look at some before training on them.
    """

    file: Path = option("File of texts: .csv, .tsv, .jsonl, .parquet, or one text per line.", positional=True)
    column: str | None = option("The column of a table that holds the texts.  [default: text or source]", None)
    output: Path = option("Folder for train.jsonl, validation.jsonl and test.jsonl.")
    encoder: str = option(
        "What says how alike two texts are: a folder or Hub repository of sentence-transformers, or of any model that "
        "embeds, or jaccard, which compares their words.",
        "sentence-transformers/all-MiniLM-L6-v2",
    )
    min_score: float = option("Minimum similarity of a pair.", 0.8, least=-1, most=1)
    max_score: float = option("Maximum similarity, to leave out near copies.", 1.0, most=1)
    top_k: int = option("Nearest neighbours to consider per text.", 10, least=1)
    max_pairs: int = option("Maximum number of pairs; the best are kept.", 500_000, least=1)
    validation_size: int = option("Maximum number of validation pairs.", 1000, least=0)
    test_size: int = option("Maximum number of test pairs.", 1000, least=0)
    max_held_out: float = option("Maximum share of pairs in validation and test together.", 0.2, least=0, most=1)
    seed: int = option("Random seed of the split.", 42)
    batch_size: int = option("Batch size of the encoder.", 64, least=1)
    overwrite: bool = option("Replace existing files.", False)
    trust_remote_code: bool = option("Run the code in the encoder's folder, and read pickled weights.", False)

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
