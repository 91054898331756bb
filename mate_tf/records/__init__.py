"""Examples become TFRecords and come back."""
