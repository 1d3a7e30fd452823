"""The JobManager's side of checkpoints: who wants one, may it start, who has acknowledged, what becomes of it.

Snapshots are taken in `actors/tasks` and stored by `state/checkpoints`; files are written by `actors/job_manager`.

The end of a bounded job. A source that has run dry sends EndOfData. A task that has had it on all inputs calls `on_end`
along its chain, sends EndOfData on, and reports NotifyEndOfData; it stays RUNNING and takes part in checkpoints. When
all tasks have reported, the final checkpoint is triggered, whatever the interval, and repeated until one completes; its
NotifyCheckpointComplete(final=True) makes sinks commit and tasks finish. A snapshot taken after `on_end` carries
`data_ended`, so that a restore does not emit final results twice. A region that fails after the final checkpoint is
deployed with `finishing=True`: its tasks take no input, commit, and finish.

Four ways to end a job before its data does:

    cancel               data stays where it is         no last checkpoint
    stop                 sources end their data         FINAL checkpoint, repeated until it completes
    drain                the same                       the same, and it is a savepoint; the promise survives restarts
    stop with savepoint  goes on after a restore        STOP checkpoint; if it fails, the job goes on

For a stop with savepoint the sources get TriggerCheckpoint(stop=True): a source emits the barrier and is held until it
hears what became of the checkpoint. Both answers are repeated, because a held source that misses one would wait for
ever. Beside a pending stop nothing else is triggered, and nothing after the last checkpoint.
"""
