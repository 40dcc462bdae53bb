"""clew demo: what clew does, shown in a scratch folder."""
