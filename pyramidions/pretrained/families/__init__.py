"""Families of pretrained models, one kind per file; importing this package fills the registry."""

from pyramidions.pretrained.families.bart import Bart as Bart
from pyramidions.pretrained.families.bart_ls import BartLs as BartLs
from pyramidions.pretrained.families.family import ACTIVATIONS as ACTIVATIONS
from pyramidions.pretrained.families.family import FAMILIES as FAMILIES
from pyramidions.pretrained.families.family import Family as Family
from pyramidions.pretrained.families.family import Settings as Settings
from pyramidions.pretrained.families.family import Shape as Shape
from pyramidions.pretrained.families.family import ends_of as ends_of
from pyramidions.pretrained.families.family import shape_of as shape_of
from pyramidions.pretrained.families.pegasus_x import PegasusX as PegasusX
from pyramidions.pretrained.families.t5 import T5 as T5
from pyramidions.pretrained.families.t5 import LongT5 as LongT5
