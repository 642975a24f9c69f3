"""What a user may say about metrics."""

from dataclasses import dataclass, field, fields
from typing import Any


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class MetricOptions:
    """Options of metrics; each metric takes those that its constructor names.

    The metadata of each has its help, from which the flags of commands are made.
    """

    language: str = _option("en", "Language of the summaries, an ISO 639-1 code, for ROUGE and METEOR.")
    tokenization: str | None = _option(
        None, "What ROUGE and METEOR compare: ascii, words or characters.  [default: the language's]"
    )
    stemmer: str | None = _option(None, "Their stemmer: none, porter or snowball.  [default: the language's]")
    embedding_model: str | None = _option(None, "Encoder of BERTScore and MoverScore: a folder or a name on the hub.")
    embedding_layer: int | None = _option(
        None,
        "Layer of it whose vectors are compared, counted from 1.  [default: for BERTScore the one that is recommended "
        "for a well-known model, else the last]",
    )
    bertscore_idf: bool = _option(False, "Weigh tokens in BERTScore by how rare they are among all references.")
    stop_words: str | None = _option(None, "File of words that MoverScore leaves out.  [default: none]")
    qa_model: str | None = _option(None, "Model of APES that answers questions: a folder or a name on the hub.")
    tagger: str | None = _option(None, "Token classifier that finds entities: a folder or a name on the hub.")
    wordnet: str | None = _option(None, "Folder of WordNet's database files, for the synonyms of METEOR.")
    device: str = _option("cpu", "Device of these models, such as cuda.")


#: The help of each option by its name.
HELP: dict[str, str] = {each.name: each.metadata["help"] for each in fields(MetricOptions)}
