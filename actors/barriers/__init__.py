"""Turns a task's input channels into one stream with checkpoints in it. Takes no snapshots and sends nothing.

Checkpoints that overtake barriers (`alignment_timeout_ms`): a barrier stands in line behind what is in flight, which
under back-pressure takes long. When the coordinator's patience is over, SwitchToUnaligned reaches the task:

1. `InputGate.overtake` ends the alignment. The task snapshots its operators at once and sends the barrier on. An
   InFlightLog begins with what the gate has read and not handed out.
2. `InputGate.read_ahead` logs what comes on the overtaken channels, up to their barriers, and keeps it to be processed
   later in its place.
3. When the log is complete, the snapshot is written in one piece and acknowledged with `SubtaskState.channels`. A newer
   barrier, a cancel marker or the end of a channel in a barrier's place gives it up; nothing that was read is lost.
4. On restore, `InputGate.restore` puts the logged batches in front of their channels.

Only the oldest pending checkpoint is switched; savepoints and final checkpoints never are. Why the gate absorbs what it
overtakes: docs/decisions/0009.
"""
