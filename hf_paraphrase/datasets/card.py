from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import datasets
from huggingface_hub import DatasetCard, DatasetCardData, HfApi

from .addresses import RELEASES
from .builder import CorpusBuilder
from .loading import find_builder, is_published, make_builder

# What cards say of each corpus: apart from its code, of which a change makes all rows anew.
CARDS = Path(__file__).with_name("cards")
HEADING = re.compile(r"^## (\w+)\n\n", re.MULTILINE)


def dataset_card(name: str, title: str | None = None) -> DatasetCard:
    """Write the Hub's card of a corpus, from its builder's docstring and its text in `cards`.

    Args:
        name: A corpus, one of `list_datasets()`.
        title: What to call it; by default its name.

    Returns:
        The card; `str` gives it as Markdown.

    Raises:
        InputError: There is no such corpus.
    """
    builder = find_builder(name)
    data = DatasetCardData(
        pretty_name=title or name,
        language="en" if is_published(name) else None,
        license=builder.licence_id,
        task_categories=list(builder.tasks),
        tags=["paraphrase", "hf_paraphrase"],
    )
    parts = [f"## {heading}\n\n{text}" for heading, text in describe_corpus(builder).items()]
    return DatasetCard("\n\n".join([f"---\n{data}\n---", f"# {title or name}", *parts, _use(name, builder)]) + "\n")


def describe_corpus(builder: type[CorpusBuilder]) -> dict[str, str]:
    """What a card says of a corpus, by heading: `About`, then those of its text in `cards`."""
    text = (CARDS / f"{builder.corpus_name}.md").read_text(encoding="utf-8")
    _, *parts = HEADING.split(text)
    sections = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    return {"About": inspect.getdoc(builder) or "", **sections}


def push_to_hub(
    path: str,
    repo_id: str,
    name: str | None = None,
    private: bool | None = None,
    token: str | None = None,
    **load: Any,
) -> str:
    """Read a corpus and upload it to the Hub, as Parquet files with its card.

    A card that is already there is kept, since people may have edited it; datasets writes only its own entries into
    it. All splits have all columns on the Hub; those that a split lacks are empty there.

    Args:
        path: A corpus, one of `list_datasets()`.
        repo_id: The dataset repository, made if need be.
        name: A configuration of the corpus, which is also the one on the Hub.
        private: Make a new repository private; None leaves that to the account's settings.
        token: A token of the Hub, if none is stored.
        load: Other arguments of `load_dataset`, such as `data_dir`.

    Returns:
        The repository's address.
    """
    builder = make_builder(path, name, **load)
    builder.download_and_prepare(verification_mode="no_checks")
    splits = [split for split, info in builder.info.splits.items() if info.num_examples]
    rows = datasets.DatasetDict({split: builder.as_dataset(split) for split in splits})
    api = HfApi(token=token)
    url = api.create_repo(repo_id, repo_type="dataset", private=private, exist_ok=True)
    if not api.file_exists(repo_id, "README.md", repo_type="dataset"):
        title = None if is_published(path) else repo_id.rpartition("/")[2]
        dataset_card(path, title).push_to_hub(repo_id, repo_type="dataset", token=token)
    rows.push_to_hub(repo_id, config_name=builder.config.name, token=token)
    return str(url)


def _download(name: str) -> list[str]:
    """What a card says of a corpus for which no folder is given."""
    release = RELEASES.get(name)
    if release is None:
        return []
    if release.on_request:
        return [f"It cannot be downloaded: {release.on_request}.\n"]
    urls = ", ".join(f"<{file.url}>" for file in release.files)
    copy = f" A copy of the rows on the Hub: `{release.copy}`." if release.copy else ""
    return [f"Without `data_dir` it is downloaded from {urls}.{copy}\n"]


def _use(name: str, builder: type[CorpusBuilder]) -> str:
    where = ', data_dir="the/folder"' if builder.files else ""
    where = ', data_files="my_file.tsv"' if builder.private else where
    configs = list(builder.builder_configs)
    calls = [f'hf_paraphrase.load_dataset("{name}"{where})']
    calls += [f'hf_paraphrase.load_dataset("{name}", "{configs[-1]}"{where})'] if len(configs) > 1 else []
    config = builder.builder_configs[builder.DEFAULT_CONFIG_NAME]
    rows = [
        f"| `{argument}` | `{getattr(config, argument)!r}` | {field.metadata.get('help', '')} |"
        for argument, field in config.arguments().items()
    ]
    return "\n".join(
        ["## Use\n", "```python", "import hf_paraphrase\n", *calls, "```\n", *_download(name)]
        + [f"Arguments, with the defaults of `{config.name}`:\n", "| argument | default | |", "|---|---|---|", *rows]
    )
