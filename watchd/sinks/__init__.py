"""Who is told: one file per destination, `render` pure, every answer read by one table (`answers.py`)."""
