"""Files of other tools, made from a model conversation by Hypothesis."""
