"""Which method suits a document, for `auto`."""

from pyramidions.base.arguments import checked
from pyramidions.extract.methods import HIPORANK
from pyramidions.text.language import ENGLISH
from pyramidions.text.outline import Outline

BIOMEDICAL, MEETINGS = "biomedical", "meetings"
#: Sentences of a document for `biomedical`: in fewer there is little to choose from, and more take long.
LEAST, MOST = 15, 10_000


@checked
def suited(outline: Outline) -> str:
    """Return the method for a document: a model where it gains on documents of its kind, else HipoRank.

    An English dialogue suits `meetings`. Any other English document suits `biomedical`, for its model gains on papers
    of other fields, too, on news, encyclopedias and proposals, and loses nothing on stories.
    """
    if outline.language != ENGLISH:
        return HIPORANK
    if outline.speakers:
        return MEETINGS
    return BIOMEDICAL if LEAST <= len(outline.texts) <= MOST else HIPORANK
