"""Whether the weights of one config mean the same in another."""

from typing import Any

from tables import for_each

from pyramidions.models import PyramidionConfig
from pyramidions.models.config import config_as
from pyramidions.models.same_parts import changed_part


@for_each(
    ("before", "now", "changed"),
    [
        ({"self_attention": "full | lsh"}, {"self_attention": "full | lsh(num_hashes=2)"}, None),
        ({"self_attention": "full | lsh"}, {"self_attention": "lsh | full"}, "self_attention"),
        ({"self_attention": "full"}, {"self_attention": "full | full"}, None),
        ({"self_attention": "lsh(is_flat=True)"}, {"self_attention": "lsh"}, "self_attention"),
        ({"self_attention": "lsh(is_flat=False)"}, {"self_attention": "lsh"}, None),
        ({"recurrence": "sru(scaled=False)"}, {"recurrence": "sru"}, "recurrence"),
        ({"recurrence": "sru"}, {"recurrence": "sru(scaled=True)"}, None),
        ({"stack": "plain", "upsampling": None}, {"stack": "recomputing"}, None),
        ({"stack": "plain"}, {"stack": "reversible"}, "stack"),
        ({"pooling_lengths": "[None, 4]"}, {"pooling_lengths": "None,4"}, None),
        (
            {"memories": "1,last", "cross_attention": "full; full"},
            {"memories": "1,last", "cross_attention": "full"},
            None,
        ),
    ],
)
def test_kinds_of_parts_are_compared_with_options_that_weights_depend_on(
    before: dict[str, Any], now: dict[str, Any], changed: str | None
) -> None:
    assert changed_part(before, config_as(PyramidionConfig, now)) == changed
