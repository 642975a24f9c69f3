"""Documents to a data folder: check, train the vocabulary, encode, write.

Each step streams its input anew, so memory is bounded by the sample that trains the vocabulary and by a few
chunks of documents, not by the corpus. An interrupted run leaves its vocabulary and its finished splits to the next.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.alignment import least_alignment
from pyramidions.data.encode import CHUNK, Encoder, encode, require_unchanged
from pyramidions.data.folder import SPECIAL_TOKENS, SPLITS, DataFolder, refuse_foreign
from pyramidions.data.labels import require_marker
from pyramidions.data.making import make_folder, part
from pyramidions.data.manifest import InputHash, holds, work_key, write_manifest
from pyramidions.data.pairing import Pairing
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.vocabulary import Settings, dictionary_lines, sample, train_tokenizer, training_sentences
from pyramidions.files.atomic import recover_folder, write_file
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import counted, progress_bar, with_elapsed
from pyramidions.text.tokenizer import SentencePieceTokenizer, Tokenizer
from pyramidions.text.word_tags import about_pipeline


def prepare(
    path: str | Path,
    corpora: Mapping[str, Corpus],
    settings: Settings | None = None,
    *,
    tokenizer: Tokenizer | str | Path | None = None,
    labels: bool = False,
    pairings: Mapping[str, Pairing] | None = None,
    tags: str | None = None,
    keep_aligned: bool = False,
    workers: int = 1,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> bool:
    """Make a data folder, whole or not at all.

    A folder that already holds these documents with these settings is kept, unless one of its files is missing or
    damaged. The same documents give the same bytes with any number of workers and interruptions. An interrupted run is
    continued by the next call with the same arguments.

    Args:
        path: the folder to make.
        corpora: the documents of `train`, `valid` and `test`, or of some of them.
        settings: of the vocabulary to train; the defaults if neither settings nor a tokenizer are given.
        tokenizer: encodes, or the file of one that does, instead of training a sentencepiece model.
        labels: label the sentences that summarize each document best, to train an extractor; a vocabulary that is
            trained then has sentence markers.
        pairings: of some splits, what makes pairs of their documents; the vocabulary is trained on whole documents.
        tags: a spaCy pipeline, by its folder or package, that tags the words of documents.
        keep_aligned: leave out documents of `train` and `valid` that cover no more of their summaries than others do
            (`least_alignment`).
        workers: number of processes that encode.
        overwrite: replace a data folder that holds something else.
        about: the known corpus that the documents come from, for the manifest.

    Returns:
        True if the folder was made, False if it was there.
    """
    _check_arguments(corpora, settings, tokenizer)
    path, settings, pairings = Path(path), settings or Settings(), pairings or {}
    recover_folder(path)
    reused = None if tokenizer is None else _reused(tokenizer, labels)
    _check_kinds(settings.turn_markers or (reused is not None and reused.marks_turns), labels, bool(pairings), tags)
    settings = replace(settings, sentence_markers=settings.sentence_markers or labels)
    further = {
        "labels": labels,
        "queries": _have_queries(corpora, labels),
        "tags": tags and about_pipeline(tags),
        "pairs": {split: pairings[split].about() for split in SPLITS if split in pairings},
        "language": ", ".join(sorted({corpus.language for corpus in corpora.values() if corpus.language})),
        "corpus": about and dict(about),
    }
    recorded = _recorded(settings, reused) | {name: value for name, value in further.items() if value}
    refuse_foreign(path)
    corpora = {split: corpora[split] for split in SPLITS if split in corpora}
    if keep_aligned:
        recorded["keep_aligned"] = threshold = _threshold(corpora)
        corpora = {
            split: corpus if split == "test" else corpus.covering(threshold) for split, corpus in corpora.items()
        }
    inputs = {split: _check(corpus) for split, corpus in corpora.items()}
    if missing := [split for split in SPLITS if split not in corpora]:
        note(_about_missing(missing))

    def fill(folder: DataFolder) -> None:
        model = reused or _vocabulary(folder, corpora["train"], inputs["train"], settings, workers)
        splits = {}
        vocabulary = sha256(model.model_bytes + repr(model.numbering).encode()).hexdigest()
        for split, corpus in corpora.items():
            encoder = Encoder(model, labels, pairings.get(split), tags)
            splits[split] = part(
                *(folder.path, split, f"the {split} split that was encoded"),
                partial(encode, folder, split, corpus, inputs[split], encoder, workers),
                partial(folder.path.glob, f"{split}.*"),
                vocabulary,
            )
        write_file(folder.path / model.file_name, model.model_bytes)
        if not model.special_tokens:
            write_file(folder.dictionary_path, dictionary_lines(model).encode())
        write_manifest(folder, recorded, inputs, splits, model.vocab_size, model.library)

    folder, key = DataFolder(path), work_key(recorded, inputs, (reused or SentencePieceTokenizer).library)
    return make_folder(folder, lambda: holds(folder, recorded, inputs), "documents", overwrite, key, fill)


def _check_arguments(corpora: Mapping[str, Corpus], settings: Settings | None, tokenizer: object) -> None:
    if tokenizer is not None and settings is not None:
        raise UserError("Settings of a vocabulary and a tokenizer to reuse exclude each other.")
    if not corpora:
        raise UserError("At least one of train, valid and test must be given.")
    if tokenizer is None and "train" not in corpora:
        raise UserError("A vocabulary is trained on the train split: give one, or a tokenizer to reuse.")


def _check_kinds(turns: bool, labels: bool, pairs: bool, tags: str | None) -> None:
    for is_wrong, said in (
        (turns and labels, "Turn markers stand before lines, but --labels is about sentences."),
        (turns and pairs, "Turn markers stand before lines, which --divide and --select take apart."),
        (tags and labels, "Tags are for models that write: --tags excludes --labels."),
    ):
        if is_wrong:
            raise UserError(said)


def _have_queries(corpora: Mapping[str, Corpus], labels: bool) -> bool:
    having = [split for split, corpus in corpora.items() if corpus.has_queries]
    if having and labels:
        raise UserError("Labels are for extractors, which read no queries: --labels excludes --query-field.")
    if lacking := [split for split in corpora if having and split not in having]:
        raise UserError(f"All splits must have queries, or none, but {having[0]} has them and {lacking[0]} does not.")
    return bool(having)


def _reused(given: Tokenizer | str | Path, labels: bool) -> Tokenizer:
    tokenizer = given if isinstance(given, Tokenizer) else Tokenizer.from_file(given)
    if labels:
        require_marker(tokenizer, "it" if isinstance(given, Tokenizer) else given)
    return tokenizer


def _about_missing(splits: list[str]) -> str:
    if "train" in splits:
        needs = "fairseq-train needs train"
    elif "valid" in splits:
        needs = "fairseq-train needs valid, unless --disable-validation"
    else:
        needs = "fairseq-generate needs test, unless --gen-subset names another"
    return f"{' and '.join(f'no {split}' for split in splits)} split: {needs}"


def _recorded(settings: Settings, tokenizer: Tokenizer | None) -> dict[str, Any]:
    if tokenizer is not None:
        special = {SPECIAL_TOKENS: tokenizer.special_tokens} if tokenizer.special_tokens else {}
        return {"tokenizer_sha256": sha256(tokenizer.model_bytes).hexdigest(), **special}
    # Folders made before there were turn markers and folded cases do not say that they have none.
    newer = ("turn_markers", "fold_case")
    return {name: value for name, value in asdict(settings).items() if value or name not in newer}


def _check(corpus: Corpus) -> dict[str, Any]:
    """Read every document once: an invalid one ends the run before anything is written."""
    digest = InputHash()
    for document in corpus.shown("checking"):
        digest.add(document)
    if corpus.misaligned:
        whole = counted(digest.documents + corpus.misaligned, "document")
        note(f"left out {corpus.misaligned:,} of {whole} of {corpus.name}, which do not cover their summaries")
    return digest.summary(corpus.skipped)


def _threshold(corpora: Mapping[str, Corpus]) -> float:
    """Find the share of their summaries that documents must exceed."""
    if "train" not in corpora:
        raise UserError("`keep_aligned` finds its threshold by train documents, but there is no train split.")
    train = corpora["train"]
    found = round(least_alignment(((each.source, each.target) for each in train), train.language), 4)
    note(f"documents must cover more than {found:.0%} of the words of their summaries")
    return found


def _vocabulary(
    folder: DataFolder, corpus: Corpus, expected: dict[str, Any], settings: Settings, workers: int
) -> Tokenizer:
    path = folder.sentencepiece_path

    def make() -> dict[str, Any]:
        write_file(path, _train(corpus, expected, settings, workers).model_bytes)
        return {}

    part(folder.path, "vocabulary", "the vocabulary that was trained", make, lambda: [path])
    return Tokenizer.from_file(path)


def _train(corpus: Corpus, expected: dict[str, Any], settings: Settings, workers: int) -> Tokenizer:
    digest = InputHash()
    counted_ones = _counted(corpus, digest)
    with progress_bar("sampling sentences", expected["documents"], "documents", items=counted_ones) as documents:
        batches = ordered_map(_sentences_of_chunk, chunks(documents, CHUNK), workers)
        sentences = sample(chain.from_iterable(batches), settings.sentences, settings.seed)
    # The next run may reuse this vocabulary, so it must come from the documents that were checked.
    require_unchanged(corpus, digest, expected)
    size = f"{settings.vocab_size:,} pieces on {counted(len(sentences), 'sentence')}"
    return with_elapsed(f"training a vocabulary of {size}", lambda: train_tokenizer(sentences, settings))


def _counted(corpus: Corpus, digest: InputHash) -> Iterator[Document]:
    for document in corpus:
        digest.add(document)
        yield document


def _sentences_of_chunk(documents: list[Document]) -> list[str]:
    return list(training_sentences(documents))
