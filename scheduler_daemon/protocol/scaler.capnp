@0xb0f3b8f1a5c0d7e2;
# The messages between scaler_scheduler and its clients, workers, host agents and monitors.
#
# A ZeroMQ message has one `Message` in frame 0, in the standard, unpacked stream framing of Cap'n Proto. Some messages
# have further frames with large payloads. PROTOCOL.md describes the flows, the order, the limits and the errors.
#
# A batch describes many tasks in columns: row i of every column is about the same task. A column has one element per
# row, or a single element that holds for every row (a "constant column"). `ids` always has one element per row.
#
# Payloads of a batch: `payload` is the concatenation of the rows' payloads, and `sizes` has the bytes of each. A large
# payload travels in a frame of its own: `large` lists these rows (ascending row numbers), their size in `sizes` is 0,
# and frame 1 + k has the payload of row large[k].

const protocolVersion :UInt32 = 1;

struct Message {
  union {
    hello @0 :Hello;                      # any peer -> scheduler: introduces the peer
    welcome @1 :Welcome;                  # scheduler -> peer: the hello is accepted
    refused @2 :Refused;                  # scheduler -> peer: the hello is refused, and why
    helloWanted @3 :Void;                 # scheduler -> peer: the peer is unknown and must send a hello
    goodbye @4 :Goodbye;                  # any peer -> scheduler, scheduler -> any peer: the sender leaves
    heartbeat @5 :Heartbeat;              # any peer -> scheduler: renews the lease
    heartbeatEcho @6 :HeartbeatEcho;      # scheduler -> peer: answers one heartbeat
    function @7 :Function;                # client -> scheduler -> worker; frame 1: the function's bytes
    forgetFunctions @8 :ForgetFunctions;  # client -> scheduler -> worker: the receiver may drop these functions
    submit @9 :Submit;                    # client -> scheduler: new tasks; large payloads
    dispatch @10 :Dispatch;               # scheduler -> worker: tasks to run; large payloads
    results @11 :Results;                 # worker -> scheduler: ended tasks; large payloads
    resolved @12 :Resolved;               # scheduler -> client: the answers to tasks; large payloads
    started @13 :Started;                 # worker -> scheduler -> client: these tasks have begun
    cancel @14 :Cancel;                   # client -> scheduler: cancel these tasks
    cancelRefused @15 :CancelRefused;     # scheduler -> client: these tasks run and are not cancelled
    workerDied @16 :WorkerDied;           # host agent -> scheduler: a worker of this host has ended
    error @17 :Error;                     # scheduler -> peer: a message of the peer was wrong and was dropped
    snapshot @18 :Snapshot;               # scheduler -> subscribers of its monitor address
    retract @19 :Tasks;                   # scheduler -> worker: return these tasks, unless they have begun
    retracted @20 :Retracted;             # worker -> scheduler: answers retract, one row per task
    stop @21 :Tasks;                      # scheduler -> worker: interrupt these tasks if they run or are suspended
    suspended @22 :Tasks;                 # nested client -> scheduler: these tasks wait for their children; their slots are free
    resumed @23 :Tasks;                   # nested client -> scheduler: these tasks run again
    endWorker @24 :EndWorker;             # scheduler -> host agent: end this worker if it still runs this task
    credit @25 :Credit;                   # scheduler -> client: how many bytes it may submit
    received @26 :Received;               # client -> scheduler: acknowledges results and output
    object @27 :Object;                   # client -> scheduler -> worker, or host agent -> scheduler -> client; further frames: its bytes
    forgetObjects @28 :ForgetObjects;     # same directions: these objects are not needed any more; from an agent, or to a client: the
                                        # sender does not have these
    shutdown @29 :Void;                   # client -> scheduler -> host agent: end, with all workers
    output @30 :Output;                   # worker -> scheduler -> client: what tasks print
    fetchObjects @31 :FetchObjects;       # scheduler -> host agent: send the contents of these files of the host; scheduler -> client:
                                        # send these results of tasks as objects; client -> scheduler: send these kept results
    history @32 :History;                 # scheduler -> subscribers of its monitor address: what happened to tasks
    graphs @33 :Graphs;                   # scheduler -> subscribers of its monitor address: nodes of graphs
    notice @34 :Notice;                   # scheduler -> client: a text for the client's user
    transferObjects @35 :TransferObjects; # scheduler -> host agent: get these object files from another host
    transferred @36 :Transferred;         # host agent -> scheduler: answers transferObjects
    readObject @37 :ReadObject;           # host agent -> data address of another: send a part of this object file
    objectChunk @38 :ObjectChunk;         # data address -> host agent: answers readObject; frame 1: the bytes
    noObject @39 :NoObject;               # data address -> host agent: answers readObject: there is no such file
    objects @40 :Objects;                 # client -> scheduler: several objects of one frame each; large payloads
    environment @41 :Environment;         # client -> scheduler: tasks may name it; scheduler -> host agent: prepare it; frame 1: its manifest
    contentsWanted @42 :ContentsWanted;   # scheduler -> client, host agent -> scheduler: send these contents
    contents @43 :Contents;               # client -> scheduler -> host agent: further frames: contents that were asked for
    environmentReady @44 :EnvironmentReady;  # host agent -> scheduler: answers `environment`
    changeWorker @45 :ChangeWorker;       # scheduler -> host agent: replace this worker, start one beside it, or end it
    gangMember @46 :GangMember;           # scheduler -> worker: the task of this name, which follows, is a member of a gang
    exchange @47 :Exchange;               # worker -> scheduler: a member's value for the others; scheduler -> worker: the values of all
    heldResults @48 :HeldResults;         # client -> scheduler: the kept results that it refers to, and that hosts have
  }
}

enum Role { client @0; worker @1; agent @2; }

struct Hello {
  protocolVersion @0 :UInt32;
  role @1 :Role;
  incarnation @2 :UInt64;     # a random number, new at every start of the peer; below 2^63
  agent @3 :UInt64;           # of a worker: the incarnation of its host agent; 0: it has none
  language @4 :Text;          # for display: "python"
  languageVersion @5 :Text;   # "3.11.7"
  version @6 :Text;           # the version of the peer's library
  host @7 :Text;
  pid @8 :UInt32;
  name @9 :Text;              # for display; need not be unique
  worker @10 :UInt64;         # of a nested client: the incarnation of the worker whose tasks it serves; else 0
  capabilities @11 :List(Capability);  # of a worker: the resources that it offers
  running @12 :Tasks;         # of a worker that joins again: the tasks that it runs or has suspended; of an agent: the tasks whose
                              # results are in its files
  kinds @13 :List(Text);      # of a worker: the kinds of functions that it can run; empty: all
  scheduler @14 :UInt64;      # the incarnation of the scheduler that accepted this peer last; 0: no scheduler has
  data @15 :DataAddress;      # of an agent: where other agents get its object files; null: nowhere
  takesFollowers @16 :Bool;   # of a worker: it takes rows that read results of rows before them (`inputSources` 3)
  account @17 :Text;          # of a client: the user on its host; without keys, the clients of one user and host share the workers as one
  packages @18 :Text;         # of an agent: what its interpreter has installed, a line "name version" for each; at most 32,768 characters
  resources @19 :List(HostResource);   # of an agent: the counted resources of its host
  slots @20 :UInt32;          # of an agent: the number of workers that it keeps; 0: it does not say
  bookings @21 :List(Text);   # of a worker: the booking of each task in `running`, as in Dispatch; "": it has none. Empty: none has
  environment @22 :Text;      # of a worker: the name of its environment; empty: it has none
  environments @23 :UInt8;    # of an agent: the highest `level` of the environments that it prepares
  platform @24 :Text;         # of an agent: the platform of its host, "linux-x86_64-cp311"
  finished @25 :UInt32;       # of a worker that joins again: how many tasks at the end of `running` have ended; their results follow the welcome
}

struct HostResource {
  name @0 :Text;              # "gpu", "memory"; "cpus": the cpus that its workers stand for, if these are not as many as workers
  amount @1 :UInt64;          # thousandths of a unit
  hasIds @2 :Bool;            # the units have the ids 0 to n - 1, and a task is told which it has
}

struct Environment {
  name @0 :Text;              # the SHA-256 of the manifest, 64 hex digits
  contents @1 :List(Text);    # the SHA-256 of each content that the manifest names, 64 hex digits, each once
  bytes @2 :UInt64;           # the size of these contents in all
  level @3 :UInt8;            # what it asks of a host. 1: modules alone; 2: locked packages, too; 3: packages that run code when they
                              # are installed
  platform @4 :Text;          # it works on hosts of this platform alone; empty: on all
}

struct ContentsWanted { names @0 :List(Text); }  # as in `contents` of Environment

struct Contents { count @0 :UInt32; } # how many frames follow, each with one content

struct EnvironmentReady {
  name @0 :Text;
  error @1 :Text;             # why its workers cannot start; empty: they can
}

struct ChangeWorker {
  worker @0 :UInt64;          # its incarnation
  environment @1 :Text;       # the environment of the worker that takes its place; empty: none
  mode @2 :UInt8;             # 0: it ends, and another one takes its place; 1: another one starts beside it, because it has
                              # suspended tasks; 2: it ends, and none takes its place: the host has more workers than slots
}

struct DataAddress {
  address @0 :Text;           # "tcp://10.0.0.7:40123"; empty: none
  key @1 :Text;               # the CURVE public key of this address, 64 hex digits; empty: the connection is not encrypted
  ticket @2 :Text;            # a random secret: only an agent that knows it gets files
}

struct Capability {
  name @0 :Text;              # "gpu", "linux"
  amount @1 :UInt32;          # at least 1
}

struct Welcome {
  protocolVersion @0 :UInt32;
  version @1 :Text;                 # the version of the scheduler
  incarnation @2 :UInt64;           # the scheduler's incarnation; a different one means that it has lost all state
  leaseMilliseconds @3 :UInt64;     # the lease: a peer that sends no heartbeat for longer is lost
  credit @4 :UInt64;                # of a client: its first credit in bytes; its count of submitted bytes begins at 0 with every welcome
  resultWindow @5 :UInt64;          # of a client: bytes of results under way at most; it sends `received` for each quarter, and with heartbeats; 0: no limit
  messageSizeLimit @6 :UInt64;      # in bytes: the scheduler cuts a connection that sends a longer frame; 0: the limit is unknown
  workers @7 :UInt32;               # of a client: the number of connected workers
  takesFiles @8 :Bool;              # of a client: its large objects may be files of its own (see "Object files")
}

enum RefusedReason { protocolVersion @0; malformedHello @1; notAuthorized @2; }

struct Refused {
  reason @0 :RefusedReason;
  text @1 :Text;
  protocolVersion @2 :UInt32;       # the scheduler's protocol version
  version @3 :Text;
}

struct Goodbye { reason @0 :Text; }

struct Heartbeat {
  sequence @0 :UInt64;              # the echo repeats it
  residentBytes @1 :UInt64;         # resident size of the sending process
  cpuMilliseconds @2 :UInt64;       # user and system time since the process started
  workers @3 :List(WorkerHeartbeat);  # of a host agent: its living workers; the heartbeat renews their leases too
  lagMicroseconds @4 :UInt64;       # time from the last heartbeat that was echoed to its echo; 0: no echo yet
  isRetiring @5 :Bool;              # of a host agent: it is about to end; its workers finish their running tasks and get no new tasks
  memoryBytes @6 :UInt64;           # of a host agent: its host's objects and large results in memory
  diskBytes @7 :UInt64;             # of a host agent: those that it has spilled to disk
  movedBytes @8 :UInt64;            # of a host agent: written to disk and mapped from disk since it started
  unixMilliseconds @9 :UInt64;      # of a host agent: the time of its host's clock; 0: not known
  wantsHosts @10 :Bool;             # of a client: the echo tells about the hosts, at most once in a second
  pools @11 :List(PoolState);       # of scaler_autoscaler, which says hello as a host agent without workers: its pools, at most 100
  memoryLimitBytes @12 :UInt64;     # of a host agent: what memoryBytes may be; 0: not known, then the host has room for any value
  diskLimitBytes @13 :UInt64;       # of a host agent: what diskBytes may be
}

struct PoolState {                  # the hosts of one pool of an autoscaler
  name @0 :Text;
  wanted @1 :UInt32;                # hosts that the work needs, as far as the pool may have them
  booting @2 :UInt32;               # hosts that were requested and whose agent is not connected yet
  there @3 :UInt32;                 # hosts whose agent is connected
  draining @4 :UInt32;              # hosts that end
  failed @5 :UInt64;                # since the autoscaler's start: hosts that never came, died at boot, or were lost
  late @6 :UInt64;                  # likewise: hosts that came late
  left @7 :UInt64;                  # likewise: hosts that left at their time limit
  isResting @8 :Bool;               # no host is requested for now, because too many failed
  problem @9 :Text;                 # why calls of the pool's provider, or its hosts, fail; empty: they do not
  problemSeconds @10 :UInt32;       # for how long they have failed
}

struct WorkerHeartbeat {
  incarnation @0 :UInt64;
  residentBytes @1 :UInt64;
  cpuMilliseconds @2 :UInt64;
}

struct HeartbeatEcho {
  sequence @0 :UInt64;
  isDrained @1 :Bool;               # to a retiring agent: its workers hold no tasks and get none
  workers @2 :UInt32;               # to a client: the number of connected workers
  hosts @3 :List(Host);             # to a client that wants them: one element per host agent, at most 256
  packages @4 :List(Text);          # different texts of `packages` in the hellos of these agents, at most 16
  unixMilliseconds @5 :UInt64;      # with `hosts`: the time of the scheduler's clock; 0: not known
  ticket @6 :Text;                  # to a peer with a data address: the ticket of this address from now on; empty: the same as before
}

struct Host {
  name @0 :Text;
  language @1 :Text;                # of its agent: "python 3.11.7"
  version @2 :Text;                 # of the agent's library
  packages @3 :UInt16;              # 1 + the index of its text in `packages`; 0: not known, or left out
  unixMilliseconds @4 :UInt64;      # the time of the host's clock when the echo was made; 0: not known
}

struct Function {
  number @0 :UInt32;                # a client's number towards the scheduler, the scheduler's number towards workers
  name @1 :Text;                    # for display in logs, errors and monitors
  kind @2 :Text;                    # which workers can run it: "cloudpickle 3.11", "named json price"
  environment @3 :Text;             # of a client: only workers of this environment run it; empty: only workers without one
}

struct ForgetFunctions { numbers @0 :List(UInt32); }

struct Object {
  client @0 :UInt64;                # the incarnation of the client that owns it; from a client: 0
  id @1 :UInt64;                    # the client counts tasks and objects with one counter
  name @2 :Text;                    # for display
  fileBytes @3 :UInt64;             # from a client, not 0: no frames follow; they are in a file (see "Object files"), of this size in all
  data @4 :DataAddress;             # with fileBytes: where agents get the file; null: only agents of the client's host get it
}

struct Objects {
  ids @0 :List(UInt64);             # ascending
  sizes @1 :List(UInt32);
  large @2 :List(UInt32);
  payload @3 :Data;
}

struct ForgetObjects {
  clients @0 :List(UInt64);         # from a client: empty
  ids @1 :List(UInt64);
}

struct HeldResults {
  ids @0 :List(UInt64);             # as the answers `kept` say: ids of their files (see "Ids of results")
  bytes @1 :List(UInt64);           # for each row, the size that the answer says
}

struct FetchObjects {
  clients @0 :List(UInt64);         # from a client: empty
  ids @1 :List(UInt64);
}

struct TransferObjects {
  source @0 :UInt64;                # the incarnation of the agent or client that has the files
  data @1 :DataAddress;             # of this agent or client; its address is empty if it has none
  clients @2 :List(UInt64);
  ids @3 :List(UInt64);
  bytes @4 :List(UInt64);           # for each row, the size of the object's frames in all
}

struct Transferred {
  source @0 :UInt64;                # as in transferObjects
  clients @1 :List(UInt64);
  ids @2 :List(UInt64);
  error @3 :Text;                   # why these files are not there; empty: they are
  isUnreachable @4 :Bool;           # with `error`: there was no connection to the source
}

struct ReadObject {
  ticket @0 :Text;                  # of this data address
  client @1 :UInt64;
  id @2 :UInt64;
  offset @3 :UInt64;                # of the first wanted byte of the file
  bytes @4 :UInt32;                 # how many; at most 1 MiB are sent
}

struct ObjectChunk {
  client @0 :UInt64;
  id @1 :UInt64;
  offset @2 :UInt64;                # of the first byte in the file
  fileBytes @3 :UInt64;             # the size of the whole file
}

struct NoObject {
  client @0 :UInt64;
  id @1 :UInt64;
  reason @2 :Text;
}

struct Submit {
  ids @0 :List(UInt64);             # from the client's counter, below 2^63, ascending within a batch
  functions @1 :List(UInt32);       # the client's function numbers
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
  options @5 :Options;              # of every row; null: the defaults
  inputs @6 :List(UInt64);          # ids of this client's objects that the rows read, concatenated
  inputCounts @7 :List(UInt32);     # number of inputs of each row; empty: all 0
  keep @8 :List(UInt8);             # ordinals of Keep; empty: no result is kept
  keepEarlier @9 :List(UInt64);     # ids of tasks submitted earlier, whose results are kept from now on as if they had been submitted
                                    # with Keep.both. If a task has ended, the scheduler asks for its result by fetchObjects
}

enum Keep {
  no @0;                            # the result goes to the client
  yes @1;                           # it becomes an object with the row's id; the client gets the outcome `kept` in place of the value
  both @2;                          # it becomes an object and goes to the client
}

struct Options {
  priority @0 :Int32;               # higher runs first
  depth @1 :UInt32;                 # how deep the task is nested: one more than its parent's depth; 0: no parent. Higher runs first
  retries @2 :Int32 = -1;           # further attempts if the worker dies or the outcome is retryable; -1: the scheduler's default
  timeoutMilliseconds @3 :UInt64;   # limit of the run time; 0: none
  profiling @4 :Bool;               # return cpuTimes and peaks with the result
  name @5 :Text;                    # for display, in place of the function's name; empty: the function's name
  capabilities @6 :List(Capability);  # resources that the worker must have, at least
  streamOutput @7 :Bool;            # send what the task prints, in `output`
  graph @8 :UInt64;                 # the client's number for the graph of these rows, below 2^63; 0: no graph
  keys @9 :Text;                    # for display: the keys of the graph whose values are wanted; at most 200 characters are kept
  calls @10 :UInt32;                # number of calls that each row stands for, at most 65,536; 0: the row is a single, plain call
  limits @11 :List(Text);           # names of the scheduler's limits that the tasks need, each once
  resources @12 :List(Resource);    # counted resources of its host that a task needs; "cpus": so many workers of the host
  releaseResources @13 :Bool;       # a task gives its resources back for good when it waits for its own tasks for the first time
  gangSize @14 :UInt32;             # each row stands for a gang of so many tasks, at most 1024; their ids are the row's and those that
                                    # follow it. 0: the row is no gang
}

struct Resource {
  name @0 :Text;                    # a letter or digit, then letters, digits, "_", "-" and "."; at most 64 characters
  amount @1 :UInt64;                # thousandths of a unit, at least 1 and below 2^62
}

struct GangMember {
  client @0 :UInt64;                # with `id` and `attempt`: the task
  id @1 :UInt64;
  attempt @2 :UInt32;
  rank @3 :UInt32;                  # from 0
  hosts @4 :List(Text);             # the host of each member, by rank; those of one host agent follow one another
}

struct Exchange {
  client @0 :UInt64;                # with `id` and `attempt`: the member that gives the value, or gets the values
  id @1 :UInt64;
  attempt @2 :UInt32;
  round @3 :UInt32;                 # counts the exchanges of this attempt, from 0
  sizes @4 :List(UInt32);           # to a worker: bytes of the value of each rank; from a worker not read
  payload @5 :Data;                 # the values, concatenated
  ended @6 :UInt32;                 # to a worker: 1 + the rank of a member that has ended without giving a value of this round, which can
                                    # never be complete; there are no values then. 0: the values are those of all members
}

struct Dispatch {
  clients @0 :List(UInt64);         # incarnations of clients; (client, id) identifies a task
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);        # 1 for the first attempt; the result repeats it
  functions @3 :List(UInt32);       # the scheduler's function numbers
  sizes @4 :List(UInt32);
  large @5 :List(UInt32);
  payload @6 :Data;
  flags @7 :List(UInt8);            # bit 0: profile the task; 1: send `started` when it begins; 2: send its `output`; 3: its result is
                                    # kept, and a large one may be `stored`; 4: the row stands for several calls, as `calls` of its
                                    # Options says; 5: it releases its resources when it is suspended; 6: it is a member of a gang; 7:
                                    # with bit 3: a small result may be `stored` too; without bit 3: its result is kept, and must
                                    # not be a `file`. Empty: all 0
  depths @8 :List(UInt32);          # depth and priority of its Options, for the tasks that it submits; empty: all 0
  priorities @9 :List(UInt32);      # in two's complement
  inputs @10 :List(UInt64);         # ids of objects of the row's client, as hosts know them (see "Ids of results")
  inputCounts @11 :List(UInt32);
  inputSources @12 :List(UInt8);    # one element per input. 0: an Object message has sent it before; 1: a file that the host agent
                                    # has made or is about to make; 2: a file that a worker of the host has made. Only
                                    # for a worker that `takesFollowers`: 3: the result of a row before this row in the same dispatch
  inlineSizes @13 :List(UInt32);    # one element per input. n > 0: its n - 1 bytes follow the arguments in the row's payload. Empty: all 0
  names @14 :Data;                  # UTF-8: names from the rows' Options, concatenated
  nameSizes @15 :List(UInt32);      # bytes of each; 0: the function's name. Empty: all 0
  bookings @16 :Data;               # lines of UTF-8: the resources that rows have, as in "17 cpus=4 gpu=1.5:0+2": the booking's number,
                                    # then names, amounts and ids of units. The last id is the one that a fraction is a part of
  rowBookings @17 :List(UInt32);    # the line of each row, counted from 1; 0: it has no resources. Empty: all 0
}

enum Outcome {
  value @0;            # payload: the serialized return value
  exception @1;        # payload: the serialized exception with its remote traceback
  functionFailed @2;   # payload: the serialized exception; the worker could not deserialize the function
  resultFailed @3;     # payload: UTF-8 text; the worker could not serialize the result or exception
  retryable @4;        # payload: as of `exception`; the task asks for another attempt. Never sent to a client
  workerDied @5;       # payload: UTF-8 text: the history of its attempts
  cancelled @6;        # payload: UTF-8 text: the traceback of the task that was stopped, or nothing
  timedOut @7;         # payload: UTF-8 text
  kept @8;             # the result is an object now. Payload: its size and the id of its file, 8 bytes each, little-endian, and in UTF-8
                       # the name of the host that has it, or nothing if the scheduler has it. Rows of graphs may have no payload
  inputLost @9;        # payload: UTF-8 text; an object that the row reads is missing
  stored @10;          # payload: the size, 8 bytes, little-endian; the result is a file of the host. Never sent to a client
  environmentFailed @11;  # payload: UTF-8 text; no host could prepare the environment of the task
  noRoom @12;          # payload: as of `resultFailed`; the host has no room for the kept result. Never sent to a client
  file @13;            # payload: the id of the file and the bytes of its frames, 8 bytes each, little-endian; the worker has written the
                       # result into the directory of its client
}

struct Results {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
  outcomes @3 :List(UInt8);         # ordinals of Outcome
  durations @4 :List(UInt64);       # nanoseconds, from reading the arguments to writing the result
  sizes @5 :List(UInt32);
  large @6 :List(UInt32);
  payload @7 :Data;
  cpuTimes @8 :List(UInt64);        # nanoseconds of the process while the row ran; empty: no row is profiled
  peaks @9 :List(UInt64);           # bytes, the largest resident size; empty like cpuTimes; 0: the row is not profiled
  errors @10 :Data;                 # UTF-8: for each failed row one line that says why, concatenated
  errorSizes @11 :List(UInt32);     # bytes of each; 0: no failure. Empty: all 0
  tracebacks @12 :Data;             # UTF-8: tracebacks of failed rows, concatenated; the scheduler keeps the last 4096 bytes of each
  tracebackSizes @13 :List(UInt32); # bytes of each; 0: no failure. Empty: all 0
  calls @14 :List(UInt32);          # of a row that stands for several calls: how many of them have ended; 0: all. Empty: all 0
}

struct Resolved {
  ids @0 :List(UInt64);
  outcomes @1 :List(UInt8);
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
  durations @5 :List(UInt64);       # this and the next two as in Results; empty: no row is profiled
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
  labels @3 :List(UInt32);          # bytes of the label at the row's beginning: host, process and task, for display
  sizes @4 :List(UInt32);           # bytes of each row, with its label
  text @5 :Data;                    # UTF-8: label and lines of each row, concatenated
  dropped @6 :List(UInt64);         # towards a client, one element: bytes that were dropped before this message; empty: none
}

struct Retracted {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
  returned @3 :List(UInt8);         # 1: given back, it will not run here; 0: it runs, is suspended, is done, or was never here
}

struct EndWorker {
  incarnation @0 :UInt64;           # the worker's
  client @1 :UInt64;                # with `id` and `attempt`: the worker is ended only if it runs this task
  id @2 :UInt64;
  attempt @3 :UInt32;
  reason @4 :Text;                  # "cancelled", "time limit of 2 s": for the log and for the cause in WorkerDied
}

struct Credit { bytes @0 :UInt64; } # bytes that the client may submit, summed up since the last welcome; a task counts its payload and 128

struct Received { bytes @0 :UInt64; } # bytes of results and output that the client has received, summed up since the last welcome

struct Cancel {
  ids @0 :List(UInt64);
  force @1 :List(UInt8);            # one element 1: interrupt running tasks. Empty or 0: running tasks are not cancelled
}

struct CancelRefused { ids @0 :List(UInt64); }

struct WorkerDied {
  incarnation @0 :UInt64;
  pid @1 :UInt32;
  cause @2 :Text;                   # "signal 9 (SIGKILL)", "exit code 1"
  peakBytes @3 :UInt64;             # the largest resident size of the process; 0: unknown
  client @4 :UInt64;                # with `id` and `attempt`: the task that it was running; attempt 0: none
  id @5 :UInt64;
  attempt @6 :UInt32;
}

struct Error {
  text @0 :Text;
  tasks @1 :List(UInt64);           # ids of the rejected tasks of a submit; its other tasks are accepted
}

struct Notice { text @0 :Text; }

struct Snapshot {
  protocolVersion @0 :UInt32;       # if it differs from the reader's, only this and the next three fields may be read
  version @1 :Text;
  incarnation @2 :UInt64;
  uptimeMilliseconds @3 :UInt64;
  address @4 :Text;
  waiting @5 :UInt64;               # tasks that no worker holds. Here and in the tables a row that stands for several calls counts as
                                    # its calls, except in `running`, `suspended`, `retries`, `dispatchLatencies`, `free` and `held`
  dispatched @6 :UInt64;            # tasks that a worker holds
  resolved @7 :UInt64;              # tasks that have ended since the start
  clients @8 :UInt32;
  workers @9 :UInt32;
  agents @10 :UInt32;
  received @11 :List(Counter);      # number of messages by type
  sent @12 :List(Counter);
  dropped @13 :List(Counter);       # number of messages by reason
  sequence @14 :UInt64;             # number of this snapshot since the scheduler's start, from 1
  unixMilliseconds @15 :UInt64;     # the time of the scheduler's clock
  blocked @16 :UInt64;              # tasks whose inputs do not all exist yet
  running @17 :UInt64;              # of `dispatched`: tasks that are known to run
  suspended @18 :UInt64;            # of `dispatched`: tasks that wait for their own children
  outcomes @19 :List(UInt64);       # of `resolved`: number of tasks by ordinal of Outcome
  functions @20 :UInt32;            # number of all functions; the table may have fewer rows. Likewise `objects`
  objects @21 :UInt64;
  process @22 :SchedulerProcess;
  texts @23 :Texts;
  workerColumns @24 :WorkerColumns; # one row per worker
  agentColumns @25 :AgentColumns;
  clientColumns @26 :ClientColumns;
  functionColumns @27 :FunctionColumns;
  objectColumns @28 :ObjectColumns;
  deaths @29 :List(Counter);        # deaths of workers by cause: "signal 9", "exit 1", "memory limit", "lease"
  retries @30 :UInt64;              # dispatches after a failed attempt
  dispatchLatencies @31 :List(UInt64);  # element k: dispatches after a wait of less than 2^k microseconds and at least 2^(k - 1),
                                    # since the task was submitted, its last input arrived, or it was returned
  dispatchLatencyMicroseconds @32 :UInt64;  # the sum of these waits
  waitingBytes @33 :UInt64;         # payloads of open tasks in the scheduler's memory
  objectBytes @34 :UInt64;          # objects of all clients in the scheduler's memory
  memoryLimitBytes @35 :UInt64;     # the configured limit
  unschedulable @36 :UInt64;             # of `waiting`: tasks that no connected worker can run
  unreachableHosts @37 :List(Counter);   # pairs of hosts, "node-8 from node-7": the second could not connect to the data address of
                                    # the first, as counted
  shares @38 :List(Share);          # who shares the workers: the 100 with the most open tasks
  limits @39 :List(TaskLimit);      # the limits of the scheduler's configuration
  resources @40 :List(HostPool);    # the counted resources of hosts: the first 1,000
  resourcesWaiting @41 :UInt64;     # tasks that wait for a worker and ask for resources
  reservationMilliseconds @42 :UInt64;   # for how long the oldest reservation has waited
  needs @43 :List(Need);            # the tasks that more workers could begin, by what they require: the 1,000 groups with most
  pools @44 :List(PoolState);       # the pools of connected autoscalers
}

struct HostPool {                   # a counted resource of a host; "cpus": workers, of which those are booked that run such tasks
  host @0 :Text;
  name @1 :Text;
  total @2 :UInt64;                 # this and the next three in thousandths of a unit
  booked @3 :UInt64;                # what attempts have
  reserved @4 :UInt64;              # what is kept for a task that waits, from what is free or becomes free
  free @5 :UInt64;                  # total - booked, or 0
  agent @6 :UInt64;                 # incarnation of the host's agent: several may run on one host
}

struct Need {                       # tasks with the same requirements that more workers could begin
  capabilities @0 :Text;            # "gpu=2 linux=1"
  kind @1 :Text;                    # of their functions: which workers can run them
  limits @2 :List(Text);            # names of the limits that they need
  waiting @3 :UInt64;               # how many tasks wait, or are queued at a worker behind a task that runs for long; a gang counts as
                                    # its members
  unknown @4 :UInt64;               # of these: tasks whose function has not returned yet, or at least the members of the largest gang
  milliseconds @5 :UInt64;          # the mean run times of the functions of all others, summed up, with the time that calls run already
  resources @6 :List(Resource);     # counted resources of its host that each task needs
  held @7 :UInt64;                  # of `waiting`: tasks beyond the `maxRunning` of their shares
}

struct TaskLimit {
  name @0 :Text;
  most @1 :UInt64;                  # tasks that may run at once; 0: any number
  perSecond @2 :Float64;            # tasks that may begin in a second; 0: any number
  running @3 :UInt64;               # attempts at workers
  waiting @4 :UInt64;               # tasks of clients that wait for a worker and need it
}

struct Share {                      # the clients of one key, or without keys of one user and host
  name @0 :Text;                    # the name of the key, or user@host
  weight @1 :Float64;               # its part of the time, relative to others
  clients @2 :UInt32;
  waiting @3 :UInt64;               # rows that wait for a worker
  running @4 :UInt64;               # rows that workers hold, without suspended ones
  usedMilliseconds @5 :UInt64;      # the run time of its ended attempts
  maxRunning @6 :UInt64;            # the most rows that workers may hold; 0: no limit
  maxWaiting @7 :UInt64;            # the most open tasks that the scheduler takes; 0: no limit
}

struct Texts {                      # the columns below refer to these texts by number, from 0
  text @0 :Data;                    # UTF-8: all texts, concatenated
  sizes @1 :List(UInt32);           # bytes of each
}

struct SchedulerProcess {
  interpreter @0 :Text;             # "PyPy 7.3.11 (Python 3.9.16)"
  host @1 :Text;
  pid @2 :UInt32;
  residentBytes @3 :UInt64;         # 0: unknown
  cpuMilliseconds @4 :UInt64;       # user and system time since the process started
  loopTurns @5 :UInt64;             # turns of the loop with work to do, since the start
  loopMicroseconds @6 :UInt64;      # time spent in these turns
  loopDurations @7 :List(UInt64);   # element k: turns that took less than 2^k microseconds and at least 2^(k - 1)
  monitorMicroseconds @8 :UInt64;   # processor time for published messages, since the start
}

struct WorkerColumns {
  incarnations @0 :List(UInt64);
  agents @1 :List(UInt64);          # incarnations of their host agents; 0: none
  names @2 :List(UInt32);           # texts
  hosts @3 :List(UInt32);           # texts
  pids @4 :List(UInt32);
  languages @5 :List(UInt32);       # texts: "python 3.11.7"
  versions @6 :List(UInt32);        # texts
  capabilities @7 :List(UInt32);    # texts: "gpu=2 linux=1"
  states @8 :List(UInt8);           # bit 0: its agent is connected; 1: it holds a task; 2: its task has run for a second; 3: it does not
                                    # answer a `retract`; 4: it gets no new tasks, its agent retires
  residentBytes @9 :List(UInt64);   # from the last heartbeat of its agent, like `cpuMilliseconds`; 0: unknown
  cpuMilliseconds @10 :List(UInt64);
  free @11 :List(UInt32);           # tasks that it has room for now
  held @12 :List(UInt32);           # tasks that it holds: queued, running, suspended
  running @13 :List(UInt32);        # of `held`: tasks that are known to run
  suspended @14 :List(UInt32);
  sent @15 :List(UInt64);           # tasks sent to it since it joined; a row of calls counts as all of its calls, in `done` as those that
                                    # have ended
  done @16 :List(UInt64);           # results from it that a client waited for
  clients @17 :List(UInt64);        # with `ids`, `attempts`, `tasks` and `runMilliseconds`: the task that it is known to run
  ids @18 :List(UInt64);
  attempts @19 :List(UInt32);       # 0: it is not known to run a task
  tasks @20 :List(UInt32);          # texts
  runMilliseconds @21 :List(UInt64);
  functions @22 :List(UInt32);      # the scheduler's number of its function; 0: it is not known to run a task
  environments @23 :List(UInt32);   # texts: the name of its environment; empty: none
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
  lagMicroseconds @8 :List(UInt64); # from a heartbeat to its echo, measured by the agent
  lastHeartbeatMilliseconds @9 :List(UInt64);  # the scheduler's uptime at its last heartbeat, the source of all figures of its host
  memoryBytes @10 :List(UInt64);    # objects and large results of its host that are in memory
  diskBytes @11 :List(UInt64);      # those that were spilled to disk
  movedBytes @12 :List(UInt64);     # written to disk and mapped from disk since the agent started
  receivedBytes @13 :List(UInt64);  # objects that it got from other hosts and from clients, since it joined
  sentBytes @14 :List(UInt64);      # objects that it has sent to other hosts, since it joined
  comingBytes @15 :List(UInt64);    # objects that are on their way to it, or wait for their turn
  roomBytes @16 :List(UInt64);      # what further objects and large results may take, by the host's limits; 2^62: they are not known
}

struct ClientColumns {
  incarnations @0 :List(UInt64);
  names @1 :List(UInt32);           # texts
  workers @2 :List(UInt64);         # of a nested client: the worker that it runs in; else 0
  waiting @3 :List(UInt64);         # tasks that wait for a worker
  notWaiting @4 :List(UInt64);      # its other open tasks: a worker holds them, or they are blocked
  objects @5 :List(UInt64);
  objectBytes @6 :List(UInt64);     # bytes of the objects that it has sent, and 128 for each
  done @7 :List(UInt64);            # tasks that were answered
  shares @8 :List(UInt32);          # texts: the name of its share
}

struct FunctionColumns {
  numbers @0 :List(UInt32);         # the scheduler's numbers
  names @1 :List(UInt32);           # texts
  tasks @2 :List(UInt64);           # open tasks that call it
  done @3 :List(UInt64);            # results since the function was sent; `failed` counts the results without a value
  failed @4 :List(UInt64);
  runNanoseconds @5 :List(UInt64);  # the sum of their run times
  bytes @6 :List(UInt64);           # size of the serialized function
  clients @7 :List(UInt32);         # number of clients that have a number for it
  taskNames @8 :List(UInt32);       # texts: recent names from the Options of its tasks
}

struct ObjectColumns {
  clients @0 :List(UInt64);
  ids @1 :List(UInt64);
  names @2 :List(UInt32);           # texts
  bytes @3 :List(UInt64);
  tasks @4 :List(UInt64);           # open tasks that read it
  states @5 :List(UInt8);           # 0: the result of an unfinished task; 1: in the scheduler's memory; 2: a file of a host or of its client
}

struct Counter {
  name @0 :Text;
  count @1 :UInt64;
  lastMilliseconds @2 :UInt64;      # of `dropped` and `deaths`: Unix time when the count last increased; 0: unknown
}

enum HistoryKind {
  submitted @0;        # by its client; worker and attempt are 0
  dispatched @1;
  started @2;          # the scheduler learns that it runs
  ended @3;
  returned @4;         # it has left this worker unfinished: the worker was lost, or the task was retracted or needs another attempt
  reattached @5;          # its worker has joined again and still holds it, usually after a restart of the scheduler
}

struct History {
  incarnation @0 :List(UInt64);     # one element: the scheduler's incarnation
  first @1 :List(UInt64);           # one element: number of the first row, counted from 0 since the scheduler's start
  kinds @2 :List(UInt8);            # ordinals of HistoryKind
  times @3 :List(UInt64);           # microseconds of the scheduler's uptime
  clients @4 :List(UInt64);
  ids @5 :List(UInt64);
  attempts @6 :List(UInt32);
  workers @7 :List(UInt64);         # 0: no worker is involved
  names @8 :List(UInt32);           # the task's own name, or its function's name if it has none; indexes of the texts below
  outcomes @9 :List(UInt8);         # ordinals of Outcome. `ended`: from the worker or the scheduler. `returned`:
                                    # retryable, workerDied or inputLost; value: it was retracted
  durations @10 :List(UInt64);      # nanoseconds, as in Results; of `ended` and `returned`
  text @11 :Data;                   # UTF-8: all texts, concatenated
  sizes @12 :List(UInt32);          # bytes of each
  errors @13 :List(UInt32);         # of `ended` or `returned` without a value: one line that says why; texts. Empty: no row has one
  functions @14 :List(UInt32);      # names of the functions; texts. Empty: equal to `names`
  tracebacks @15 :List(UInt32);     # only in the answer about one task: tracebacks of failed attempts; texts. Empty: no row has one
  waitReasons @16 :List(UInt32);    # only in the answer about one task, in its last row while it is open: why it waits, or where it
                                    # runs; lines `kind: text`; texts. Empty: no row has some
}

enum GraphState {
  blocked @0;          # its inputs do not all exist yet
  waiting @1;          # no worker holds it
  running @2;          # a worker holds it
  done @3;             # it ended with a value, which may be kept
  failed @4;
}

struct Graphs {
  incarnation @0 :List(UInt64);     # one element: the scheduler's incarnation
  total @1 :List(UInt64);           # one element: number of nodes, with a row or without
  clients @2 :List(UInt64);
  ids @3 :List(UInt64);             # ids of the nodes: tasks, and the objects that they read
  names @4 :List(UInt32);           # indexes of the texts below
  states @5 :List(UInt8);           # ordinals of GraphState
  inputs @6 :List(UInt64);          # ids that the rows read, concatenated
  inputCounts @7 :List(UInt32);     # number of inputs of each row; empty: all 0
  text @8 :Data;                    # UTF-8: all texts, concatenated
  sizes @9 :List(UInt32);           # bytes of each
  graphs @10 :List(UInt64);         # the graph of each row, as in Options; 0: no graph
  keys @11 :List(UInt32);           # keys of the graphs, as in Options; texts
  submitMilliseconds @12 :List(UInt64);          # the scheduler's uptime when the row was submitted; 0: unknown
}
