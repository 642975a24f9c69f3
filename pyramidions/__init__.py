"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Importing the package registers models, tasks, criterions and scorers where fairseq is installed; `pyramidions.nn`
and `pyramidions.models` work without it.
"""

from importlib.util import find_spec

__version__ = "0.1.0"

if find_spec("fairseq") is not None:
    from pyramidions.criterions import pooled_cross_entropy as _criterion
    from pyramidions.models import pyramidion as _model
    from pyramidions.scoring import fairseq_scorer as _scorer
    from pyramidions.tasks import long_document_summarization as _task

    del _criterion, _model, _scorer, _task
