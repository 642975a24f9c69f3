"""Reversible layers in data-parallel training: two processes get the gradients of one."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq_commands import finish

WORK = """
import copy, json, sys
from pathlib import Path
import torch
import torch.distributed as dist
from fairseq.distributed import LegacyDistributedDataParallel
from pyramidions.models import build, preset

rank, meeting, out = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
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


def gradients(wrap, part):
    whole = copy.deepcopy(model)
    wrapped = wrap(whole)
    torch.manual_seed(1)
    loss(wrapped, part).backward()
    if hasattr(wrapped, "all_reduce_grads"):
        wrapped.all_reduce_grads()
    return {name: weight.grad.tolist() for name, weight in whole.named_parameters()}


dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
found = {
    "alone": gradients(lambda model: model, slice(None)),
    "torch": gradients(torch.nn.parallel.DistributedDataParallel, rank),
    "legacy": gradients(lambda model: LegacyDistributedDataParallel(model, process_group=dist.group.WORLD), rank),
}
dist.destroy_process_group()
out.write_text(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_get_the_gradients_of_one(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(WORK)

    def gradients(rank: int) -> dict[str, dict[str, list[float]]]:
        out = tmp_path / f"{rank}.json"
        finish("python", script, rank, tmp_path / "meeting", out)
        found: dict[str, dict[str, list[float]]] = json.loads(out.read_text())
        return found

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(gradients, (0, 1))
    for wrapper in ("torch", "legacy"):
        assert one[wrapper] == other[wrapper] and one[wrapper].keys() == one["alone"].keys()
        for name, expected in one["alone"].items():
            found, wanted = torch.tensor(one[wrapper][name]), torch.tensor(expected)
            torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9, msg=name)
