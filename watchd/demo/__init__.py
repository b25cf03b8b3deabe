"""The story that `watchd demo` tells: a host that is reached over SSH, a server on it that really dies, and a daemon.

All of it is real but its size: an SSH server of our own on the loopback, a program that is written into a folder and
run, and the same daemon that `watchd run` runs. Nothing of it outlives the story. `host.py` is the second door to
asyncssh, for the server's side.
"""
