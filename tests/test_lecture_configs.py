"""Every file of configs/lecture is its preset, and what the catalogue says of it."""

from dataclasses import asdict
from pathlib import Path

from tables import for_each

from lab.catalogue import LECTURE_TABLES, PaperRow, read_catalogue
from pyramidions.models import preset
from pyramidions.models.experiment import read_experiment

CONFIGS = Path(__file__).parent.parent / "configs"
FILES = sorted(path.stem for path in (CONFIGS / "lecture").glob("*.yaml"))
ROWS = [row for row in read_catalogue(CONFIGS) if row.table in LECTURE_TABLES and row.config]
#: What is read in full is a preset's own name, but for these.
PRESETS = {
    "full": ("lsh_window", {"self_attention": "full"}),
    "bigbird_4k": ("bigbird", {}),
}
POOLED = {"pooling_lengths": "None,None,2048,512,None,None"}
#: What pools units pools tokens before.
POOLED_BEFORE = {
    "hat": {"pooling": "soft_topk | markers", "pooling_lengths": "None,None,2048,None,None,1024,None"},
    "hmnet": {
        "pooling": "soft_topk | markers(role_tokens=4, numbers=True)",
        "pooling_lengths": ",".join(["None,None,2048,None,None,1024", *["None"] * 6]),
    },
}


def expected(name: str) -> tuple[str, dict[str, object]]:
    """The preset of a file, and the fields in which they differ."""
    unpooled = name.removesuffix("_pyramidion")
    base, changes = PRESETS.get(unpooled, (unpooled, {}))
    return base, {**changes, **(POOLED_BEFORE.get(unpooled, POOLED) if name != unpooled else {})}


def test_every_file_is_a_row_and_every_row_has_a_file() -> None:
    assert {row.config for row in ROWS} == {f"lecture/{name}" for name in FILES}


@for_each("name", FILES)
def test_a_file_is_its_preset(name: str) -> None:
    found = read_experiment(str(CONFIGS / "lecture" / f"{name}.yaml"))
    base, changes = expected(name)
    model, wanted = asdict(found.model), asdict(preset(base, **changes))
    for part in (model, wanted):
        part.pop("max_source_positions")
    if "learned" in found.model.encoder_positions:
        assert model.pop("encoder_positions") == f"learned(length={found.max_source_positions})"
        assert "learned" in wanted.pop("encoder_positions")
    assert model == wanted


@for_each("row", ROWS)
def test_a_row_says_what_its_file_does(row: PaperRow) -> None:
    found = read_experiment(str(CONFIGS / "base.yaml"), row.overrides)
    read = [int(length) for stage in row.encoder_lengths.split(">") for length in stage.split(",")]
    if len(read) == 1:
        read *= row.encoder_layers
    handed_on = [*read[1:], row.decoder_length]
    lengths = [None if after == before else after for before, after in zip(read, handed_on, strict=True)]
    assert found.model.pooling_lengths == (",".join(map(str, lengths)) if any(lengths) else None)
    assert found.max_source_positions == read[0]
    assert (found.model.encoder_layers, found.model.decoder_layers) == (row.encoder_layers, row.decoder_layers)
    assert found.model.decoding_max_length < found.max_target_positions
    assert found.run["criterion"]["label_smoothing"] == 0.1


def test_systems_that_do_not_pool_themselves_are_there_with_pooling_too() -> None:
    pooled = {name for name in FILES if name.endswith("_pyramidion")}
    # One is short, one is another length, and the last pools.
    alone = {"full", "bigbird_4k", "look_back"}
    assert {name.removesuffix("_pyramidion") for name in pooled} == set(FILES) - pooled - alone
