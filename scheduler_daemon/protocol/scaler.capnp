@0xb0f3b8f1a5c0d7e2;
# The one contract between scaler_scheduler, its clients, workers and host agents.
#
# Every ZeroMQ message is one `Message` in frame 0 (standard, unpacked Cap'n Proto stream framing) and, where the
# message says so, frames with large payloads behind it. PROTOCOL.md tells the flows, the order, the limits, the errors.
#
# What happens per task travels in columns: row i of every column is about the same task. A column is either as long as
# the batch or has one element, which then holds for every row (a "constant column"). `ids` is always of full length.
#
# Payloads of a batch: `payload` holds the payloads of all rows behind one another, `sizes` says where each ends. A row
# whose payload travels alone is listed in `large` (ascending row numbers); its size in `sizes` is 0, and frame 1 + k
# holds the payload of the row large[k].

const protocolVersion :UInt32 = 1;

struct Message {
  union {
    hello @0 :Hello;                      # any peer -> scheduler: who I am
    welcome @1 :Welcome;                  # scheduler -> peer: accepted
    refused @2 :Refused;                  # scheduler -> peer: not accepted, and why
    helloWanted @3 :Void;                 # scheduler -> peer: I do not know you (any more): say hello
    goodbye @4 :Goodbye;                  # any peer -> scheduler, scheduler -> any peer: I am leaving on purpose
    heartbeat @5 :Heartbeat;              # any peer -> scheduler: renews the lease
    heartbeatEcho @6 :HeartbeatEcho;      # scheduler -> peer: the answer to one heartbeat
    function @7 :Function;                # client -> scheduler -> worker; frame 1: its bytes
    forgetFunctions @8 :ForgetFunctions;  # client -> scheduler -> worker: these numbers are free
    submit @9 :Submit;                    # client -> scheduler; large payloads
    dispatch @10 :Dispatch;               # scheduler -> worker; large payloads
    results @11 :Results;                 # worker -> scheduler; large payloads
    resolved @12 :Resolved;               # scheduler -> client; large payloads
    started @13 :Started;                 # worker -> scheduler -> client: these tasks run now
    cancel @14 :Cancel;                   # client -> scheduler: the user's wish
    cancelRefused @15 :CancelRefused;     # scheduler -> client: these are past cancelling
    workerDied @16 :WorkerDied;           # host agent -> scheduler: one of my workers ended
    error @17 :Error;                     # scheduler -> peer: a message of yours was wrong and dropped
    snapshot @18 :Snapshot;               # scheduler -> whoever subscribed to the monitor address
    retract @19 :Tasks;                   # scheduler -> worker: give these back unless they have begun
    retracted @20 :Retracted;             # worker -> scheduler: the answer, one row a task
    stop @21 :Tasks;                      # scheduler -> worker: interrupt these if they run or are suspended
    suspended @22 :Tasks;                 # nested client -> scheduler: these wait for their children, their slot is free
    resumed @23 :Tasks;                   # nested client -> scheduler: these go on
    endWorker @24 :EndWorker;             # scheduler -> host agent: end this worker if it still runs that task
    credit @25 :Credit;                   # scheduler -> client: how much it may submit
    received @26 :Received;               # client -> scheduler: how much of its results it has taken
    object @27 :Object;                   # client -> scheduler -> worker or host agent -> scheduler; frames: its bytes
    forgetObjects @28 :ForgetObjects;     # likewise; downwards: nobody needs these any more; an agent's: these are not here
    shutdown @29 :Void;                   # client -> scheduler -> host agent: end yourself and your workers
    output @30 :Output;                   # worker -> scheduler -> client: what tasks print
    fetchObjects @31 :FetchObjects;       # scheduler -> host agent: send what is in these files of your host
    history @32 :History;                 # scheduler -> whoever subscribed to it at the monitor address
    graphs @33 :Graphs;                   # likewise
    notice @34 :Notice;                   # scheduler -> client: something that its user should know
  }
}

enum Role { client @0; worker @1; agent @2; }

struct Hello {
  protocolVersion @0 :UInt32;
  role @1 :Role;
  incarnation @2 :UInt64;     # drawn anew at every start of the peer; below 2^63
  agent @3 :UInt64;           # a worker's: the incarnation of its host agent, 0 without one
  language @4 :Text;          # for people: "python"
  languageVersion @5 :Text;   # "3.11.7"
  version @6 :Text;           # of the peer's own library
  host @7 :Text;
  pid @8 :UInt32;
  name @9 :Text;              # for people; need not be unique
  worker @10 :UInt64;         # a nested client's: the incarnation of the worker whose tasks it serves; 0 for others
  capabilities @11 :List(Capability);  # a worker's: what it has
  running @12 :Tasks;         # of a worker that joins again: tasks that it runs or has suspended; of an agent: tasks whose results
                              # are in its files
  kinds @13 :List(Text);      # a worker's: the kinds of functions that it can run; empty: all
  scheduler @14 :UInt64;      # the incarnation of the scheduler that has welcomed this peer last; 0: none did
}

struct Capability {
  name @0 :Text;              # "gpu", "linux"
  amount @1 :UInt32;          # at least 1
}

struct Welcome {
  protocolVersion @0 :UInt32;
  version @1 :Text;                 # of the scheduler
  incarnation @2 :UInt64;           # the scheduler's restart epoch; another one: it has forgotten everything
  leaseMilliseconds @3 :UInt64;     # a peer silent for longer is given up
  credit @4 :UInt64;                # a client's: the first `credit`; the count begins anew with every welcome
  resultWindow @5 :UInt64;          # a client's: say `received` at least once in so many bytes of results; 0: need not
  messageSizeLimit @6 :UInt64;      # who sends a longer frame is cut off: do not; 0: not told
}

enum RefusedReason { protocolVersion @0; malformedHello @1; notAuthorized @2; }

struct Refused {
  reason @0 :RefusedReason;
  text @1 :Text;
  protocolVersion @2 :UInt32;       # the scheduler's
  version @3 :Text;
}

struct Goodbye { reason @0 :Text; }

struct Heartbeat {
  sequence @0 :UInt64;              # comes back in the echo
  residentBytes @1 :UInt64;         # of the sending process
  cpuMilliseconds @2 :UInt64;       # user and system time since the process started
  workers @3 :List(WorkerHeartbeat);  # a host agent's: each living worker, whose lease this renews as well
  lagMicroseconds @4 :UInt64;       # from the last heartbeat to its echo; 0: there was none yet
  isRetiring @5 :Bool;              # a host agent's: its workers are to end what they have begun, and get nothing new
}

struct WorkerHeartbeat {
  incarnation @0 :UInt64;
  residentBytes @1 :UInt64;
  cpuMilliseconds @2 :UInt64;
}

struct HeartbeatEcho {
  sequence @0 :UInt64;
  isDrained @1 :Bool;               # to a retiring agent: none of its workers holds a task any more
}

struct Function {
  number @0 :UInt32;                # the sender's; a worker is told the scheduler's own number
  name @1 :Text;                    # for people: logs, errors, the monitor
  kind @2 :Text;                    # what can run it: "cloudpickle 3.11", "named json price"
}

struct ForgetFunctions { numbers @0 :List(UInt32); }

struct Object {
  client @0 :UInt64;                # whose it is; from a client: 0
  id @1 :UInt64;                    # of the client's one counter of tasks and objects
  name @2 :Text;                    # for people
}

struct ForgetObjects {
  clients @0 :List(UInt64);         # from a client: empty
  ids @1 :List(UInt64);
}

struct FetchObjects {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
}

struct Submit {
  ids @0 :List(UInt64);             # the client's own counter, below 2^63, ascending within a batch
  functions @1 :List(UInt32);       # the client's function numbers
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
  options @5 :Options;              # of every row; null: none but the defaults
  inputs @6 :List(UInt64);          # objects that rows read, all rows' behind one another: ids of this client
  inputCounts @7 :List(UInt32);     # how many of these each row has; empty: none has any
  keep @8 :List(UInt8);             # Keep's ordinals; empty: no result is kept
}

enum Keep {
  no @0;                            # the result goes to the client
  yes @1;                           # it becomes an object with the row's id; the client gets outcome kept, no payload
  both @2;                          # it becomes an object, and goes to the client
}

struct Options {
  priority @0 :Int32;               # higher goes first
  depth @1 :UInt32;                 # tasks that wait for this one and for one another: 0 outside tasks; deeper goes first
  retries @2 :Int32 = -1;           # further attempts when the worker dies or the outcome is retryable; -1: the scheduler's
  timeoutMilliseconds @3 :UInt64;   # of run time; 0: none
  profiling @4 :Bool;               # cpuTimes and peaks are wanted with the result
  name @5 :Text;                    # for people, in place of the function's; empty: the function's
  capabilities @6 :List(Capability);  # what the worker must have, at least
  streamOutput @7 :Bool;            # what the task prints is wanted, in `output`
  graph @8 :UInt64;                 # the client's number of the graph that the rows belong to, below 2^63; 0: they belong to none
  keys @9 :Text;                    # for people: the keys of the graph whose values are wanted; at most 200 characters are kept
}

struct Dispatch {
  clients @0 :List(UInt64);         # incarnations of clients; a task is named by (client, id)
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);        # 1 for the first; comes back with the result
  functions @3 :List(UInt32);       # the scheduler's function numbers
  sizes @4 :List(UInt32);
  large @5 :List(UInt32);
  payload @6 :Data;
  flags @7 :List(UInt8);            # bit 0: profile it; 1: say `started` as it begins; 2: send its `output`; 3: its result is
                                    # kept, and where it is large may be `stored`. Empty: no row has any
  depths @8 :List(UInt32);          # its Options' depth and priority, for tasks that it submits; empty: all 0
  priorities @9 :List(UInt32);      # as two's complement
  inputs @10 :List(UInt64);         # as in Submit; ids of the row's client
  inputCounts @11 :List(UInt32);
  shared @12 :List(UInt8);          # an element an input. 0: came in an Object message before; 1: a file of the host agent, or
                                    # will be in a moment; 2: a file that a worker of the host has made
  inlined @13 :List(UInt32);        # likewise. n > 0: its n - 1 bytes are in the row's payload, behind the arguments; empty: all 0
  names @14 :Data;                  # UTF-8: names given to rows by their Options, all rows' behind one another
  nameSizes @15 :List(UInt32);      # bytes of each; 0: it has its function's. Empty: all 0
}

enum Outcome {
  value @0;            # payload: the serialized return value
  exception @1;        # payload: the serialized exception, remote traceback attached
  functionFailed @2;   # payload: a serialized exception; the function could not be deserialized on the worker
  resultFailed @3;     # payload: UTF-8 text; the result or exception could not be serialized on the worker
  retryable @4;        # payload: as of exception; one that the task is to be tried again on. Towards a client: never
  workerDied @5;       # payload: UTF-8 text, the attempts' history
  cancelled @6;        # no payload
  timedOut @7;         # payload: UTF-8 text
  kept @8;             # no payload: the result is an object now
  inputLost @9;        # payload: UTF-8 text; an object that the row reads is not there
  stored @10;          # payload: its size, 8 bytes, little-endian; the result is a file of the host. Towards a client: never
}

struct Results {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
  outcomes @3 :List(UInt8);         # Outcome's ordinals
  durations @4 :List(UInt64);       # nanoseconds, arguments read to result written
  sizes @5 :List(UInt32);
  large @6 :List(UInt32);
  payload @7 :Data;
  cpuTimes @8 :List(UInt64);        # nanoseconds of the process while the row ran; empty: no row is profiled
  peaks @9 :List(UInt64);           # bytes, the largest resident size seen; empty like cpuTimes, 0 in a row: not profiled
  errors @10 :Data;                 # UTF-8: one line for each failed row that says why it failed, concatenated
  errorSizes @11 :List(UInt32);     # bytes of each; 0: none. Empty: all 0
  tracebacks @12 :Data;             # UTF-8: the tracebacks of failed rows, concatenated; the scheduler keeps the last 4096 bytes of each
  tracebackSizes @13 :List(UInt32); # bytes of each; 0: none. Empty: all 0
}

struct Resolved {
  ids @0 :List(UInt64);
  outcomes @1 :List(UInt8);
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
  durations @5 :List(UInt64);       # these three as in Results; empty: no row is profiled
  cpuTimes @6 :List(UInt64);
  peaks @7 :List(UInt64);
}

struct Started {
  clients @0 :List(UInt64);         # towards a client: empty
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);        # towards a client: empty
}

struct Tasks {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
}

struct Output {
  clients @0 :List(UInt64);         # towards a client: empty
  ids @1 :List(UInt64);
  streams @2 :List(UInt8);          # 0: standard output; 1: standard error
  labels @3 :List(UInt32);          # so many bytes at the row's begin say, for people, which host, process and task
  sizes @4 :List(UInt32);           # with the label
  text @5 :Data;                    # UTF-8: each row's label and lines, all rows' behind one another
  dropped @6 :List(UInt64);         # towards a client, one element: so many bytes were dropped before this; empty: none
}

struct Retracted {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
  given @3 :List(UInt8);            # 1: it never began here and never will; 0: it runs, is suspended, or is done
}

struct EndWorker {
  incarnation @0 :UInt64;           # of the worker
  client @1 :UInt64;                # the task that it must be running for its process to be ended
  id @2 :UInt64;
  attempt @3 :UInt32;
  reason @4 :Text;                  # "cancelled", "time limit of 2 s": for the log, and part of WorkerDied's cause
}

struct Credit { bytes @0 :UInt64; } # submitted since the last welcome, in all; a task counts its payload and 128

struct Received { bytes @0 :UInt64; } # of results' payloads and output since the last welcome, in all

struct Cancel {
  ids @0 :List(UInt64);
  force @1 :List(UInt8);            # one element 1: stop what runs. Empty: what runs is refused
}

struct CancelRefused { ids @0 :List(UInt64); }

struct WorkerDied {
  incarnation @0 :UInt64;
  pid @1 :UInt32;
  cause @2 :Text;                   # "signal 9 (SIGKILL)", "exit code 1"
  peakBytes @3 :UInt64;             # the largest resident size the process had; 0: not known
  client @4 :UInt64;                # what it was running, where `attempt` is not 0
  id @5 :UInt64;
  attempt @6 :UInt32;
}

struct Error {
  text @0 :Text;
  tasks @1 :List(UInt64);           # by their ids those of a submit that are not taken; the rest of it is
}

struct Notice { text @0 :Text; }

struct Snapshot {
  protocolVersion @0 :UInt32;       # of another one than the reader's: nothing but this and the next three is to be read
  version @1 :Text;
  incarnation @2 :UInt64;
  uptimeMilliseconds @3 :UInt64;
  address @4 :Text;
  waiting @5 :UInt64;               # tasks that no worker holds yet
  dispatched @6 :UInt64;            # tasks that a worker holds
  resolved @7 :UInt64;              # since the start
  clients @8 :UInt32;
  workers @9 :UInt32;
  agents @10 :UInt32;
  received @11 :List(Counter);      # messages by type
  sent @12 :List(Counter);
  dropped @13 :List(Counter);       # by reason
  sequence @14 :UInt64;             # of this scheduler's snapshots, from 1
  unixMilliseconds @15 :UInt64;     # the time by its clock
  blocked @16 :UInt64;              # tasks that read what is not there yet
  running @17 :UInt64;              # of `dispatched`: known to run
  suspended @18 :UInt64;            # of `dispatched`: wait for tasks of their own
  outcomes @19 :List(UInt64);       # of `resolved`: how many ended so, by Outcome's ordinals
  functions @20 :UInt32;            # there may be more than have a row below; and so of objects
  objects @21 :UInt64;
  process @22 :SchedulerProcess;
  texts @23 :Texts;
  workerColumns @24 :WorkerColumns; # a row a worker; and so on
  agentColumns @25 :AgentColumns;
  clientColumns @26 :ClientColumns;
  functionColumns @27 :FunctionColumns;
  objectColumns @28 :ObjectColumns;
  deaths @29 :List(Counter);        # of workers, by cause: "signal 9", "exit 1", "memory limit", "lease"
  retries @30 :UInt64;              # tasks given out again after an attempt that failed
  dispatchLatencies @31 :List(UInt64);  # element k: dispatches of tasks that had waited less than 2^k microseconds, and not
                                    # less than 2^(k - 1): since their batch came, what they read was there, or they came back
  dispatchLatencyMicroseconds @32 :UInt64;  # that these have waited in all
  waitingBytes @33 :UInt64;         # payload of open tasks that the scheduler keeps
  objectBytes @34 :UInt64;          # of objects that it keeps, all clients' together
  memoryLimitBytes @35 :UInt64;     # as it was configured
  unschedulable @36 :UInt64;             # of the waiting tasks those that none of the workers there are could run
}

struct Texts {                      # what the columns below call a text is its number here, from 0
  text @0 :Data;                    # UTF-8: all texts, behind one another
  sizes @1 :List(UInt32);           # bytes of each
}

struct SchedulerProcess {
  interpreter @0 :Text;             # "PyPy 7.3.11 (Python 3.9.16)"
  host @1 :Text;
  pid @2 :UInt32;
  residentBytes @3 :UInt64;         # 0: not known
  cpuMilliseconds @4 :UInt64;       # user and system time since it started
  loopTurns @5 :UInt64;             # since the start: turns of its loop that had something to do
  loopMicroseconds @6 :UInt64;      # spent in them
  loopDurations @7 :List(UInt64);   # element k: turns that took less than 2^k microseconds, and not less than 2^(k - 1)
  monitorMicroseconds @8 :UInt64;   # processor time spent on what is published, since the start
}

struct WorkerColumns {
  incarnations @0 :List(UInt64);
  agents @1 :List(UInt64);          # of their host agents; 0: has none
  names @2 :List(UInt32);           # texts
  hosts @3 :List(UInt32);           # texts
  pids @4 :List(UInt32);
  languages @5 :List(UInt32);       # texts: "python 3.11.7"
  versions @6 :List(UInt32);        # texts
  capabilities @7 :List(UInt32);    # texts: "gpu=2 linux=1"
  states @8 :List(UInt8);           # bit 0: its agent is here; 1: it holds a task; 2: it has run one for a second; 3: it was asked to
                                    # give queued tasks back, and does not answer; 4: it gets nothing new, its agent retires
  residentBytes @9 :List(UInt64);   # these two as its agent's heartbeat said last; 0: not known
  cpuMilliseconds @10 :List(UInt64);
  free @11 :List(UInt32);           # tasks that it may be sent
  held @12 :List(UInt32);           # tasks that it has: queued, running, suspended
  running @13 :List(UInt32);        # of these, known to run
  suspended @14 :List(UInt32);
  sent @15 :List(UInt64);           # tasks that it was sent since it joined
  done @16 :List(UInt64);           # and results of it that somebody waited for
  clients @17 :List(UInt64);        # what it is known to run: this task, under this name, for so long
  ids @18 :List(UInt64);
  attempts @19 :List(UInt32);       # 0: it is not known to run any
  tasks @20 :List(UInt32);          # texts
  runMilliseconds @21 :List(UInt64);
}

struct AgentColumns {
  incarnations @0 :List(UInt64);
  names @1 :List(UInt32);           # texts
  hosts @2 :List(UInt32);           # texts
  pids @3 :List(UInt32);
  languages @4 :List(UInt32);       # texts
  versions @5 :List(UInt32);        # texts
  residentBytes @6 :List(UInt64);
  cpuMilliseconds @7 :List(UInt64);
  lagMicroseconds @8 :List(UInt64); # from a heartbeat to its echo, as the agent has measured it
  lastHeartbeatMilliseconds @9 :List(UInt64);  # uptime when its last heartbeat came, which has brought all figures of its host
}

struct ClientColumns {
  incarnations @0 :List(UInt64);
  names @1 :List(UInt32);           # texts
  workers @2 :List(UInt64);         # a nested client's: the worker that it lives in; 0 for others
  waiting @3 :List(UInt64);         # tasks that wait for a worker
  others @4 :List(UInt64);          # its other open tasks: workers hold them, or they are blocked
  objects @5 :List(UInt64);
  objectBytes @6 :List(UInt64);     # of those that it has sent, with 128 for each
  done @7 :List(UInt64);            # tasks that it was sent an answer to
}

struct FunctionColumns {
  numbers @0 :List(UInt32);         # the scheduler's
  names @1 :List(UInt32);           # texts
  tasks @2 :List(UInt64);           # that are open
  done @3 :List(UInt64);            # results since it came, and those of them whose outcome was no value
  failed @4 :List(UInt64);
  runNanoseconds @5 :List(UInt64);  # that these have taken in all
  bytes @6 :List(UInt64);
  clients @7 :List(UInt32);         # that may submit tasks of it
  given @8 :List(UInt32);           # texts: names that Options have given to tasks of it lately
}

struct ObjectColumns {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  names @2 :List(UInt32);           # texts
  bytes @3 :List(UInt64);
  tasks @4 :List(UInt64);           # that read it and are not over
  states @5 :List(UInt8);           # 0: a task's result, not there yet; 1: here; 2: on a host
}

struct Counter {
  name @0 :Text;
  count @1 :UInt64;
}

enum HistoryKind {
  submitted @0;        # by its client; no worker, attempt 0
  dispatched @1;
  started @2;          # it is known to run
  ended @3;
  returned @4;         # it has left this worker without an end: lost, taken back, or to be tried again
  reattached @5;          # this worker, which has joined again, has it since before: most often since the scheduler's restart
}

struct History {
  incarnation @0 :List(UInt64);     # one element: the scheduler's
  first @1 :List(UInt64);           # one element: the number of the first row, counted from 0 since the scheduler's start
  kinds @2 :List(UInt8);            # HistoryKind's ordinals
  times @3 :List(UInt64);           # microseconds of its uptime
  clients @4 :List(UInt64);
  ids @5 :List(UInt64);
  attempts @6 :List(UInt32);
  workers @7 :List(UInt64);         # 0: none has to do with it
  names @8 :List(UInt32);           # the task's own, or else its function's: numbers of the texts below
  outcomes @9 :List(UInt8);         # of ended: Outcome's ordinals, as its worker has said, or the scheduler where there is none; of
                                    # returned: retryable, workerDied or inputLost, and value where it was taken back
  durations @10 :List(UInt64);      # nanoseconds; of ended and returned, as in Results
  text @11 :Data;                   # UTF-8: all texts, behind one another
  sizes @12 :List(UInt32);          # bytes of each
  errors @13 :List(UInt32);         # of ended or returned without a value: one line that says of what; texts. Empty: of none
  functions @14 :List(UInt32);      # the function's name; texts. Empty: all as in names
  tracebacks @15 :List(UInt32);     # in the answer about one task: the traceback of a failed attempt; texts. Empty: no row has one
}

enum GraphState {
  blocked @0;          # what it reads is not there yet
  waiting @1;          # for a worker
  running @2;          # a worker has it
  done @3;             # its result is there, and is read by others or kept
  failed @4;
}

struct Graphs {
  incarnation @0 :List(UInt64);     # one element: the scheduler's
  total @1 :List(UInt64);           # one element: how many nodes there are, those without a row too
  clients @2 :List(UInt64);
  ids @3 :List(UInt64);             # of nodes: the tasks', and those of the objects that these read
  names @4 :List(UInt32);           # numbers of the texts below
  states @5 :List(UInt8);           # GraphState's ordinals
  inputs @6 :List(UInt64);          # ids of what the rows read, all rows' behind one another
  inputCounts @7 :List(UInt32);     # of each row; empty: all 0
  text @8 :Data;                    # UTF-8: all texts, behind one another
  sizes @9 :List(UInt32);           # bytes of each
  graphs @10 :List(UInt64);         # the graph's number, as in Options; 0: the row belongs to none
  keys @11 :List(UInt32);           # the keys of the graph, as in Options; texts
  submitMilliseconds @12 :List(UInt64);          # when the row was submitted, milliseconds of the scheduler's uptime; 0: not known
}
