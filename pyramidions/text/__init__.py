"""Texts: `normalization` normalises them and splits sentences, `tokenizer` turns them into ids and back."""
