"""The questions, from broad to narrow: one file per rung, each a pure generator that yields questions and receives
replies. `climb` alone drives them against a host, within a budget, and records every step.
"""
