from pathlib import Path

import pytest
from omegaconf import OmegaConf

from lab.scale import SCALES, scaled_configs
from pyramidions.base.errors import UserError
from pyramidions.models.experiment import read_experiment

CONFIGS = Path(__file__).parents[2] / "configs"


def test_the_papers_scale_is_the_folder_itself(tmp_path: Path) -> None:
    assert scaled_configs(CONFIGS, tmp_path / "unused", SCALES["paper"]) == CONFIGS
    assert not (tmp_path / "unused").exists()


def test_tiny_divides_lengths_by_16_and_widths_by_8(tmp_path: Path) -> None:
    tiny = scaled_configs(CONFIGS, tmp_path, SCALES["tiny"])
    found = read_experiment(str(tiny / "table7" / "23_pyramidion_8k_2k_512_128.yaml"))
    assert found.max_source_positions == 512 and found.max_target_positions == 64
    assert found.model.pooling_lengths == "None,128,32,8" and found.model.encoder_layers == 4
    assert found.model.self_attention == "blockwise(block_size=32)"
    assert (found.model.embed_dim, found.model.ffn_embed_dim) == (64, 256)
    assert (found.model.decoding_min_length, found.model.decoding_max_length) == (4, 60)
    assert found.run["optimization"]["max_epoch"] == 1


def test_buckets_and_windows_are_lengths_but_hashes_and_heads_are_not(tmp_path: Path) -> None:
    tiny = scaled_configs(CONFIGS, tmp_path, SCALES["tiny"])
    found = read_experiment(str(tiny / "table2" / "11_lsh_8k.yaml")).model.self_attention
    assert found == "lsh(bucket_size=4, num_hashes=4, local_heads=2, local_window=16)"


def test_a_length_that_cannot_be_divided_is_named(tmp_path: Path) -> None:
    (tmp_path / "configs" / "own").mkdir(parents=True)
    OmegaConf.save(OmegaConf.load(CONFIGS / "base.yaml"), tmp_path / "configs" / "base.yaml")
    (tmp_path / "configs" / "own" / "row.yaml").write_text("# @package _global_\nmodel:\n  pooling_lengths: None,8\n")
    with pytest.raises(UserError, match="`pooling_lengths` must be at least 16 at this scale, but is 8."):
        scaled_configs(tmp_path / "configs", tmp_path / "tiny", SCALES["tiny"])
