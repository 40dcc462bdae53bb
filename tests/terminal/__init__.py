"""`clew chat` in tmux: real keys, a real terminal, and what stands on its screen."""
