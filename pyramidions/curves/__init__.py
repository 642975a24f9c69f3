"""How a training went: `training_log` finds and reads what fairseq wrote of it, `picture` draws.

Imports neither fairseq nor torch.
"""
