"""What a job starts or restarts from: reading it, whether it fits the program, who gets what of it."""
