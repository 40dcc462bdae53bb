"""The store: the log and all records beside it. The only package that speaks SQL."""
