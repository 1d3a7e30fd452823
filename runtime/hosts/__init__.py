"""Processes that stand alone, on one host or several: a JobManager and TaskManagers that no parent forks, their
settings (understudy.yaml), logs and pid files, how ssh starts and stops them, and StandaloneCluster for their users.

How a TaskManager of one job runs is not at home here (`clusters`), nor who leads (`high_availability`).
"""
