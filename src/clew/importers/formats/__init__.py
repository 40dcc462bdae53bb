"""One module a format, each with a `FORMAT` (see clew.importers.format)."""
