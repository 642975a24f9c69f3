"""Documents in, data folders out; imports neither fairseq nor torch.

`readers` streams documents, `prepare` makes a folder of them, and `folder` says where everything in such a folder lies.
"""
