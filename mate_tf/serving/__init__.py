"""Export, and loading of what was exported."""
