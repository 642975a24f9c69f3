"""How a training went: `training_log` reads what fairseq wrote of it, `runs` finds and names logs, `picture` draws.

Imports neither fairseq nor torch.
"""
