from typing import Any

from lab.claims import claims, doubled, orders


def test_the_claims_of_the_paper_come_out() -> None:
    ours = [round(claim.ours, 2) for claim in claims()]
    savings, bound, decoder, others = ours[:3], ours[3], ours[4:10], ours[10:]
    assert savings == [16.0, 2.46, 16.0]
    assert bound == round(2 - 512 / 8192, 2)
    # Scores and mixes at 256 and 512 tokens, unmasked, with the memory's projections, and everything at both lengths.
    assert decoder == [12.99, 10.99, 11.0, 13.5, 3.99, 2.99]
    assert others == [5.02, 4608.0]


def test_scores_and_mixes_grow_as_table_1_says_but_for_hashing() -> None:
    growths = orders()
    assert len(growths) == 21
    others = {growth.claim: round(growth.ours, 2) for growth in growths if growth.paper != f"{growth.ours:g}x"}
    # Hashing costs n n d / m: it grows with the number of buckets, and falls with their size.
    assert others == {"LSH, l m h n d: n": 2.4, "LSH, l m h n d: m": 1.5}


def test_the_command_prints_both_tables(run: Any) -> None:
    result = run("claims")
    assert result.exit_code == 0, result.output
    titles = [line[:30].split("  ")[0] for line in result.stdout.splitlines()]
    assert "The paper claims" in titles and "Table 1: scores and mixes when" in titles


def test_numbers_can_be_doubled() -> None:
    assert doubled("encoder_layers", 2) == 4
    assert doubled("self_attention", "lsh(local_heads=0, bucket_size=64)") == "lsh(local_heads=0, bucket_size=128)"
    assert doubled("pooling_lengths", "None,512") == "None,1024"
