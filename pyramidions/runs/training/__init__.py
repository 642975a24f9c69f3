"""One command from documents to a model: prepares, trains, summarizes the test split, scores and exports.

It starts fairseq's commands and ours as processes, notes each finished step, and goes on where it was stopped.
"""
