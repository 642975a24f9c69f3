"""Files and processes: whole or not at all, bounded, in parallel, with progress; knows nothing of documents."""
