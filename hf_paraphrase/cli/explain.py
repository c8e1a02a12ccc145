"""The commands `hf-paraphrase explain …`, which show what models see. What is heavy is imported inside them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .corpus import DataDir, DataFiles, DatasetKwargs, DatasetName, DatasetOption, MaxSamples, read_corpus, take_rows
from .options import Model, TrustRemoteCode, check_ability, check_matplotlib, read_lines
from .terminal import echo

if TYPE_CHECKING:
    import numpy as np
    from datasets import Dataset

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="What models see: pictures and pages of edits, matches and vectors.")
match = typer.Typer(no_args_is_help=True, help="What excites the units of a coupled LSTM.")
app.add_typer(match, name="match")

Matcher = Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository of a coupled LSTM.")]


@app.command()
def edit(
    model: Model,
    text: Annotated[str, typer.Argument(help="The sentence to paraphrase.")],
    output: Annotated[Path, typer.Option(help="The HTML file to write.")],
    retrieved: Annotated[
        tuple[str, str] | None, typer.Option(metavar="P Q", help="Pair to edit by, in place of the nearest.")
    ] = None,
    neighbor: Annotated[int, typer.Option(min=1, help="Which of the nearest pairs.")] = 1,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Show how a model edited a sentence: the retrieved pair, and what of it each token of the output attended to.

    Of a model that knows levels: which words it took for phrases and which for the template, in colours.

    \b
    hf-paraphrase explain edit runs/fset-quora "How can I learn faster?" --output edit.html
    hf-paraphrase explain edit runs/fset-quora "How can I learn faster?" --output edit.html \\
        --retrieved "How can I run faster?" "What makes me run faster?"
    """
    from ..analysis import edits, levels
    from ..files import write_text
    from ..generation.engine import load_paraphraser
    from ..models.search.retrieved_pairs import load_retriever
    from ..registration import architecture_of

    try:
        check_ability(model, "has_levels", trust_remote_code=trust_remote_code)
    except InputError:  # then it has to be one of the others, and is told of them
        check_ability(model, "reads_pairs", trust_remote_code=trust_remote_code)
    editor, tokenizer = load_paraphraser(model, trust_remote_code=trust_remote_code)
    if architecture_of(editor.config).has_levels:
        if retrieved is not None:
            raise InputError(f"--retrieved: {model} edits by no retrieved pair")
        levelled = levels.explain_levels(editor.eval(), tokenizer, text)
        write_text(output, levels.format_levels(levelled))
        echo(levelled.paraphrase)
        return
    if retrieved is None:
        nearest = load_retriever(editor, trust_remote_code).retrieve([text], neighbor)[0][-1]
        retrieved = (nearest.source, nearest.target)
    explanation = edits.explain_edit(editor.eval(), tokenizer, text, retrieved)
    write_text(output, edits.format_html(explanation))
    echo(explanation.paraphrase)


@match.command()
def heatmap(
    model: Matcher,
    text: Annotated[str, typer.Option(help="The first sentence.")],
    text_pair: Annotated[str, typer.Option(help="The second sentence.")],
    output: Annotated[Path, typer.Option(help="The PNG file to write.")],
    unit: Annotated[int | None, typer.Option(help="Unit to show; by default the one with the widest range.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Draw a unit's activations over all pairs of words of two sentences.

    \b
    hf-paraphrase explain match heatmap runs/coupled-lstm-snli --unit 17 --output unit-17.png \\
        --text "A person in a red shirt and black pants hunched over." --text-pair "A person wears a green shirt."
    """
    check_matplotlib("heatmap")
    from ..analysis.matches import load_matcher, plot_unit, read_grids

    check_ability(model, "labels_pairs", of_any_architecture=True, trust_remote_code=trust_remote_code)
    (grid,) = read_grids(*load_matcher(model, trust_remote_code), [(text, text_pair)])
    echo(f"{output}: unit {plot_unit(grid, output, unit)}")


@match.command()
def pairs(
    model: Matcher,
    dataset: DatasetOption,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: Annotated[str, typer.Option(help="Split to look through.")] = "test",
    max_samples: MaxSamples = None,
    top: Annotated[int, typer.Option(min=1, help="Pairs of words for each unit.")] = 5,
    output: Annotated[Path | None, typer.Option(help="Markdown file to write; by default it is printed.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """List the pairs of words that excite each unit most, as a Markdown table.

    \b
    hf-paraphrase explain match pairs runs/coupled-lstm-snli --dataset snli --data-dir data/snli --output pairs.md
    """
    from ..analysis.matches import format_exciting_pairs, load_matcher, most_exciting_pairs
    from ..files import write_text

    check_ability(model, "labels_pairs", of_any_architecture=True, trust_remote_code=trust_remote_code)
    matcher = load_matcher(model, trust_remote_code)
    content = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs).load(split)
    if not {"sentence1", "sentence2"} <= set(content.column_names):
        raise InputError(f"{dataset} has no sentence pairs; its columns are {', '.join(content.column_names)}")
    content = take_rows(content, max_samples)
    texts = ((row["sentence1"], row["sentence2"]) for row in content if row["sentence2"])
    table = format_exciting_pairs(most_exciting_pairs(*matcher, texts, top=top))
    if output is None:
        echo(table)
    else:
        write_text(output, table)


@app.command()
def documents(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository of a hierarchical autoencoder.")],
    texts: Annotated[Path, typer.Argument(help="Text file, a document a line, whose sentences end at full stops.")],
    steps: Annotated[int, typer.Option(min=2, help="Texts on the way, both ends among them.")] = 5,
    nearest: Annotated[int, typer.Option(min=1, help="Neighbours of a document.")] = 3,
    shown: Annotated[int, typer.Option(min=1, help="Documents whose neighbours are shown.")] = 3,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Show what an autoencoder's vectors hold: texts on the way from one document to another, and neighbours.

    \b
    hf-paraphrase explain documents runs/hierarchical-autoencoder reviews.txt --steps 5 --nearest 3

    The first two documents are the ends of the way; each of the others that are shown is followed by those nearest to
    it by the cosine of their vectors.
    """
    from ..analysis.document_vectors import (
        embed_documents,
        interpolate_documents,
        load_autoencoder,
        nearest_documents,
    )
    from ..datasets.sentences import split_by_rules
    from ..tokenization import join_sentences

    lines = read_lines(texts)
    if len(lines) < 2:
        raise InputError(f"{texts} has one document: there is none to go to or to be near")
    autoencoder, tokenizer = load_autoencoder(model, trust_remote_code)
    joined = [join_sentences(split_by_rules(line)) for line in lines]
    for step, text in enumerate(interpolate_documents(autoencoder, tokenizer, *joined[:2], steps=steps)):
        echo(f"{step / (steps - 1):4.2f}  {' '.join(text.split())}")
    vectors = embed_documents(autoencoder, tokenizer, joined)
    for row, neighbours in enumerate(nearest_documents(vectors, nearest)[:shown]):
        echo(f"\n      {lines[row]}")
        for other, cosine in neighbours:
            echo(f"{cosine:4.2f}  {lines[other]}")


@app.command("map")
def map_embeddings(
    model: Model,
    output_dir: Annotated[Path, typer.Option(help="Where the maps go.")],
    dataset: DatasetOption = "gutenberg",
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    max_documents: Annotated[int | None, typer.Option(min=1, help="Only the first documents.")] = None,
    num_words: Annotated[int, typer.Option(min=4, help="Commonest words.")] = 20_000,
    num_sentences: Annotated[int, typer.Option(min=4, help="Sentences, drawn at random.")] = 100_000,
    near_word: Annotated[list[str] | None, typer.Option(help="Also map the words nearest to it; repeatable.")] = None,
    near_sentence: Annotated[list[str] | None, typer.Option(help="The same of sentences; repeatable.")] = None,
    num_nearest: Annotated[int, typer.Option(min=4, help="Points of such a neighbourhood.")] = 50,
    perplexity: Annotated[float, typer.Option(help="About how many neighbours of a point count.")] = 30.0,
    seed: Annotated[int, typer.Option(help="Of the choice of sentences and of t-SNE.")] = 0,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Draw t-SNE maps of a hierarchical language model's words and sentences (Traynor 2018, figures 4.1 to 4.10).

    \b
    hf-paraphrase explain map runs/sarah-lm --data-dir data/gutenberg --output-dir runs/sarah-lm/maps \\
        --near-word wizard --near-sentence "The rain was a little heavier and the wind had become noisy."

    It writes `words` and `sentences`, and the neighbourhoods asked for, each as a picture (.png) and as a page to look
    around in (.html). The words are the commonest of the corpus's train split, the sentences drawn from it.
    """
    check_matplotlib("explain map")
    import numpy as np

    from ..analysis.maps import nearest
    from ..generation.engine import load_paraphraser

    check_ability(model, "embeds_sentences", trust_remote_code=trust_remote_code)
    embedder, tokenizer = load_paraphraser(model, trust_remote_code=trust_remote_code)
    corpus = read_corpus(dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    words, sentences = _count(take_rows(corpus.load("train"), max_documents))
    chosen = random.Random(seed).sample(sorted(sentences), min(num_sentences, len(sentences)))
    kinds = {
        "words": ([word for word, _ in words.most_common(num_words)], near_word or [], embedder.word_embeddings),
        "sentences": (chosen, near_sentence or [], embedder.sentence_embeddings),
    }
    output_dir.mkdir(parents=True, exist_ok=True)
    for name, (labels, centers, embed) in kinds.items():
        vectors = embed(labels, tokenizer).cpu().numpy()
        _draw(output_dir / name, labels, vectors, f"{len(labels):,} {name}", perplexity, seed)
        for number, center in enumerate(centers, 1):
            vector = embed([center], tokenizer).cpu().numpy()
            rows = [row for row in nearest(vectors, vector, num_nearest + 1) if labels[row] != center][:num_nearest]
            near = [center, *(labels[row] for row in rows)]
            file = output_dir / f"{name}-near-{number}"
            _draw(file, near, np.concatenate((vector, vectors[rows])), f"near: {center}", perplexity, seed, 0)
            echo(f"{center}\n  " + "\n  ".join(near[1:11]))


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


def _draw(
    file: Path,
    labels: list[str],
    vectors: np.ndarray,
    title: str,
    perplexity: float,
    seed: int,
    center: int | None = None,
) -> None:
    """Project, and write the picture and the page."""
    from ..analysis.maps import draw_map, project, write_map_page

    points = project(vectors, perplexity, seed)
    draw_map(points, labels, file.with_suffix(".png"), title, center)
    write_map_page(points, labels, file.with_suffix(".html"), title)
    echo(f"wrote {file}.png and {file}.html")
