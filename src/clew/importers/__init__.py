"""Other tools' transcripts: found by content, read as a stream of records, landed in the log."""
