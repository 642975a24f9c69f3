"""Which corpus an input names."""

from difflib import get_close_matches
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.data.corpora.core import KnownCorpus
from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.folder import DataFolder
from pyramidions.files.progress import note


def find_corpus(name: str, config: str | None = None) -> KnownCorpus | None:
    """Return the corpus of a name, or of its name on the hub; None for what is no such name, or a path of documents.

    Args:
        name: of a corpus, or what is no corpus.
        config: that was asked for; one that is not known makes a name on the hub no known corpus.

    Raises:
        UserError: a word that is neither a path nor a known name.
    """
    corpus = KNOWN.get(name)
    # What `prepare NAME --out NAME` made is no input.
    if Path(name).exists() and not (corpus and DataFolder(name).manifest_path.exists()):
        if corpus is not None:
            note(f"{name} is taken for the path here, not for the corpus of this name")
        return None
    if corpus is None and "/" not in name:
        near = "".join(f"; did you mean {other}?" for other in get_close_matches(name.lower(), KNOWN, 1))
        raise UserError(
            f"{name} must be a file, a folder, OWNER/NAME on the hub or a known corpus ({', '.join(KNOWN)}), but is "
            f"none{near or '.'}"
        )
    return corpus or next((each for each in KNOWN.values() if each.hub == name and _is_alike(each, config)), None)


def _is_alike(corpus: KnownCorpus, config: str | None) -> bool:
    """Return whether the name on the hub stands for the corpus: files to fetch may be one of several corpora's."""
    return not corpus.forms[0].fetched and (config is None or config in corpus.configs)
