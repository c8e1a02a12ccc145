"""Where the corpora are published: addresses, licences and whom to ask for access."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["DOWNLOADS", "RELEASES", "HubCopy", "Release", "ReleasedFile", "locate"]

# The environment variable that names another place for all of them: an address or a folder in which each corpus has a
# folder of its name with the files as they are released, such as mscoco/annotations_trainval2014.zip.
DOWNLOADS = "HF_PARAPHRASE_DOWNLOADS"


@dataclass(frozen=True)
class ReleasedFile:
    """A file or archive that a corpus is released in.

    Args:
        url: Its published address; parts in braces are filled from the corpus's arguments.
        size: Its size in bytes, where known.
        sha256: Its SHA-256, where known.
    """

    url: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class HubCopy:
    """A copy of a corpus's rows on the Hub, for `load_dataset` to read where the release is out of reach.

    Args:
        path: The dataset repository.
        name: Its configuration.
        revision: The commit that was looked at.
        columns: Column names here and in the published dataset.
    """

    path: str
    name: str
    revision: str
    columns: dict[str, str]

    def call(self) -> str:
        return f"load_dataset({self.path!r}, {self.name!r}, revision={self.revision!r}, columns={self.columns!r})"


@dataclass(frozen=True)
class Release:
    """How a corpus is given out.

    Args:
        licence: Named before anything is downloaded.
        files: What to download; nothing where a person has to ask.
        on_request: Whom to ask, where there is no open address.
        copy: A second source.
    """

    licence: str
    files: tuple[ReleasedFile, ...] = ()
    on_request: str | None = None
    copy: HubCopy | None = None


# Sizes and checksums: those that the datasets library recorded for these files when it still had its own builders; for
# MSCOCO the one on which many public projects agree. Without one, the length that the server announces is what counts.
RELEASES: dict[str, Release] = {
    "books": Release("none stated; for research", on_request="nobody gives it out any more; somebody has to lend it"),
    "gutenberg": Release(
        "public domain in the United States; the Project Gutenberg licence for headers and footers",
        (ReleasedFile("https://www.gutenberg.org/cache/epub/{number}/pg{number}.txt"),),
    ),
    "hotel_reviews": Release(
        "none stated, the reviews are their authors'; for research",
        (ReleasedFile("http://times.cs.uiuc.edu/~wang296/Data/LARA/TripAdvisor/Review_Texts.zip"),),
    ),
    "mscoco": Release(
        "CC BY 4.0",
        (
            ReleasedFile(
                "http://images.cocodataset.org/annotations/annotations_trainval2014.zip",
                sha256="031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
            ),
        ),
    ),
    "msrp": Release(
        "Microsoft Research's licence for the corpus; for research",
        tuple(
            ReleasedFile(f"https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_{part}.txt")
            for part in ("train", "test")
        ),
    ),
    "ppdb": Release("CC BY 3.0", (ReleasedFile("http://nlpgrid.seas.upenn.edu/PPDB/eng/ppdb-2.0-{size}-{part}.gz"),)),
    "quora": Release(
        "Quora's terms of service; for non-commercial use",
        (
            ReleasedFile(
                "http://qim.fs.quoracdn.net/quora_duplicate_questions.tsv",
                58_176_133,
                "b3350dbb1d98db1f5abca85d736ba514bf4da253fae53939303d79fe921ec7c8",
            ),
        ),
    ),
    "snli": Release(
        "CC BY-SA 4.0",
        (
            ReleasedFile(
                "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
                94_550_081,
                "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            ),
        ),
        copy=HubCopy(
            "stanfordnlp/snli",
            "plain_text",
            "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
            {"sentence1": "premise", "sentence2": "hypothesis", "label": "label"},
        ),
    ),
    "twitter_url": Release(
        "CC BY-NC-SA 3.0", on_request="its authors give it out on request, github.com/lanwuwei/Twitter-URL-Corpus"
    ),
    "wikianswers": Release(
        "not stated by the release",
        (ReleasedFile("http://knowitall.cs.washington.edu/paralex/wikianswers-paraphrases-1.0.tar.gz"),),
    ),
    "wikipedia_paragraphs": Release(
        "CC BY-SA 4.0",
        (
            ReleasedFile(
                "https://wikitext.smerity.com/wikitext-103-v1.zip",
                190_229_076,
                "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
            ),
        ),
        copy=HubCopy(
            "Salesforce/wikitext",
            "wikitext-103-v1",
            "b08601e04326c79dfdd32d625aee71d232d685c3",
            {"text": "text"},
        ),
    ),
    "wikiqa": Release(
        "Microsoft Research Data License Agreement; for research",
        (
            ReleasedFile(
                "https://download.microsoft.com/download/E/5/f/E5FCFCEE-7005-4814-853D-DAA7C66507E0/WikiQACorpus.zip",
                7_094_233,
                "467c13f9e104552c0a9c16f41836ca8d89f9c0cc4b6e4355e104d5c3109ffa45",
            ),
        ),
    ),
    "yahoo_answers": Release(
        "Yahoo's data sharing agreement; for research",
        on_request="Yahoo! Webscope gives L5 and L6 to registered researchers, webscope.sandbox.yahoo.com",
    ),
}


def locate(corpus: str, file: ReleasedFile) -> str:
    """Download address of a file: the published one, or its path under `HF_PARAPHRASE_DOWNLOADS`."""
    base = os.environ.get(DOWNLOADS)
    return f"{base.rstrip('/')}/{corpus}/{file.name}" if base else file.url
