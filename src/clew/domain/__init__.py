"""Pure, frozen values and rules. Nothing here reads a store, a clock or a file."""
