"""Reads documents and records from bytes of any kind: files, folders, JSON lines, tables, standard input."""
