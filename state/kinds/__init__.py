"""What a program declares, how such values are serialised, and whether stored ones fit. Holds no values."""
