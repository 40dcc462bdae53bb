"""Models behind one small protocol (api.py). Each module is loaded by name when it is first used
(registry.py): the SDKs of providers take half a second to import."""
