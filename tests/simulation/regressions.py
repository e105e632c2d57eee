"""Seeds that have found a fault, with a description of the fault.

If plans or draws change, a seed becomes another run. Then put the fault back, as mutations.py does, and look for a seed
that finds it. Or keep the old seed as one more run; its text then says "old dice".
"""

REGRESSIONS: tuple[tuple[int, str], ...] = (
    (9, "an answer of the scheduler itself got between the bytes of results for the same client"),
    (28, "as seed 9: the client could not read the message at all (old dice)"),
    (213, "a cancel that crossed a retryable result: that result ended the task, with attempts left"),
    (282, "as seed 213, for another client (old dice)"),
    (119, "a client that was stopped for longer than its timeout took its own stop for the silence of the scheduler"),
    (218, "as seed 119, for a client with waiting tasks (old dice)"),
    (
        119,
        "a task that ignores its stop, on a worker that joined again, and that nobody had asked for: its worker was "
        "never ended",
    ),
    (119, "a task that ran during a restart of the scheduler, and that no client submitted again, ran on for ever"),
    (23, "a repeated answer for a single task was taken for one of a map: the client's I/O thread ended"),
    (50, "tasks that a client had given up with their scheduler waited on that scheduler for ever"),
    (
        972,
        "the answer of a task with a time limit waited behind the next task: it timed out, though done (old dice)",
    ),
    (40, "a cancel that crossed a retryable result, without another fault (old dice)"),
    (125, "objects that filled their client's window left no credit for the tasks that read them: all waited for ever"),
    (
        125,
        "a task that could not read a file of its host, whose agent had just left, failed, though its input was there",
    ),
    (154, "as seed 125, for a host without space: the task was tried again there without end"),
    (759, "a task with inputs ran beside its copy on a worker that had joined again"),
    (1104, "an object that a client forgot while its connection broke was kept until the client left"),
    (1358, "files that an agent was told to remove while its connection broke stayed with it (old dice)"),
    (1358, "a row that had come in a graph was accepted twice when it came again alone (old dice)"),
    (3000470, "a graph's answered target, submitted again for its readers, waited on after these had failed"),
    (4018412, "a task that came again was taken for the earlier one, because both were a first attempt (old dice)"),
    (
        3002498,
        "the scheduler ended: a task that was being stopped, and whose worker joined again, waited for its inputs",
    ),
    (3005316, "as seed 3000470, after a client was given up"),
    (
        4008912,
        "the inputs of a graph's task were made again for a client that had been given up, and released too soon",
    ),
    (
        296,
        "a graph's target was cancelled: the scheduler had cancelled tasks that only readers of a lost result needed",
    ),
    (
        483,
        "rows that a client submitted again after losses used up its credit: the rest waited for ever; later, rows "
        "that waited behind an object with a lower id were taken for sent ones",
    ),
    (114, "files of results that an agent was told to remove while its connection broke stayed as long as the agent"),
    (4004595, "a client that had stayed away for its lease came back while its running tasks were being stopped"),
    (67, "inputs were made again for a kept result that could not be made again, and stayed until the client left"),
    (49, "a client waited for ever for the value of a kept result that was just being made again for a reader"),
    (
        1180,
        "a client gave up its scheduler and cancelled a task that made a kept result again; the next task with this id "
        "ended with the answer of that cancel (old dice)",
    ),
    (5539, "a task waited beside an idle worker, as enough others waited for its input on another host"),
    (43072, "an agent that had joined and left in one step was taken for a worker by the check of removed files"),
    (
        41000,
        "a target was cancelled whose row waited for credit: its inputs were sent before, and stayed at the scheduler",
    ),
    (20083, "as seed 5539, for a task that asks for resources"),
    (6000011, "a task waited for GPUs, and the only worker that could run it changed to another environment meanwhile"),
    (
        1237,
        "a client sent the bytes of a file that it had forgotten, as the scheduler had asked for them before: they "
        "were a new object, which stayed until the client left",
    ),
    (3000231, "as seed 1237: the check took it for an object that the client refers to"),
    (
        7839,
        "workers that were kept for a task with resources got tasks of a lower rank when it had begun, as those of a "
        "higher rank had been looked at before",
    ),
    (7785, "a reader of a high priority went before the batch that says that the result is kept, and failed"),
    (8039, "contents of an environment were lost with a connection, and its agent did not ask for them again"),
    (
        7100,
        "a result was lost with its host before its client was told that it is kept: its readers failed, as the client "
        "did not make it again",
    ),
    (101, "a worker was set aside for a task that it could run after a change of its environment, and never changed"),
    (
        50040,
        "after a restart of the scheduler, an agent joined behind its workers and was told to remove the file of a "
        "result that counted in the next moment, when the results before it had made its task ready",
    ),
    (
        5050026,
        "a client joined again, and told the scheduler nothing of a result whose value was a file of the client: the "
        "file stayed until the client left",
    ),
    (
        1405406,
        "an ended graph had not told the scheduler yet to forget its results when its client joined again, because "
        "other tasks of the client waited for credit: the results stayed until the client left",
    ),
    (
        1421486,
        "a task with resources waited for room on a host with room whose workers had other environments",
    ),
    (
        1425818,
        "after a join, a lost result was made again while the task that it reads waited for credit: it failed, "
        "although nothing was lost for good",
    ),
    (
        40075,
        "a task with resources that had to run alone was moved to another worker of its host, which had no room for it",
    ),
)
