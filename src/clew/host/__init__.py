"""The host: what runs turns. See turn.py, which is one turn from top to bottom."""
