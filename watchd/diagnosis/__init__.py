"""What a case means. Knowledge is data (`signatures/*.toml`), judgement an ordered list of small pure rules.

No host is asked and no engine is named here.
"""
