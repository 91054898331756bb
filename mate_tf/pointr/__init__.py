"""PointR: tables with passages, answered in two stages (MATE paper, section 4)."""
