"""The command `clew`. Each command is a module of its own, loaded when it is called for."""
