"""Figures, as ratios against what a user would run instead; each is a program of its own."""
