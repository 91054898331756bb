"""PointR: answers from tables whose cells link to passages (Eisenschlos et al., 2021, 4)."""
