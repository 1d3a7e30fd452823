"""What user code prints and logs in TaskManagers, on its way to the user's process; the watch on steps that block."""
