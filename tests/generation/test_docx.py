from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.documents import rewrite_document

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLE = '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
STYLES = f'<w:styles xmlns:w="{NAMESPACE}">{STYLE}</w:styles>'
BOLD = '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{}</w:t></w:r>'


def plain(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def make(body: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{NAMESPACE}"><w:body>{body}</w:body></w:document>'
        )
        archive.writestr("word/styles.xml", STYLES)
        archive.writestr("word/media/image1.png", bytes(range(256)))
    return file.getvalue()


def read(document: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(body: str, answers: dict[str, str]) -> str:
    """The new body; sentences without an answer stay."""
    document = make(body)
    new = rewrite_document(document, lambda asked: [answers.get(one) for one in asked], "docx")[0]
    before, after = read(document), read(new)
    assert list(before) == list(after)
    assert all(before[name] == after[name] for name in before if name != "word/document.xml")
    text = after["word/document.xml"].decode()
    ElementTree.fromstring(text)
    return text.partition("<w:body>")[2].partition("</w:body>")[0]


ASKED = {"We like good bread here.": "Here we like good bread.", "We:all: eat bread now.": "Eat bread: all: now."}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (plain("We like good bread here."), plain("Here we like good bread.")),
        # Runs alike are one; what the spelling checker left is gone with them.
        (
            plain("We like go") + '<w:proofErr w:type="x"/>' + plain("od bread here."),
            plain("Here we like good bread."),
        ),
        (
            plain("We like ") + BOLD.format("good") + plain(" bread here."),
            plain("Here we like ") + BOLD.format("good") + plain(" bread."),
        ),
        (
            plain("We like ") + f'<w:hyperlink w:id="1">{BOLD.format("good ")}</w:hyperlink>' + plain("bread here."),
            plain("Here we like ") + f'<w:hyperlink w:id="1">{BOLD.format("good ")}</w:hyperlink>' + plain("bread."),
        ),
        ("<w:r><w:t>We like good bread here.</w:t></w:r>", "<w:r><w:t>Here we like good bread.</w:t></w:r>"),
        # Spaces at the end of a run need a mark to be kept.
        (
            "<w:r><w:t>We:</w:t></w:r>" + BOLD.format("all") + plain(": eat bread now."),
            plain("Eat bread: ") + BOLD.format("all") + plain(": now."),
        ),
        (
            "<w:pPr><w:pStyle w:val='berschrift1'/></w:pPr>" + plain("We like good bread here."),
            "<w:pPr><w:pStyle w:val='berschrift1'/></w:pPr>" + plain("We like good bread here."),
        ),
        (
            plain("We like good") + "<w:r><w:footnoteReference w:id='1'/></w:r>" + plain(" bread here."),
            plain("We like good") + "<w:r><w:footnoteReference w:id='1'/></w:r>" + plain(" bread here."),
        ),
        (
            plain("We like good") + "<w:r><w:br/></w:r>" + plain(" bread here."),
            plain("We like good") + "<w:r><w:br/></w:r>" + plain(" bread here."),
        ),
    ],
)
def test_styles_stay_on_their_words(before: str, after: str) -> None:
    table = f"<w:tbl><w:tr><w:tc><w:p>{plain('We like good bread here.')}</w:p></w:tc></w:tr></w:tbl>"
    assert rewrite(f"<w:p>{before}</w:p>{table}", ASKED) == f"<w:p>{after}</w:p>{table}"


def test_signs_and_fields() -> None:
    answers = {"Köln &c is < 5 km away.": "It is < 5 km to Köln &c."}
    body = f"<w:p>{plain('Köln &amp;c is &lt; 5 km away.')}</w:p>"
    assert rewrite(body, answers) == f"<w:p>{plain('It is &lt; 5 km to Köln &amp;c.')}</w:p>"
    begin, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "end"))
    field = begin + "<w:r><w:instrText>PAGE</w:instrText></w:r>" + plain("12") + end
    body = f"<w:p>{plain('See more on page ')}{field}{plain(' of this.')}</w:p>"
    new = rewrite(body, {"See more on page 12 of this.": "On page 12 of this, see more."})
    assert "".join(ElementTree.fromstring(f'<a xmlns:w="{NAMESPACE}">{new}</a>').itertext()) in (
        "On page PAGE12 of this, see more.",
        "See more on page PAGE12 of this.",
    )


@pytest.mark.parametrize("document", [b"words", make("")[:-30], b"PK\x03\x04", make("").replace(b"word/d", b"ward/d")])
def test_what_is_no_document_of_word_is_refused(document: bytes) -> None:
    with pytest.raises(InputError, match=r"this is not a (readable )?\.docx"):
        rewrite_document(document, list, "docx")
    with pytest.raises(InputError, match="must be the bytes of a file"):
        rewrite_document("words", list, "docx")
