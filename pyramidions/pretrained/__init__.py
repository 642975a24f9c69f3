"""Pretrained models of others as ours: BART, LED and PEGASUS."""
