"""What the page says of its tables: titles, notes and how to read them."""

from collections.abc import Callable

from lab.catalogue import LECTURE_TABLES, SYSTEM_TABLES
from lab.comparison import Line

#: Tables in the page's order.
TITLES = {
    "table2": "Table 2: shallow models",
    "table3": "Table 3: deep models",
    "table4": "Table 4: scorers",
    "table7": "Table 7: where to pool",
    "table8": "Table 8: sizes of blocks",
    "neighbours": "Parts of other systems in shallow models",
    "table10": "Table 10: seconds a batch",
    "figure4": "Figure 4: a training step by number of layers",
    "lecture_govreport": "GovReport: systems for long documents",
    "lecture_pubmed": "PubMed: systems for long documents",
    "lecture_arxiv": "arXiv: systems for long documents",
    "sparse_table5": "Sparse parts on arXiv: summaries (Jaszczur et al. 2021, table 5)",
    "sparse_table8": "Sparse parts in pretraining: missing spans (Jaszczur et al. 2021, table 8)",
}
_STARTS = (
    "**Different starts.** Published systems start from pretrained weights where the table names them, and most are of "
    "large size; ours start from nothing, and are of base size. A difference between a published figure and ours is "
    "therefore no difference between architectures: compare ours with ours."
)
_SPARSE_STARTS = (
    "**Other starts and sizes.** The published Terraformer has 800 million parameters and was pretrained on C4; ours "
    "have the base size, and their pretraining reads the documents of arXiv. Compare ours with ours."
)
_OTHER_TEXTS = (
    "Log-perplexity is in nats a token, on missing spans of held-out documents: ours of arXiv, the paper's of C4 with "
    "another vocabulary and models of 800 million parameters. The two cannot be compared; ours with ours can, if their "
    "passages are as long."
)
_SUMMARY_LEVEL = "“R-L” is the summary-level ROUGE-L, by the name of ROUGE-Lsum in our scores."
#: What the reader of a table must know if one of its rows is such.
NOTES: tuple[tuple[str, Callable[[Line], bool], str], ...] = (
    *((table, lambda line: not line.score_obstacle, _STARTS) for table in LECTURE_TABLES),
    *((table, lambda line: True, _SUMMARY_LEVEL) for table in SYSTEM_TABLES),
    ("sparse_table5", lambda line: not line.score_obstacle, _SPARSE_STARTS),
    ("sparse_table8", lambda line: True, _OTHER_TEXTS),
    (
        "figure4",
        lambda line: True,
        "× is the speed-up over the vanilla model with as many layers, timed in the same run. Other numbers of layers "
        "were timed in other runs, so their seconds are not compared. The paper states one number of its plot.",
    ),
    (
        "table4",
        lambda line: not line.score_obstacle,
        "The paper gives no intervals here, but calls a difference of 0.4 significant.",
    ),
    (
        "table7",
        lambda line: line.row.row == "21" and not line.time_obstacle,
        "Row 21: a training step takes 1.07 s in the paper's table 7 and 1.05 s in its table 10; 1.05 is used.",
    ),
    (
        "table10",
        lambda line: line.row.row == "11" and not line.time_obstacle,
        "Row 11: the paper says 0.87 s for 256 tokens, which cannot be right beside its 13.41 s for 512; it is left "
        "out.",
    ),
)
#: How to read the tables.
LEGEND = (
    "“R-1” and “R-2” are ROUGE in percent, with 95% intervals in brackets.",
    "“×” is a speed-up over the reference that is named with the table; above 1 is faster. Both models took turns in "
    "one run: it is the ratio of medians, with the lowest and highest ratio of two neighbouring turns in brackets.",
    "“train” is a training step, “decode” the longer of two decodings (512 tokens in the paper); table 10 has both.",
    "“2×8192 > 2048 → 512”: two encoder layers read 8192 representations, one reads 2048, and the decoder reads 512.",
    "“not run”: we have not measured it.",
)
#: And where a paper's figures stand in them.
LEGEND_OF_THE_PAPER = (
    "“▲” and “▼” mark where our ROUGE is above or below the paper's and the two intervals do not overlap. The paper's "
    "speed-ups are ratios of its seconds.",
    "“–”: the paper does not say. “tiny model” and “other data” replace a figure of the paper that ours cannot be "
    "compared with.",
)
