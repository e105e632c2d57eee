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
  }
}

enum Role { client @0; worker @1; agent @2; }

struct Hello {
  protocolVersion @0 :UInt32;
  role @1 :Role;
  incarnation @2 :UInt64;     # drawn anew at every start of the peer; below 2^63
  agent @3 :UInt64;           # a worker's: the incarnation of its host agent, 0 without one
  language @4 :Text;          # "python"
  languageVersion @5 :Text;   # "3.11.7"
  version @6 :Text;           # of the peer's own library
  host @7 :Text;
  pid @8 :UInt32;
  name @9 :Text;              # for people; need not be unique
}

struct Welcome {
  protocolVersion @0 :UInt32;
  version @1 :Text;                 # of the scheduler
  incarnation @2 :UInt64;           # the scheduler's restart epoch; another one: it has forgotten everything
  peer @3 :UInt32;                  # the number under which others' messages name this peer
  leaseMilliseconds @4 :UInt64;     # a peer silent for longer is given up
}

enum RefusedReason { protocolVersion @0; malformedHello @1; }

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
}

struct WorkerHeartbeat {
  incarnation @0 :UInt64;
  residentBytes @1 :UInt64;
  cpuMilliseconds @2 :UInt64;
}

struct HeartbeatEcho { sequence @0 :UInt64; }

struct Function {
  number @0 :UInt32;                # the sender's; a worker is told the scheduler's own number
  name @1 :Text;                    # for people: logs, errors, the monitor
  serializer @2 :Text;              # how the bytes were made: "cloudpickle"
}

struct ForgetFunctions { numbers @0 :List(UInt32); }

struct Submit {
  ids @0 :List(UInt64);             # the client's own counter, below 2^63, ascending within a batch
  functions @1 :List(UInt32);       # the client's function numbers
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
}

struct Dispatch {
  clients @0 :List(UInt32);         # peer numbers of clients; a task is named by (client, id)
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);        # 1 for the first; comes back with the result
  functions @3 :List(UInt32);       # the scheduler's function numbers
  sizes @4 :List(UInt32);
  large @5 :List(UInt32);
  payload @6 :Data;
}

enum Outcome {
  value @0;            # payload: the serialized return value
  exception @1;        # payload: the serialized exception, remote traceback attached
  functionFailed @2;   # payload: a serialized exception; the function could not be deserialized on the worker
  resultFailed @3;     # payload: UTF-8 text; the result or exception could not be serialized on the worker
  workerDied @4;       # payload: UTF-8 text, the attempts' history
  cancelled @5;        # no payload
}

struct Results {
  clients @0 :List(UInt32);
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);
  outcomes @3 :List(UInt8);         # Outcome's ordinals
  durations @4 :List(UInt64);       # nanoseconds, arguments read to result written
  sizes @5 :List(UInt32);
  large @6 :List(UInt32);
  payload @7 :Data;
}

struct Resolved {
  ids @0 :List(UInt64);
  outcomes @1 :List(UInt8);
  sizes @2 :List(UInt32);
  large @3 :List(UInt32);
  payload @4 :Data;
}

struct Started {
  clients @0 :List(UInt32);         # towards a client: empty
  ids @1 :List(UInt64);
  attempts @2 :List(UInt32);        # towards a client: empty
}

struct Cancel { ids @0 :List(UInt64); }

struct CancelRefused { ids @0 :List(UInt64); }

struct WorkerDied {
  incarnation @0 :UInt64;
  pid @1 :UInt32;
  cause @2 :Text;                   # "signal 9 (SIGKILL)", "exit code 1"
  peakBytes @3 :UInt64;             # the largest resident size the process had; 0: not known
  client @4 :UInt32;                # what it was running, where `attempt` is not 0
  id @5 :UInt64;
  attempt @6 :UInt32;
}

struct Error { text @0 :Text; }

struct Snapshot {
  protocolVersion @0 :UInt32;
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
}

struct Counter {
  name @0 :Text;
  count @1 :UInt64;
}
