# The public names, for type checkers and for Python, which imports each where it is asked for.
from pyramidions.base.errors import UserError as UserError
from pyramidions.base.parts import load_parts as load_parts
from pyramidions.documents.as_one import as_one as as_one
from pyramidions.extract.extraction import Extraction as Extraction
from pyramidions.inference.batch_maps import ExtractorMap as ExtractorMap
from pyramidions.inference.batch_maps import SummarizerMap as SummarizerMap
from pyramidions.inference.decoding_options import SamplingOptions as SamplingOptions
from pyramidions.inference.explanation import Explanation as Explanation
from pyramidions.inference.explanation_page import ExplanationPage as ExplanationPage
from pyramidions.inference.explanation_page import html_page as html_page
from pyramidions.inference.extraction_page import ExtractionPage as ExtractionPage
from pyramidions.inference.extractor import Extractor as Extractor
from pyramidions.inference.learned_ranker import LearnedRanker as LearnedRanker
from pyramidions.inference.segmenter import SegmentedText as SegmentedText
from pyramidions.inference.segmenter import Segmenter as Segmenter
from pyramidions.inference.summarization_pipeline import pipeline as pipeline
from pyramidions.inference.summarizer import Summarizer as Summarizer
from pyramidions.inference.summary import Summary as Summary
from pyramidions.pretrained.exporting import export_model as export_model
from pyramidions.pretrained.saved_model import SavedExtractor as SavedExtractor
from pyramidions.pretrained.saved_model import SavedLanguageModel as SavedLanguageModel
from pyramidions.pretrained.saved_model import SavedModel as SavedModel
from pyramidions.pretrained.saved_model import load_extractor as load_extractor
from pyramidions.pretrained.saved_model import load_language_model as load_language_model
from pyramidions.pretrained.saved_model import load_model as load_model

__version__: str
