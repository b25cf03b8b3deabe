"""The corrected launch command: what a check asks, which flags it reads, and the fewest edits that make it pass.

Source comes from a host and is hostile. It is parsed and followed by an interpreter of our own; nothing of it is ever
compiled, imported or run.
"""
