"""What a decoder reads before the first token."""

import torch

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.sublayer import Memory

SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2}


def model(start: str) -> Transformer:
    torch.manual_seed(3)
    return build(preset("vanilla", **SMALL, decoder_start=start), vocab_size=20).eval()


def test_the_start_stands_for_the_first_token_of_a_prefix() -> None:
    document, other = torch.randint(4, 20, (2, 9)), torch.tensor([[7, 5, 6], [8, 9, 4]])
    given = torch.cat([torch.zeros_like(other[:, :1]), other[:, 1:]], dim=1)
    assert torch.equal(model("<s>")(document, other), model("</s>")(document, given))
    memory = (Memory(torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)),)
    (ours,) = model("<s>").decoder.cross_attention_weights(other, memory)
    assert torch.equal(ours, model("</s>").decoder.cross_attention_weights(given, memory)[0])
    ((found,),) = BeamSearch(1, min_len=3, max_len=3)(model("<s>"), document[:1])
    logits = model("</s>")(document[:1], torch.cat([torch.zeros(1, 1).long(), found.tokens[None, :-1]], dim=1))
    expected = logits[0].log_softmax(-1).gather(1, found.tokens[:, None])[:, 0]
    torch.testing.assert_close(found.token_scores, expected, rtol=0, atol=1e-5)


def test_cached_steps_read_it_once() -> None:
    started = model("<s>")
    memory, tokens = torch.randn(1, 5, 16), torch.tensor([[2, 5, 6, 2]])
    cache = started.decoder.new_cache()
    steps = [started.decoder(tokens[:, t : t + 1], (Memory(memory),), cache) for t in range(4)]
    torch.testing.assert_close(torch.cat(steps, dim=1), started.decoder(tokens, (Memory(memory),)), rtol=0, atol=1e-5)
