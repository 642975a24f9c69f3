"""Pretrained models of others as ours: BART, LED, PEGASUS and BigBird-PEGASUS."""
