"""Reversible layers in data-parallel training: two processes get the gradients of one."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq_commands import run

WORK = """
import json, sys
from pathlib import Path
import torch
import torch.distributed as dist
from pyramidions.models import build, preset

wrapper, rank, meeting, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
torch.manual_seed(0)
small = dict(embed_dim=16, ffn_embed_dim=32, num_heads=2, encoder_layers=3, decoder_layers=2, max_source_positions=64)
buckets = dict(self_attention="lsh(bucket_size=4, num_hashes=2, local_heads=0)", pooling_lengths="None,16,8")
still = dict(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
model = build(preset("reformer", **small, **buckets, **still), 50).double()
# Rotations that are drawn while training would differ between one process and two.
for module in model.modules():
    if type(module).__name__ == "LSHAttention":
        module.eval()
sources, prefixes = torch.randint(4, 50, (2, 2, 40)), torch.randint(4, 50, (2, 2, 6))


def loss(model, part):
    return model(sources[part].flatten(0, -2), prefixes[part].flatten(0, -2)).square().mean()


if wrapper == "alone":
    loss(model, slice(None)).backward()
else:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    if wrapper == "torch":
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        loss(wrapped, rank).backward()
    else:
        from fairseq.distributed import LegacyDistributedDataParallel
        wrapped = LegacyDistributedDataParallel(model, process_group=dist.group.WORLD)
        loss(wrapped, rank).backward()
        wrapped.all_reduce_grads()
    dist.destroy_process_group()
out.write_text(json.dumps({name: weight.grad.tolist() for name, weight in model.named_parameters()}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["torch", "legacy"])
def test_two_processes_get_the_gradients_of_one(wrapper: str, tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(WORK)

    def gradients(way: str, rank: int) -> dict[str, list[float]]:
        out = tmp_path / f"{way}{rank}.json"
        done = run("python", script, way, rank, tmp_path / "meeting", out)
        assert done.returncode == 0, done.stdout
        found: dict[str, list[float]] = json.loads(out.read_text())
        return found

    alone = gradients("alone", 0)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda rank: gradients(wrapper, rank), (0, 1)))
    assert both[0] == both[1] and both[0].keys() == alone.keys()
    for name, expected in alone.items():
        found, wanted = torch.tensor(both[0][name]), torch.tensor(expected)
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9, msg=name)
