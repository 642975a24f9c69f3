from typing import Any

from lab.claims import CLAIMS, ORDERS


def test_the_claims_of_the_paper_come_out() -> None:
    ours = [round(claim.ours, 2) for claim in CLAIMS]
    savings, bound, decoder, others = ours[:3], ours[3], ours[4:6], ours[6:]
    assert savings == [16.0, 2.46, 16.0]
    assert bound == round(2 - 512 / 8192, 2)
    # Scores and mixes alone, and everything.
    assert decoder == [12.99, 3.99]
    assert others == [5.02, 0.79, 4608.0]


def test_scores_and_mixes_grow_as_table_1_says_but_for_hashing() -> None:
    assert len(ORDERS) == 21
    others = {growth.claim: round(growth.ours, 2) for growth in ORDERS if growth.paper != f"{growth.ours:g}x"}
    # Hashing costs n n d / m: it grows with the number of buckets, and falls with their size.
    assert others == {"LSH, l m h n d: n": 2.4, "LSH, l m h n d: m": 1.5}


def test_the_command_prints_both_tables(run: Any) -> None:
    result = run("claims")
    assert result.exit_code == 0, result.output
    titles = [line[:30].split("  ")[0] for line in result.stdout.splitlines()]
    assert "The paper claims" in titles and "Table 1: scores and mixes when" in titles
