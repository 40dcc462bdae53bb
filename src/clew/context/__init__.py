"""Building and rendering what is sent to a model: pure functions of what the store gives."""
