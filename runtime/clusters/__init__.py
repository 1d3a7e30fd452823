"""Where jobs run: on this machine's processes, or on Spark. Same JobManager, same TaskManagers."""
