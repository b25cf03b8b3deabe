"""One target: its events in, its incidents out.

Only composition lives here. What a line means is `detect`'s, what a host says is `hosts`', what it means is
`diagnosis`'.
"""
