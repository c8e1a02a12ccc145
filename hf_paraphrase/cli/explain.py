"""The commands `hf-paraphrase explain …`, which show what models see. What is heavy is imported inside them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import write_text
from ..common.installation import require
from .corpus import ANY_CORPUS, CorpusOptions, SplitOptions
from .options import ModelOptions, check_ability, read_lines
from .terminal import echo
from .verbs import verb

if TYPE_CHECKING:
    import numpy as np
    import torch
    from datasets import Dataset


@verb("explain edit")
class ExplainEdit(ModelOptions):
    """Show how a model edited a sentence, word by word.

    \b
    hf-paraphrase explain edit runs/fset-quora "How can I learn faster?" --output edit.html
    hf-paraphrase explain edit runs/fset-quora "How can I learn faster?" --output edit.html \\
        --retrieved "How can I run faster?" "What makes me run faster?"

    The page shows the retrieved pair, and the words of the pair that each output token attended to. For a model with
    levels, colours show which words the model assigned to phrases and which to the template.
    """

    text: str = option("The sentence to paraphrase.", positional=True)
    output: Path = option("The HTML file to write.")
    retrieved: tuple[str, str] | None = option("Pair to edit by, in place of the nearest.", None, metavar="P Q")
    neighbor: int = option("Which of the nearest pairs.", 1, least=1)

    def run(self) -> str:
        from ..analysis import edits
        from ..generation.loading import load_paraphraser
        from ..models.layers.portable import can
        from ..models.search.pipeline_checks import load_retriever

        try:
            check_ability(self.model, "has_levels", self.trust_remote_code)
        except InputError:  # then it has to be one of the others, and is told of them
            check_ability(self.model, "reads_pairs", self.trust_remote_code)
        editor, tokenizer = load_paraphraser(self.model, trust_remote_code=self.trust_remote_code)
        if can(editor.config, "has_levels"):
            if self.retrieved is not None:
                raise InputError(f"--retrieved: {self.model} edits by no retrieved pair")
            levelled = edits.explain_levels(editor.eval(), tokenizer, self.text)
            write_text(self.output, edits.format_levels(levelled))
            return levelled.paraphrase
        retrieved = self.retrieved
        if retrieved is None:
            nearest = load_retriever(editor, self.trust_remote_code).retrieve([self.text], self.neighbor)[0][-1]
            retrieved = (nearest.source, nearest.target)
        explanation = edits.explain_edit(editor.eval(), tokenizer, self.text, retrieved)
        write_text(self.output, edits.format_html(explanation))
        return explanation.paraphrase


@verb("explain match heatmap")
class DrawHeatMap(ModelOptions):
    """Draw a unit's activations over two sentences' words.

    \b
    hf-paraphrase explain match heatmap runs/coupled-lstm-snli --unit 17 --output unit-17.png \\
        --text "A person in a red shirt and black pants hunched over." --text-pair "A person wears a green shirt."
    """

    text: str = option("The first sentence.")
    text_pair: str = option("The second sentence.")
    output: Path = option("The PNG file to write.")
    unit: int | None = option("Unit to show; by default the one with the widest range.", None)

    def run(self) -> str:
        require("matplotlib", "plots", "heatmap")
        from ..analysis.matches import load_matcher, plot_unit, read_grids

        check_ability(self.model, "labels_pairs", self.trust_remote_code)
        matcher = load_matcher(self.model, self.trust_remote_code)
        (grid,) = read_grids(*matcher, [(self.text, self.text_pair)])
        return f"{self.output}: unit {plot_unit(grid, self.output, self.unit)}"


@verb("explain match pairs")
class ListExcitingPairs(SplitOptions, ModelOptions):
    """List the pairs of words that excite each unit most.

    \b
    hf-paraphrase explain match pairs runs/coupled-lstm-snli --dataset snli --data-dir data/snli --output pairs.md
    """

    dataset: str = option(ANY_CORPUS)
    top: int = option("Pairs of words for each unit.", 5, least=1)
    output: Path | None = option("Markdown file to write; by default it is printed.", None)

    def run(self) -> str | None:
        """Write the Markdown table, or return it."""
        from ..analysis.matches import format_exciting_pairs, load_matcher, most_exciting_pairs

        check_ability(self.model, "labels_pairs", self.trust_remote_code)
        matcher = load_matcher(self.model, self.trust_remote_code)
        content = self.find_corpus().load(self.split)
        if not {"sentence1", "sentence2"} <= set(content.column_names):
            columns = ", ".join(content.column_names)
            raise InputError(f"{self.dataset} has no sentence pairs; its columns are {columns}")
        texts = ((row["sentence1"], row["sentence2"]) for row in self.take(content) if row["sentence2"])
        table = format_exciting_pairs(most_exciting_pairs(*matcher, texts, top=self.top))
        if self.output is None:
            return table
        write_text(self.output, table)
        return None


@verb("explain documents")
class ExplainDocuments(ModelOptions):
    """Show what an autoencoder's document vectors encode.

    \b
    hf-paraphrase explain documents runs/hierarchical-autoencoder reviews.txt --steps 5 --nearest 3

    It decodes points on the line between the first two documents; each further document is followed by its nearest
    neighbours by cosine.
    """

    texts: Path = option("Text file, a document a line, whose sentences end at full stops.", positional=True)
    steps: int = option("Texts on the way, both ends among them.", 5, least=2)
    nearest: int = option("Neighbours of a document.", 3, least=1)
    shown: int = option("Documents whose neighbours are shown.", 3, least=1)

    def run(self) -> None:
        from ..analysis import document_vectors
        from ..datasets.sentences import split_by_rules
        from ..tokenization import join_sentences

        lines = read_lines(self.texts)
        if len(lines) < 2:
            raise InputError(f"{self.texts} has only one document: at least two are needed")
        autoencoder = document_vectors.load_autoencoder(self.model, self.trust_remote_code)
        joined = [join_sentences(split_by_rules(line)) for line in lines]
        between = document_vectors.interpolate_documents(*autoencoder, joined[0], joined[1], steps=self.steps)
        for step, text in enumerate(between):
            echo(f"{step / (self.steps - 1):4.2f}  {' '.join(text.split())}")
        vectors = document_vectors.embed_documents(*autoencoder, joined)
        for row, neighbours in enumerate(document_vectors.nearest_documents(vectors, self.nearest)[: self.shown]):
            echo(f"\n      {lines[row]}")
            for other, cosine in neighbours:
                echo(f"{cosine:4.2f}  {lines[other]}")


@verb("explain map")
class DrawMaps(CorpusOptions, ModelOptions):
    """Draw maps of a language model's words and sentences.

    \b
    hf-paraphrase explain map runs/sarah-lm --data-dir data/gutenberg --output-dir runs/sarah-lm/maps \\
        --near-word wizard --near-sentence "The rain was a little heavier and the wind had become noisy."

    It writes `words` and `sentences`, and the neighbourhoods asked for, each as a picture (.png) and as a page to look
    around in (.html), by t-SNE (Traynor 2018, figures 4.1 to 4.10). The words are the commonest of the corpus's train
    split, the sentences drawn from it.
    """

    dataset: str = option(ANY_CORPUS, "gutenberg")
    max_documents: int | None = option("Only the first documents.", None, least=1)
    num_words: int = option("Commonest words.", 20_000, least=4)
    num_sentences: int = option("Sentences, drawn at random.", 100_000, least=4)
    near_word: list[str] = option("Also map the words nearest to it; repeatable.", factory=list)
    near_sentence: list[str] = option("The same of sentences; repeatable.", factory=list)
    output_dir: Path = option("Where the maps go.")
    num_nearest: int = option("Points of a neighbourhood.", 50, least=4)
    perplexity: float = option("About how many neighbours of a point count.", 30.0)
    seed: int = option("Of the choice of sentences and of t-SNE.", 0)

    def run(self) -> None:
        require("matplotlib", "plots", "explain map")
        import numpy as np

        from ..analysis.maps import nearest
        from ..generation.loading import load_paraphraser
        from ..models.search.embedding_paraphraser import EmbeddingParaphraser

        check_ability(self.model, "embeds_sentences", self.trust_remote_code)
        model, tokenizer = load_paraphraser(self.model, trust_remote_code=self.trust_remote_code)
        embedder = cast(EmbeddingParaphraser, model)
        documents = self.find_corpus().load("train")
        words, sentences = _count(documents.select(range(min(self.max_documents or len(documents), len(documents)))))
        chosen = random.Random(self.seed).sample(sorted(sentences), min(self.num_sentences, len(sentences)))
        kinds: dict[str, tuple[list[str], list[str], Callable[..., torch.Tensor]]] = {
            "words": (
                [word for word, _ in words.most_common(self.num_words)],
                self.near_word,
                embedder.word_embeddings,
            ),
            "sentences": (chosen, self.near_sentence, embedder.sentence_embeddings),
        }
        self.output_dir.mkdir(parents=True, exist_ok=True)
        for name, (labels, centers, embed) in kinds.items():
            vectors = embed(labels, tokenizer).cpu().numpy()
            self._draw(name, labels, vectors, f"{len(labels):,} {name}")
            for number, center in enumerate(centers, 1):
                vector = embed([center], tokenizer).cpu().numpy()
                found = nearest(vectors, vector, self.num_nearest + 1)
                rows = [row for row in found if labels[row] != center][: self.num_nearest]
                near = [center, *(labels[row] for row in rows)]
                around = np.concatenate((vector, vectors[rows]))
                self._draw(f"{name}-near-{number}", near, around, f"near: {center}", 0)
                echo(f"{center}\n  " + "\n  ".join(near[1:11]))

    def _draw(self, name: str, labels: list[str], vectors: np.ndarray, title: str, center: int | None = None) -> None:
        """Project, and write the picture and the page."""
        from ..analysis.maps import draw_map, project, write_map_page

        file = self.output_dir / name
        points = project(vectors, self.perplexity, self.seed)
        draw_map(points, labels, file.with_suffix(".png"), title, center)
        write_map_page(points, labels, file.with_suffix(".html"), title)
        echo(f"wrote {file}.png and {file}.html")


def _count(documents: Dataset) -> tuple[Counter[str], set[str]]:
    """The words of documents and how often they come, and the sentences."""
    from ..datasets.running_text import fit_sentences

    if "sentences" not in documents.column_names:
        raise InputError(f"the corpus has no column `sentences`; its columns are {', '.join(documents.column_names)}")
    words: Counter[str] = Counter()
    sentences: set[str] = set()
    for document in documents:
        for sentence in fit_sentences(document["sentences"]):
            words.update(sentence)
            sentences.add(" ".join(sentence))
    return words, sentences
