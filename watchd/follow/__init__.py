"""Where bytes come from: the exact ranges of a log, once, with the offset and generation of each.

Blocks go out, not lines: a frozen object for every line would cost more than SSH itself.
"""
