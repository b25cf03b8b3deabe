"""What is particular to each server: banners, prefixes, work, fatal and request-level lines, process patterns.

No other room names an engine. `base.py` is the shape, one file per engine, `registry.py` the list.
"""
