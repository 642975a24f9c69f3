"""Which method suits a document, for `auto`."""

import re

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.extract.methods import HIPORANK
from pyramidions.text.language import ENGLISH
from pyramidions.text.outline import Outline

BIOMEDICAL, MEETINGS = "biomedical", "meetings"
#: Sentences of a document that are looked at, and the fewest that tell something.
_LOOKED_AT, _LEAST = 64, 15
#: What a usual section counts, the most that one kind of sentences does, and what a paper has in all. 599 of 600
#: validation papers of SumPubMed have it, 677 of 716 of the ACL Anthology, 103 of 117 articles of PLOS, and 4 of 508
#: other texts.
_SECTION, _MOST, _PAPER = 0.05, 0.1, 0.17
#: Letters of a heading that are looked at.
_TITLE_LENGTH = 80
# "3.1 Materials and Methods", but no "Methodist church".
_TITLE = re.compile(
    r"(?:[\divx.]{0,8}[.\s]\s*)?(?:[a-z]+ ){0,2}(introduction|background|(?<=related )work|(?<=previous )work|method|"
    r"experiment|evaluation|result|discussion|conclu)(?:s|ology|sions?|ding)?\b"
)
# What sentences of papers have: marks of citations, figures and tables, and what authors say of their work.
_KINDS = (
    re.compile(r"\bet al\b|\b(?:19|20)\d\d[a-z]?[);]|<cit>|\[\d+[\],–-]"),
    re.compile(r"\b(?:fig(?:ures?|s?\.?)|tables?) ?(?:s?\d|<)"),
    re.compile(
        r"\bin this (?:paper|study|work|article)\b|\b(?:previous|recent|these|this|present|earlier) (?:stud|work|"
        r"result|paper|findings)|\bour (?:analys|approach|data|experiment|findings|method|model|result|study|system|"
        r"work)|\bwe (?:also |first |have |now |then )?(?:analy[sz]e|compare|conduct|consider|demonstrate|describe|"
        r"develop|evaluate|examine|f(?:i|ou)nd|identif|introduce|investigate|measure|observe|perform|present|propose|report|"
        r"show|stud|test|use)"
    ),
)


@checked
def suited(outline: Outline) -> str:
    """Return the method for a document: a model where it gains on documents of its kind, else HipoRank.

    An English dialogue suits `meetings`. An English paper of any field suits `biomedical`: it has usual sections, cites
    others, shows figures and tables, and tells what its authors did.
    """
    if outline.language != ENGLISH:
        return HIPORANK
    if outline.speakers:
        return MEETINGS
    count = len(outline.texts)
    if count < _LEAST:
        return HIPORANK
    places = np.unique(np.linspace(0, count - 1, _LOOKED_AT).round().astype(int))
    texts = [outline.texts[at].lower() for at in places.tolist()]
    shares = (sum(kind.search(text) is not None for text in texts) / len(texts) for kind in _KINDS)
    titles = (_TITLE.match(heading[:_TITLE_LENGTH].lower()) for heading in outline.headings)
    found = _SECTION * len({title[1] for title in titles if title}) + sum(min(share, _MOST) for share in shares)
    return BIOMEDICAL if found >= _PAPER else HIPORANK
