"""Divides documents and summaries into single sentences, to train a model that rewrites one."""

from typing import Any

from pyramidions.data.pairing import Pairing, Pairs
from pyramidions.data.readers import Document
from pyramidions.text.language import Language
from pyramidions.text.subsequence import Subsequences
from pyramidions.text.tokenizer import Tokenizer
from pyramidions.text.turns import read_outline, with_speakers


class DivideSentences(Pairing):
    """Pairs each sentence of the summary with the sentence of the document that has the highest ROUGE-L recall of it.

    Chen and Bansal 2018, "Fast Abstractive Summarization with Reinforce-Selected Sentence Rewriting", equation (5).
    Words are compared as they are, without stemming; of equal sentences, the first is taken. A sentence that shares no
    word with the document has no pair. The reference decides about pairs, so this is for training and validation, never
    for test.
    """

    def __call__(self, document: Document, tokenizer: Tokenizer | None = None) -> Pairs:
        """Return the pairs, named ID/1, ID/2 …; the whole document if it has no sentence."""
        found = read_outline(document.source, language=document.language)
        sentences = list(with_speakers(found))
        if not sentences:
            return Pairs([document], is_whole=True)
        language = Language(found.language)
        words = [language.words(sentence) for sentence in sentences]
        pairs: list[Document] = []
        for target in language.sentences(document.target):
            recall = [*map(Subsequences(language.words(target)).recall, words)]
            if (highest := max(recall)) > 0:
                source = sentences[recall.index(highest)]
                pairs.append(document._replace(id=f"{document.id}/{len(pairs) + 1}", source=source, target=target))
        return Pairs(pairs)

    def about(self) -> dict[str, Any]:
        """Return the kind: there are no options."""
        return {"kind": "single sentences"}

    @property
    def whole_because(self) -> str:
        """Why a document is taken as a whole."""
        return "no sentence"
