"""Files, data frames and text become a Table."""
