"""How to reach a machine, and everything that may be asked of it.

`base.py` is the contract, `commands.py` the one place where a shell line is rendered; each other file is one way to
reach a machine. `ssh.py` and its `ssh_…` siblings are the only door to asyncssh. Nothing here knows what an answer
means.
"""
