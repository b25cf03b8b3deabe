"""Text to types: no host, no clock, no loop. A parser never raises; what it cannot read it leaves out."""
