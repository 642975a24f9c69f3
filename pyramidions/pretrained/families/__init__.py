"""Families of pretrained models, one kind per file; importing this package fills the registry."""

from pyramidions.pretrained.families import bart, bart_ls, pegasus_x, t5  # noqa: F401
from pyramidions.pretrained.families.family import FAMILIES as FAMILIES
from pyramidions.pretrained.families.family import Family as Family
from pyramidions.pretrained.families.family import Settings as Settings
from pyramidions.pretrained.families.family import Shape as Shape
from pyramidions.pretrained.families.family import ends_of as ends_of
from pyramidions.pretrained.families.family import shape_of as shape_of
