"""outlets: the committed output of a job that is read while it runs: positions, cursors, branches, and the files.

At home: how positions and cursors are written and judged, the files of segments and their names. Not at home: when
something is committed (the sink decides, in `runtime/connectors/files`), and who waits for it (`actors/job_manager`).
"""
