"""A Table and a Question become token features."""
