"""Seeds that have found something, with what it was.

A change of the plans or of the dice makes a seed another run: then look for one that finds it again with the fault put
back (mutations.py shows how), or leave the old one as one more; those say so.
"""

REGRESSIONS: tuple[tuple[int, str], ...] = (
    (21, "an answer of the scheduler's own got between the bytes of answers that were on their way to the same client"),
    (28, "the same: the client could not read the message at all"),
    (213, "a cancel that crossed a result worth another attempt: that result was the end, with attempts left"),
    (282, "the same, of another client"),
    (119, "a client that was stopped for longer than its timeout took that for the scheduler's silence"),
    (218, "the same, of a client with tasks that wait"),
    (
        119,
        "a task that ignores its stop, on a worker that joined again, and that nobody had asked for: its worker was "
        "never ended",
    ),
    (73, "what a worker ran when the scheduler was started anew, and no client asked for, ran on for ever (old dice)"),
    (866, "a repeated answer for a single task was taken for one of a map's: the client's thread ended (old dice)"),
    (961, "tasks that a client had given up with their scheduler waited there for ever (old dice)"),
    (972, "the answer of a task with a time limit waited behind the next task: it timed out, though done (old dice)"),
    (40, "a cancel that crossed a retryable result, without anything else going wrong (old dice)"),
)
