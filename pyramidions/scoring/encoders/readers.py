"""Models that read, for metrics: they find entities in sentences and answers in texts, and tell what follows."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyramidions.scoring.encoders.loading import Head, ModelInUse
from pyramidions.scoring.metric import Judged, Question, Span

_OUTSIDE = "O"
# Of the schemes BIO, IOB2, BIOES and BILOU.
_BEGINS, _GOES_ON = ("B", "S", "U"), ("I", "E", "L")
_AROUND = " \t.,;:!?\"'()[]“”‘’«»"
_LONGEST_ANSWER = 30  # tokens, as in the evaluation of SQuAD by BERT
_STRIDE = 128  # tokens that two windows of a long text share
_ENTAILS, _CONTRADICTS = ("entail", "support", "correct"), ("contra", "refute")


class EntityTagger(ModelInUse):
    """Finds entities with a token classifier.

    A word has the label of its first piece. Neighbouring words of one type are one entity, unless the second begins
    one (B-, S-, U-). A sentence that is longer than the model is read in pieces. One label must be "O".
    """

    head = Head(
        "tagger", "a token classifier that finds entities", "AutoModelForTokenClassification", "ForTokenClassification"
    )

    def __init__(self, place: str | None, device: str = "cpu") -> None:
        super().__init__(place, device)
        self._labels: dict[int, str] = self._loaded.model.config.id2label
        labels = list(self._labels.values())
        if _OUTSIDE not in labels or len(labels) < 2:
            rule = f"have the label {_OUTSIDE} for words outside of entities, and labels of entities"
            raise self._refuse(rule, f"has {_listed(labels)}")

    def entities(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return the entities of sentences, in order."""
        found: list[list[Span]] = [[] for _ in sentences]
        if not sentences:
            return found
        made = self._loaded.tokenizer(list(sentences), return_overflowing_tokens=True, **self._loaded.truncation)
        best = self._computed(made.encodings, lambda out: out.logits.argmax(dim=-1).tolist())
        for sentence, encoding, labels in zip(made["overflow_to_sample_mapping"], made.encodings, best, strict=True):
            named = [self._labels[label] for label in labels]
            spans = (_trimmed(sentences[sentence], span) for span in _spans(encoding, named))
            found[sentence] += [span for span in spans if span.start < span.end]
        return found


def _spans(encoding: Any, labels: Sequence[str]) -> Iterator[Span]:
    """Yield the spans of entities, from the start of the first word to the end of the last piece."""
    word_before, open_kind, start, end = None, "", 0, 0
    # Behind the tokens of a text, the labels are those of padding.
    for word, label, (left, right) in zip(encoding.word_ids, labels, encoding.offsets, strict=False):
        if word is None:
            continue
        if word == word_before:
            end = right
            continue
        word_before = word
        prefix, kind = _parsed(label)
        if open_kind and (kind != open_kind or prefix in _BEGINS):
            yield Span(start, end)
            open_kind = ""
        if kind and not open_kind:
            start = left
        open_kind, end = kind, right if kind else end
    if open_kind:
        yield Span(start, end)


def _parsed(label: str) -> tuple[str, str]:
    """Return the prefix and the type of a label; both "" for words outside of entities."""
    if label == _OUTSIDE:
        return "", ""
    prefix, dash, kind = label.partition("-")
    return (prefix, kind) if dash and prefix in (*_BEGINS, *_GOES_ON) else ("", label)


def _trimmed(text: str, span: Span) -> Span:
    """Leave out punctuation around an entity; some tokenizers take it for a part of the word."""
    found = text[span.start : span.end]
    start = span.start + len(found) - len(found.lstrip(_AROUND))
    return Span(start, max(start, span.end - len(found) + len(found.rstrip(_AROUND))))


class QuestionAnswerer(ModelInUse):
    """Reads answers with an extractive model (Devlin et al. 2019, section 4.2).

    The answer is the span with the highest sum of the logits of its start and its end, over all windows of a long
    text. There is always one, whatever a model that knows unanswerable questions says; it is "" for a blank text.
    """

    head = Head(
        "qa_model", "an extractive question-answering model", "AutoModelForQuestionAnswering", "ForQuestionAnswering"
    )

    @property
    def blank(self) -> str:
        """What stands for the masked words of a question."""
        return str(self._loaded.tokenizer.mask_token or "_")

    def answers(self, asked: Sequence[Question]) -> list[str]:
        """Return the answers; "" where a text has none."""
        found, best = [""] * len(asked), [-np.inf] * len(asked)
        windows = [
            (number, encoding)
            for number, question in enumerate(asked)
            if question.text.strip()
            for encoding in self._windows(question)
        ]
        logits = self._computed(
            [encoding for _, encoding in windows],
            lambda out: zip(*(each.float().cpu().numpy() for each in (out.start_logits, out.end_logits)), strict=True),
        )
        for (number, encoding), (starts, ends) in zip(windows, logits, strict=True):
            score, start, end = _best_span(encoding, starts, ends)
            if score > best[number]:
                best[number], found[number] = score, asked[number].text[start:end]
        return found

    def _windows(self, question: Question) -> list[Any]:
        """Return a question with each window of its text, encoded."""
        settings: dict[str, Any] = {}
        asked = question.question
        if (length := self._loaded.length) is not None:
            asked = self._shortened(asked, length // 2)
            # Windows that share as much as they hold would never end.
            settings = {"truncation": "only_second", "max_length": length, "stride": min(_STRIDE, length // 8)}
        made = self._loaded.tokenizer(asked, question.text, return_overflowing_tokens=True, **settings)
        return list(made.encodings)

    def _shortened(self, question: str, length: int) -> str:
        """Cut a question that leaves no room for the text, on both sides of the mask."""
        encoding = self._loaded.tokenizer(question, add_special_tokens=False).encodings[0]
        if len(encoding.ids) <= length:
            return question
        place = question.find(self.blank)
        middle = next((n for n, (_, end) in enumerate(encoding.offsets) if end > place), 0)
        first = max(0, min(middle - length // 2, len(encoding.ids) - length))
        return question[encoding.offsets[first][0] : encoding.offsets[first + length - 1][1]]


def _best_span(encoding: Any, start: np.ndarray, end: np.ndarray) -> tuple[float, int, int]:
    """Return the score of the best span of the text, and its characters; nothing where the window has no text."""
    places = np.array([n for n, of in enumerate(encoding.sequence_ids) if of == 1], dtype=np.int64)
    if not len(places):
        return -np.inf, 0, 0
    # (starts, ends)
    scores = start[places][:, None] + end[places][None, :]
    distance = places[None, :] - places[:, None]
    scores = np.where((distance >= 0) & (distance < _LONGEST_ANSWER), scores, -np.inf)
    first, last = np.unravel_index(int(np.argmax(scores)), scores.shape)
    left, right = encoding.offsets[places[first]][0], encoding.offsets[places[last]][1]
    return float(scores[first, last]), left, right


class EntailmentClassifier(ModelInUse):
    """Tells whether premises entail a claim, by a classifier of pairs.

    The label of entailment must begin with "entail", "support" or "correct"; that of contradiction must begin with
    "contra" or "refute", or be the other one of two.
    """

    head = Head(
        "entailment_model",
        "a classifier that tells whether one text entails another",
        "AutoModelForSequenceClassification",
        "ForSequenceClassification",
    )

    def __init__(self, place: str | None, device: str = "cpu") -> None:
        super().__init__(place, device)
        shown = [label for _, label in sorted(self._loaded.model.config.id2label.items())]
        labels = [label.casefold() for label in shown]
        entails = [n for n, label in enumerate(labels) if label.startswith(_ENTAILS)]
        others = [n for n in range(len(labels)) if n not in entails]
        #: What is not entailed counts as contradicted.
        self.is_binary = len(labels) == 2
        contradicts = others if self.is_binary else [n for n in others if labels[n].startswith(_CONTRADICTS)]
        if not len(entails) == len(contradicts) == 1:
            raise self._refuse("have labels of entailment and contradiction", f"has {_listed(shown)}")
        self._labels = [entails[0], contradicts[0]]

    def judged(self, premises: Sequence[str], claim: str) -> Judged:
        """Return what a claim is found to be by each premise.

        Of a pair that is longer than what is read, the premise is cut, and first the claim to half of the tokens.
        """
        tokenizer, claims = self._loaded.tokenizer, [claim] * len(premises)
        settings: dict[str, Any] = {}
        if (length := self._loaded.length) is not None:
            settings = {"truncation": "only_first", "max_length": length}
            shortened = _first(tokenizer, claim, length // 2)
            if shortened != claim:
                whole = tokenizer(list(premises), claims, verbose=False).encodings
                claims = [claim if len(each.ids) <= length else shortened for each in whole]
        encodings = tokenizer(list(premises), claims, **settings).encodings
        probabilities = self._computed(
            encodings, lambda out: out.logits.float().softmax(dim=-1)[:, self._labels].cpu().double().numpy()
        )
        truncated = [
            said != claim or bool(encoding.overflowing) for said, encoding in zip(claims, encodings, strict=True)
        ]
        return Judged(np.array(probabilities), sum(truncated))


def _first(tokenizer: Any, text: str, length: int) -> str:
    """Return a text up to a number of tokens."""
    encoding = tokenizer(text, add_special_tokens=False, truncation=True, max_length=length).encodings[0]
    return text[: encoding.offsets[-1][1]] if encoding.overflowing else text


def _listed(labels: Sequence[str]) -> str:
    return ", ".join([*labels[:5], *["..."] * (len(labels) > 5)])
