"""Seeds that have found something, with what it was.

A change of the plans or of the dice makes a seed another run: then put the fault back, as mutations.py does it, and
look for a seed that finds it again, or leave the old one as one more; those say so.
"""

REGRESSIONS: tuple[tuple[int, str], ...] = (
    (9, "an answer of the scheduler's own got between the bytes of answers that were on their way to the same client"),
    (28, "the same: the client could not read the message at all (old dice)"),
    (213, "a cancel that crossed a result worth another attempt: that result was the end, with attempts left"),
    (282, "the same, of another client (old dice)"),
    (119, "a client that was stopped for longer than its timeout took that for the scheduler's silence"),
    (218, "the same, of a client with tasks that wait (old dice)"),
    (
        119,
        "a task that ignores its stop, on a worker that joined again, and that nobody had asked for: its worker was "
        "never ended",
    ),
    (119, "what a worker ran when the scheduler was started anew, and no client asked for, ran on for ever"),
    (23, "a repeated answer for a single task was taken for one of a map's: the client's thread ended"),
    (50, "tasks that a client had given up with their scheduler waited there for ever"),
    (972, "the answer of a task with a time limit waited behind the next task: it timed out, though done (old dice)"),
    (40, "a cancel that crossed a retryable result, without anything else going wrong (old dice)"),
    (125, "objects that filled their client's window left no credit for the tasks that read them: all waited for ever"),
    (
        125,
        "a task that could not read a file of its host, whose agent had just left, failed, though its input was there",
    ),
    (154, "the same, of a host on which there is no space: it was tried again there without end"),
    (759, "a task that reads objects ran beside its copy at a worker that had joined again"),
    (1104, "what a client forgot while its connection broke was kept until it left"),
    (1358, "files of which an agent was told to let go while its connection broke stayed with it (old dice)"),
    (1358, "a row that had come among others that read objects was taken twice when it came again alone (old dice)"),
    (3000470, "a graph's answered target, submitted again for its readers, waited on when these had failed"),
    (4018412, "a task that came again was taken for the one before it, as both were a first attempt (old dice)"),
    (3002498, "the scheduler ended: a task to be stopped, whose worker joined again, waited for what it reads"),
    (3005316, "the same as 3000470, after a client was given up"),
    (4008912, "what a graph's task had read was made anew for a client that had been given up, and let go of too soon"),
    (296, "a graph's target was cancelled, as the scheduler had cancelled what only readers of a lost result needed"),
    (483, "what a client submitted again after losses used up its credit: the rest waited for ever"),
    (114, "files of results that an agent was told to remove while its connection broke stayed as long as the agent"),
    (4004595, "a client that had stayed away for its lease came while what it had running was being stopped"),
)
