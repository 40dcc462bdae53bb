"""The commands of a chat, /new and its like: one module for each group, listed in registry.py."""
