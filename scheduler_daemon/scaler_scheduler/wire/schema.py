# THIS FILE HAS BEEN GENERATED AUTOMATICALLY BY capnpy
# do not edit by hand
# cython: language_level=2

from capnpy import ptr as _ptr
from capnpy.struct_ import Struct as _Struct
from capnpy.struct_ import check_tag as _check_tag
from capnpy.struct_ import undefined as _undefined
from capnpy.enum import enum as _enum, fill_enum as _fill_enum
from capnpy.enum import BaseEnum as _BaseEnum
from capnpy.type import Types as _Types
from capnpy.segment.segment import Segment as _Segment
from capnpy.segment.segment import MultiSegment as _MultiSegment
from capnpy.segment.builder import SegmentBuilder as _SegmentBuilder
from capnpy.list import List as _List
from capnpy.list import PrimitiveItemType as _PrimitiveItemType
from capnpy.list import BoolItemType as _BoolItemType
from capnpy.list import TextItemType as _TextItemType
from capnpy.list import TextUnicodeItemType as _TextUnicodeItemType
from capnpy.list import StructItemType as _StructItemType
from capnpy.list import EnumItemType as _EnumItemType
from capnpy.list import VoidItemType as _VoidItemType
from capnpy.list import ListItemType as _ListItemType
from capnpy.anypointer import AnyPointer as _AnyPointer
from capnpy.util import text_bytes_repr as _text_bytes_repr
from capnpy.util import text_unicode_repr as _text_unicode_repr
from capnpy.util import data_repr as _data_repr
from capnpy.util import float32_repr as _float32_repr
from capnpy.util import float64_repr as _float64_repr
from capnpy.util import extend_module_maybe as _extend_module_maybe
from capnpy.util import check_version as _check_version
from capnpy.util import encode_maybe as _encode_maybe
__capnpy_id__ = 0xb0f3b8f1a5c0d7e2
__capnpy_version__ = '0.12.1'
__capnproto_version__ = '0.9.2'
_check_version(__name__, __capnpy_version__)
# not including reflection data

#### FORWARD DECLARATIONS ####

class Hello(_Struct): pass
Hello.__name__ = 'Hello'

class Welcome(_Struct): pass
Welcome.__name__ = 'Welcome'

class Refused(_Struct): pass
Refused.__name__ = 'Refused'

class Goodbye(_Struct): pass
Goodbye.__name__ = 'Goodbye'

class Heartbeat(_Struct): pass
Heartbeat.__name__ = 'Heartbeat'

class HeartbeatEcho(_Struct): pass
HeartbeatEcho.__name__ = 'HeartbeatEcho'

class Function(_Struct): pass
Function.__name__ = 'Function'

class ForgetFunctions(_Struct): pass
ForgetFunctions.__name__ = 'ForgetFunctions'

class Submit(_Struct): pass
Submit.__name__ = 'Submit'

class Dispatch(_Struct): pass
Dispatch.__name__ = 'Dispatch'

class Results(_Struct): pass
Results.__name__ = 'Results'

class Resolved(_Struct): pass
Resolved.__name__ = 'Resolved'

class Started(_Struct): pass
Started.__name__ = 'Started'

class Cancel(_Struct): pass
Cancel.__name__ = 'Cancel'

class CancelRefused(_Struct): pass
CancelRefused.__name__ = 'CancelRefused'

class WorkerDied(_Struct): pass
WorkerDied.__name__ = 'WorkerDied'

class Error(_Struct): pass
Error.__name__ = 'Error'

class Snapshot(_Struct): pass
Snapshot.__name__ = 'Snapshot'

class Tasks(_Struct): pass
Tasks.__name__ = 'Tasks'

class Retracted(_Struct): pass
Retracted.__name__ = 'Retracted'

class EndWorker(_Struct): pass
EndWorker.__name__ = 'EndWorker'

class Credit(_Struct): pass
Credit.__name__ = 'Credit'

class Received(_Struct): pass
Received.__name__ = 'Received'

class Object(_Struct): pass
Object.__name__ = 'Object'

class ForgetObjects(_Struct): pass
ForgetObjects.__name__ = 'ForgetObjects'

class Output(_Struct): pass
Output.__name__ = 'Output'

class FetchObjects(_Struct): pass
FetchObjects.__name__ = 'FetchObjects'

class History(_Struct): pass
History.__name__ = 'History'

class Graphs(_Struct): pass
Graphs.__name__ = 'Graphs'

class Notice(_Struct): pass
Notice.__name__ = 'Notice'

class TransferObjects(_Struct): pass
TransferObjects.__name__ = 'TransferObjects'

class Transferred(_Struct): pass
Transferred.__name__ = 'Transferred'

class ReadObject(_Struct): pass
ReadObject.__name__ = 'ReadObject'

class ObjectChunk(_Struct): pass
ObjectChunk.__name__ = 'ObjectChunk'

class NoObject(_Struct): pass
NoObject.__name__ = 'NoObject'

class Objects(_Struct): pass
Objects.__name__ = 'Objects'

class Environment(_Struct): pass
Environment.__name__ = 'Environment'

class ContentsWanted(_Struct): pass
ContentsWanted.__name__ = 'ContentsWanted'

class Contents(_Struct): pass
Contents.__name__ = 'Contents'

class EnvironmentReady(_Struct): pass
EnvironmentReady.__name__ = 'EnvironmentReady'

class ChangeWorker(_Struct): pass
ChangeWorker.__name__ = 'ChangeWorker'

class GangMember(_Struct): pass
GangMember.__name__ = 'GangMember'

class Exchange(_Struct): pass
Exchange.__name__ = 'Exchange'

class HeldResults(_Struct): pass
HeldResults.__name__ = 'HeldResults'

class Message(_Struct): pass
Message.__name__ = 'Message'
class Message__tag__(_BaseEnum):
    __capnpy_id__ = None
    __members__ = ('hello', 'welcome', 'refused', 'hello_wanted', 'goodbye', 'heartbeat', 'heartbeat_echo', 'function', 'forget_functions', 'submit', 'dispatch', 'results', 'resolved', 'started', 'cancel', 'cancel_refused', 'worker_died', 'error', 'snapshot', 'retract', 'retracted', 'stop', 'suspended', 'resumed', 'end_worker', 'credit', 'received', 'object', 'forget_objects', 'shutdown', 'output', 'fetch_objects', 'history', 'graphs', 'notice', 'transfer_objects', 'transferred', 'read_object', 'object_chunk', 'no_object', 'objects', 'environment', 'contents_wanted', 'contents', 'environment_ready', 'change_worker', 'gang_member', 'exchange', 'held_results',)
    @staticmethod
    def _new(x):
        return Message__tag__(x)
_fill_enum(Message__tag__)

class Role(_BaseEnum):
    __capnpy_id__ = 10914582738204224399
    __members__ = ('client', 'worker', 'agent',)
    @staticmethod
    def _new(x):
        return Role(x)
_fill_enum(Role)
_Role_list_item_type = _EnumItemType(Role)

class Capability(_Struct): pass
Capability.__name__ = 'Capability'

class DataAddress(_Struct): pass
DataAddress.__name__ = 'DataAddress'

class HostResource(_Struct): pass
HostResource.__name__ = 'HostResource'

class RefusedReason(_BaseEnum):
    __capnpy_id__ = 12360189996397848982
    __members__ = ('protocol_version', 'malformed_hello', 'not_authorized',)
    @staticmethod
    def _new(x):
        return RefusedReason(x)
_fill_enum(RefusedReason)
_RefusedReason_list_item_type = _EnumItemType(RefusedReason)

class WorkerHeartbeat(_Struct): pass
WorkerHeartbeat.__name__ = 'WorkerHeartbeat'

class PoolState(_Struct): pass
PoolState.__name__ = 'PoolState'

class Host(_Struct): pass
Host.__name__ = 'Host'

class Options(_Struct): pass
Options.__name__ = 'Options'

class Resource(_Struct): pass
Resource.__name__ = 'Resource'

class Counter(_Struct): pass
Counter.__name__ = 'Counter'

class SchedulerProcess(_Struct): pass
SchedulerProcess.__name__ = 'SchedulerProcess'

class Texts(_Struct): pass
Texts.__name__ = 'Texts'

class WorkerColumns(_Struct): pass
WorkerColumns.__name__ = 'WorkerColumns'

class AgentColumns(_Struct): pass
AgentColumns.__name__ = 'AgentColumns'

class ClientColumns(_Struct): pass
ClientColumns.__name__ = 'ClientColumns'

class FunctionColumns(_Struct): pass
FunctionColumns.__name__ = 'FunctionColumns'

class ObjectColumns(_Struct): pass
ObjectColumns.__name__ = 'ObjectColumns'

class Share(_Struct): pass
Share.__name__ = 'Share'

class TaskLimit(_Struct): pass
TaskLimit.__name__ = 'TaskLimit'

class HostPool(_Struct): pass
HostPool.__name__ = 'HostPool'

class Need(_Struct): pass
Need.__name__ = 'Need'

class Keep(_BaseEnum):
    __capnpy_id__ = 13982740344355429788
    __members__ = ('no', 'yes', 'both',)
    @staticmethod
    def _new(x):
        return Keep(x)
_fill_enum(Keep)
_Keep_list_item_type = _EnumItemType(Keep)

class Outcome(_BaseEnum):
    __capnpy_id__ = 10462563659632802732
    __members__ = ('value', 'exception', 'function_failed', 'result_failed', 'retryable', 'worker_died', 'cancelled', 'timed_out', 'kept', 'input_lost', 'stored', 'environment_failed', 'no_room', 'file',)
    @staticmethod
    def _new(x):
        return Outcome(x)
_fill_enum(Outcome)
_Outcome_list_item_type = _EnumItemType(Outcome)

class HistoryKind(_BaseEnum):
    __capnpy_id__ = 11278332053290876047
    __members__ = ('submitted', 'dispatched', 'started', 'ended', 'returned', 'reattached',)
    @staticmethod
    def _new(x):
        return HistoryKind(x)
_fill_enum(HistoryKind)
_HistoryKind_list_item_type = _EnumItemType(HistoryKind)

class GraphState(_BaseEnum):
    __capnpy_id__ = 9764511663517043830
    __members__ = ('blocked', 'waiting', 'running', 'done', 'failed',)
    @staticmethod
    def _new(x):
        return GraphState(x)
_fill_enum(GraphState)
_GraphState_list_item_type = _EnumItemType(GraphState)


#### DEFINITIONS ####

@Hello.__extend__
class Hello(_Struct):
    __capnpy_id__ = 0x9adc95c87c0ca0d7
    __static_data_size__ = 7
    __static_ptrs_size__ = 15
    
    
    @property
    def protocol_version(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def role(self):
        # no union check
        value = self._read_int16(4)
        if 0 != 0:
            value = (value ^ 0)
        return Role._new(value)
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def agent(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def language(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_language(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_language(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def language_version(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_language_version(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_language_version(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def version(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_version(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_version(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def host(self):
        # no union check
        return self._read_text_unicode(24)
    
    def get_host(self):
        return self._read_text_unicode(24, default_=b"")
    
    def has_host(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def pid(self):
        # no union check
        value = self._read_primitive(24, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(32)
    
    def get_name(self):
        return self._read_text_unicode(32, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def worker(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def capabilities(self):
        # no union check
        return self._read_list(40, _Capability_list_item_type)
    
    def get_capabilities(self):
        res = self.capabilities
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Capability_list_item_type)
        return res
    
    def has_capabilities(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def running(self):
        # no union check
        offset = 48
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Tasks.__new__(Tasks)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_running(self):
        res = self.running
        if res is None:
            return Tasks.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_running(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def kinds(self):
        # no union check
        return self._read_list(56, _TextUnicodeItemType(_Types.text))
    
    def get_kinds(self):
        res = self.kinds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_kinds(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def scheduler(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def data(self):
        # no union check
        offset = 64
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = DataAddress.__new__(DataAddress)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_data(self):
        res = self.data
        if res is None:
            return DataAddress.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_data(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def takes_followers(self):
        # no union check
        value = self._read_bit(6, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def account(self):
        # no union check
        return self._read_text_unicode(72)
    
    def get_account(self):
        return self._read_text_unicode(72, default_=b"")
    
    def has_account(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def packages(self):
        # no union check
        return self._read_text_unicode(80)
    
    def get_packages(self):
        return self._read_text_unicode(80, default_=b"")
    
    def has_packages(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def resources(self):
        # no union check
        return self._read_list(88, _HostResource_list_item_type)
    
    def get_resources(self):
        res = self.resources
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _HostResource_list_item_type)
        return res
    
    def has_resources(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def slots(self):
        # no union check
        value = self._read_primitive(28, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def bookings(self):
        # no union check
        return self._read_list(96, _TextUnicodeItemType(_Types.text))
    
    def get_bookings(self):
        res = self.bookings
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_bookings(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def environment(self):
        # no union check
        return self._read_text_unicode(104)
    
    def get_environment(self):
        return self._read_text_unicode(104, default_=b"")
    
    def has_environment(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def environments(self):
        # no union check
        value = self._read_primitive(7, ord(b'B'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def platform(self):
        # no union check
        return self._read_text_unicode(112)
    
    def get_platform(self):
        return self._read_text_unicode(112, default_=b"")
    
    def has_platform(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def finished(self):
        # no union check
        value = self._read_primitive(48, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(protocol_version=0, role=0, incarnation=0, agent=0, language=None, language_version=None, version=None, host=None, pid=0, name=None, worker=0, capabilities=None, running=None, kinds=None, scheduler=0, data=None, takes_followers=False, account=None, packages=None, resources=None, slots=0, bookings=None, environment=None, environments=0, platform=None, finished=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(176)
        builder.write_uint32(pos + 0, protocol_version)
        builder.write_int16(pos + 4, role)
        builder.write_uint64(pos + 8, incarnation)
        builder.write_uint64(pos + 16, agent)
        builder.alloc_text(pos + 56, _encode_maybe(language))
        builder.alloc_text(pos + 64, _encode_maybe(language_version))
        builder.alloc_text(pos + 72, _encode_maybe(version))
        builder.alloc_text(pos + 80, _encode_maybe(host))
        builder.write_uint32(pos + 24, pid)
        builder.alloc_text(pos + 88, _encode_maybe(name))
        builder.write_uint64(pos + 32, worker)
        builder.copy_from_list(pos + 96, _Capability_list_item_type, capabilities)
        builder.copy_from_struct(pos + 104, Tasks, running)
        builder.copy_from_list(pos + 112, _TextUnicodeItemType(_Types.text), kinds)
        builder.write_uint64(pos + 40, scheduler)
        builder.copy_from_struct(pos + 120, DataAddress, data)
        builder.write_bool(6, 0, takes_followers)
        builder.alloc_text(pos + 128, _encode_maybe(account))
        builder.alloc_text(pos + 136, _encode_maybe(packages))
        builder.copy_from_list(pos + 144, _HostResource_list_item_type, resources)
        builder.write_uint32(pos + 28, slots)
        builder.copy_from_list(pos + 152, _TextUnicodeItemType(_Types.text), bookings)
        builder.alloc_text(pos + 160, _encode_maybe(environment))
        builder.write_uint8(pos + 7, environments)
        builder.alloc_text(pos + 168, _encode_maybe(platform))
        builder.write_uint32(pos + 48, finished)
        return builder.as_string()
    
    def __init__(self, protocol_version=0, role=0, incarnation=0, agent=0, language=None, language_version=None, version=None, host=None, pid=0, name=None, worker=0, capabilities=None, running=None, kinds=None, scheduler=0, data=None, takes_followers=False, account=None, packages=None, resources=None, slots=0, bookings=None, environment=None, environments=0, platform=None, finished=0):
        _buf = Hello.__new(protocol_version, role, incarnation, agent, language, language_version, version, host, pid, name, worker, capabilities, running, kinds, scheduler, data, takes_followers, account, packages, resources, slots, bookings, environment, environments, platform, finished)
        self._init_from_buffer(_buf, 0, 7, 15)
    
    def shortrepr(self):
        parts = []
        parts.append("protocolVersion = %s" % self.protocol_version)
        parts.append("role = %s" % self.role)
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("agent = %s" % self.agent)
        if self.has_language(): parts.append("language = %s" % _text_unicode_repr(self.get_language()))
        if self.has_language_version(): parts.append("languageVersion = %s" % _text_unicode_repr(self.get_language_version()))
        if self.has_version(): parts.append("version = %s" % _text_unicode_repr(self.get_version()))
        if self.has_host(): parts.append("host = %s" % _text_unicode_repr(self.get_host()))
        parts.append("pid = %s" % self.pid)
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("worker = %s" % self.worker)
        if self.has_capabilities(): parts.append("capabilities = %s" % self.get_capabilities().shortrepr())
        if self.has_running(): parts.append("running = %s" % self.get_running().shortrepr())
        if self.has_kinds(): parts.append("kinds = %s" % self.get_kinds().shortrepr())
        parts.append("scheduler = %s" % self.scheduler)
        if self.has_data(): parts.append("data = %s" % self.get_data().shortrepr())
        parts.append("takesFollowers = %s" % str(self.takes_followers).lower())
        if self.has_account(): parts.append("account = %s" % _text_unicode_repr(self.get_account()))
        if self.has_packages(): parts.append("packages = %s" % _text_unicode_repr(self.get_packages()))
        if self.has_resources(): parts.append("resources = %s" % self.get_resources().shortrepr())
        parts.append("slots = %s" % self.slots)
        if self.has_bookings(): parts.append("bookings = %s" % self.get_bookings().shortrepr())
        if self.has_environment(): parts.append("environment = %s" % _text_unicode_repr(self.get_environment()))
        parts.append("environments = %s" % self.environments)
        if self.has_platform(): parts.append("platform = %s" % _text_unicode_repr(self.get_platform()))
        parts.append("finished = %s" % self.finished)
        return "(%s)" % ", ".join(parts)

_Hello_list_item_type = _StructItemType(Hello)

@Welcome.__extend__
class Welcome(_Struct):
    __capnpy_id__ = 0xe2a31e0e85977ca3
    __static_data_size__ = 7
    __static_ptrs_size__ = 1
    
    
    @property
    def protocol_version(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def version(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_version(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_version(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def lease_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def credit(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def result_window(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def message_size_limit(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def workers(self):
        # no union check
        value = self._read_primitive(4, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def takes_files(self):
        # no union check
        value = self._read_bit(48, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @staticmethod
    def __new(protocol_version=0, version=None, incarnation=0, lease_milliseconds=0, credit=0, result_window=0, message_size_limit=0, workers=0, takes_files=False):
        builder = _SegmentBuilder()
        pos = builder.allocate(64)
        builder.write_uint32(pos + 0, protocol_version)
        builder.alloc_text(pos + 56, _encode_maybe(version))
        builder.write_uint64(pos + 8, incarnation)
        builder.write_uint64(pos + 16, lease_milliseconds)
        builder.write_uint64(pos + 24, credit)
        builder.write_uint64(pos + 32, result_window)
        builder.write_uint64(pos + 40, message_size_limit)
        builder.write_uint32(pos + 4, workers)
        builder.write_bool(48, 0, takes_files)
        return builder.as_string()
    
    def __init__(self, protocol_version=0, version=None, incarnation=0, lease_milliseconds=0, credit=0, result_window=0, message_size_limit=0, workers=0, takes_files=False):
        _buf = Welcome.__new(protocol_version, version, incarnation, lease_milliseconds, credit, result_window, message_size_limit, workers, takes_files)
        self._init_from_buffer(_buf, 0, 7, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("protocolVersion = %s" % self.protocol_version)
        if self.has_version(): parts.append("version = %s" % _text_unicode_repr(self.get_version()))
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("leaseMilliseconds = %s" % self.lease_milliseconds)
        parts.append("credit = %s" % self.credit)
        parts.append("resultWindow = %s" % self.result_window)
        parts.append("messageSizeLimit = %s" % self.message_size_limit)
        parts.append("workers = %s" % self.workers)
        parts.append("takesFiles = %s" % str(self.takes_files).lower())
        return "(%s)" % ", ".join(parts)

_Welcome_list_item_type = _StructItemType(Welcome)

@Refused.__extend__
class Refused(_Struct):
    __capnpy_id__ = 0xec36cb62f740a1df
    __static_data_size__ = 1
    __static_ptrs_size__ = 2
    
    
    @property
    def reason(self):
        # no union check
        value = self._read_int16(0)
        if 0 != 0:
            value = (value ^ 0)
        return RefusedReason._new(value)
    
    @property
    def text(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_text(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def protocol_version(self):
        # no union check
        value = self._read_primitive(4, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def version(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_version(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_version(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(reason=0, text=None, protocol_version=0, version=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.write_int16(pos + 0, reason)
        builder.alloc_text(pos + 8, _encode_maybe(text))
        builder.write_uint32(pos + 4, protocol_version)
        builder.alloc_text(pos + 16, _encode_maybe(version))
        return builder.as_string()
    
    def __init__(self, reason=0, text=None, protocol_version=0, version=None):
        _buf = Refused.__new(reason, text, protocol_version, version)
        self._init_from_buffer(_buf, 0, 1, 2)
    
    def shortrepr(self):
        parts = []
        parts.append("reason = %s" % self.reason)
        if self.has_text(): parts.append("text = %s" % _text_unicode_repr(self.get_text()))
        parts.append("protocolVersion = %s" % self.protocol_version)
        if self.has_version(): parts.append("version = %s" % _text_unicode_repr(self.get_version()))
        return "(%s)" % ", ".join(parts)

_Refused_list_item_type = _StructItemType(Refused)

@Goodbye.__extend__
class Goodbye(_Struct):
    __capnpy_id__ = 0xf602899eeb258e46
    __static_data_size__ = 0
    __static_ptrs_size__ = 1
    
    
    @property
    def reason(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_reason(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_reason(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(reason=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.alloc_text(pos + 0, _encode_maybe(reason))
        return builder.as_string()
    
    def __init__(self, reason=None):
        _buf = Goodbye.__new(reason)
        self._init_from_buffer(_buf, 0, 0, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_reason(): parts.append("reason = %s" % _text_unicode_repr(self.get_reason()))
        return "(%s)" % ", ".join(parts)

_Goodbye_list_item_type = _StructItemType(Goodbye)

@Heartbeat.__extend__
class Heartbeat(_Struct):
    __capnpy_id__ = 0xeba354bb328ef745
    __static_data_size__ = 11
    __static_ptrs_size__ = 2
    
    
    @property
    def sequence(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def resident_bytes(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def cpu_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def workers(self):
        # no union check
        return self._read_list(0, _WorkerHeartbeat_list_item_type)
    
    def get_workers(self):
        res = self.workers
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _WorkerHeartbeat_list_item_type)
        return res
    
    def has_workers(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def lag_microseconds(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def is_retiring(self):
        # no union check
        value = self._read_bit(32, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def memory_bytes(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def disk_bytes(self):
        # no union check
        value = self._read_primitive(48, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def moved_bytes(self):
        # no union check
        value = self._read_primitive(56, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unix_milliseconds(self):
        # no union check
        value = self._read_primitive(64, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def wants_hosts(self):
        # no union check
        value = self._read_bit(32, 2)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def pools(self):
        # no union check
        return self._read_list(8, _PoolState_list_item_type)
    
    def get_pools(self):
        res = self.pools
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PoolState_list_item_type)
        return res
    
    def has_pools(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def memory_limit_bytes(self):
        # no union check
        value = self._read_primitive(72, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def disk_limit_bytes(self):
        # no union check
        value = self._read_primitive(80, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(sequence=0, resident_bytes=0, cpu_milliseconds=0, workers=None, lag_microseconds=0, is_retiring=False, memory_bytes=0, disk_bytes=0, moved_bytes=0, unix_milliseconds=0, wants_hosts=False, pools=None, memory_limit_bytes=0, disk_limit_bytes=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(104)
        builder.write_uint64(pos + 0, sequence)
        builder.write_uint64(pos + 8, resident_bytes)
        builder.write_uint64(pos + 16, cpu_milliseconds)
        builder.copy_from_list(pos + 88, _WorkerHeartbeat_list_item_type, workers)
        builder.write_uint64(pos + 24, lag_microseconds)
        builder.write_bool(32, 0, is_retiring)
        builder.write_uint64(pos + 40, memory_bytes)
        builder.write_uint64(pos + 48, disk_bytes)
        builder.write_uint64(pos + 56, moved_bytes)
        builder.write_uint64(pos + 64, unix_milliseconds)
        builder.write_bool(32, 1, wants_hosts)
        builder.copy_from_list(pos + 96, _PoolState_list_item_type, pools)
        builder.write_uint64(pos + 72, memory_limit_bytes)
        builder.write_uint64(pos + 80, disk_limit_bytes)
        return builder.as_string()
    
    def __init__(self, sequence=0, resident_bytes=0, cpu_milliseconds=0, workers=None, lag_microseconds=0, is_retiring=False, memory_bytes=0, disk_bytes=0, moved_bytes=0, unix_milliseconds=0, wants_hosts=False, pools=None, memory_limit_bytes=0, disk_limit_bytes=0):
        _buf = Heartbeat.__new(sequence, resident_bytes, cpu_milliseconds, workers, lag_microseconds, is_retiring, memory_bytes, disk_bytes, moved_bytes, unix_milliseconds, wants_hosts, pools, memory_limit_bytes, disk_limit_bytes)
        self._init_from_buffer(_buf, 0, 11, 2)
    
    def shortrepr(self):
        parts = []
        parts.append("sequence = %s" % self.sequence)
        parts.append("residentBytes = %s" % self.resident_bytes)
        parts.append("cpuMilliseconds = %s" % self.cpu_milliseconds)
        if self.has_workers(): parts.append("workers = %s" % self.get_workers().shortrepr())
        parts.append("lagMicroseconds = %s" % self.lag_microseconds)
        parts.append("isRetiring = %s" % str(self.is_retiring).lower())
        parts.append("memoryBytes = %s" % self.memory_bytes)
        parts.append("diskBytes = %s" % self.disk_bytes)
        parts.append("movedBytes = %s" % self.moved_bytes)
        parts.append("unixMilliseconds = %s" % self.unix_milliseconds)
        parts.append("wantsHosts = %s" % str(self.wants_hosts).lower())
        if self.has_pools(): parts.append("pools = %s" % self.get_pools().shortrepr())
        parts.append("memoryLimitBytes = %s" % self.memory_limit_bytes)
        parts.append("diskLimitBytes = %s" % self.disk_limit_bytes)
        return "(%s)" % ", ".join(parts)

_Heartbeat_list_item_type = _StructItemType(Heartbeat)

@HeartbeatEcho.__extend__
class HeartbeatEcho(_Struct):
    __capnpy_id__ = 0xa77f261c5e416cab
    __static_data_size__ = 3
    __static_ptrs_size__ = 3
    
    
    @property
    def sequence(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def is_drained(self):
        # no union check
        value = self._read_bit(8, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def workers(self):
        # no union check
        value = self._read_primitive(12, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def hosts(self):
        # no union check
        return self._read_list(0, _Host_list_item_type)
    
    def get_hosts(self):
        res = self.hosts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Host_list_item_type)
        return res
    
    def has_hosts(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def packages(self):
        # no union check
        return self._read_list(8, _TextUnicodeItemType(_Types.text))
    
    def get_packages(self):
        res = self.packages
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_packages(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def unix_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def ticket(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_ticket(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_ticket(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(sequence=0, is_drained=False, workers=0, hosts=None, packages=None, unix_milliseconds=0, ticket=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(48)
        builder.write_uint64(pos + 0, sequence)
        builder.write_bool(8, 0, is_drained)
        builder.write_uint32(pos + 12, workers)
        builder.copy_from_list(pos + 24, _Host_list_item_type, hosts)
        builder.copy_from_list(pos + 32, _TextUnicodeItemType(_Types.text), packages)
        builder.write_uint64(pos + 16, unix_milliseconds)
        builder.alloc_text(pos + 40, _encode_maybe(ticket))
        return builder.as_string()
    
    def __init__(self, sequence=0, is_drained=False, workers=0, hosts=None, packages=None, unix_milliseconds=0, ticket=None):
        _buf = HeartbeatEcho.__new(sequence, is_drained, workers, hosts, packages, unix_milliseconds, ticket)
        self._init_from_buffer(_buf, 0, 3, 3)
    
    def shortrepr(self):
        parts = []
        parts.append("sequence = %s" % self.sequence)
        parts.append("isDrained = %s" % str(self.is_drained).lower())
        parts.append("workers = %s" % self.workers)
        if self.has_hosts(): parts.append("hosts = %s" % self.get_hosts().shortrepr())
        if self.has_packages(): parts.append("packages = %s" % self.get_packages().shortrepr())
        parts.append("unixMilliseconds = %s" % self.unix_milliseconds)
        if self.has_ticket(): parts.append("ticket = %s" % _text_unicode_repr(self.get_ticket()))
        return "(%s)" % ", ".join(parts)

_HeartbeatEcho_list_item_type = _StructItemType(HeartbeatEcho)

@Function.__extend__
class Function(_Struct):
    __capnpy_id__ = 0xae67cb16593fbb14
    __static_data_size__ = 1
    __static_ptrs_size__ = 3
    
    
    @property
    def number(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def kind(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_kind(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_kind(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def environment(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_environment(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_environment(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(number=0, name=None, kind=None, environment=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(32)
        builder.write_uint32(pos + 0, number)
        builder.alloc_text(pos + 8, _encode_maybe(name))
        builder.alloc_text(pos + 16, _encode_maybe(kind))
        builder.alloc_text(pos + 24, _encode_maybe(environment))
        return builder.as_string()
    
    def __init__(self, number=0, name=None, kind=None, environment=None):
        _buf = Function.__new(number, name, kind, environment)
        self._init_from_buffer(_buf, 0, 1, 3)
    
    def shortrepr(self):
        parts = []
        parts.append("number = %s" % self.number)
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        if self.has_kind(): parts.append("kind = %s" % _text_unicode_repr(self.get_kind()))
        if self.has_environment(): parts.append("environment = %s" % _text_unicode_repr(self.get_environment()))
        return "(%s)" % ", ".join(parts)

_Function_list_item_type = _StructItemType(Function)

@ForgetFunctions.__extend__
class ForgetFunctions(_Struct):
    __capnpy_id__ = 0xd1e4f921c8a5811c
    __static_data_size__ = 0
    __static_ptrs_size__ = 1
    
    
    @property
    def numbers(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint32))
    
    def get_numbers(self):
        res = self.numbers
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_numbers(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(numbers=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint32), numbers)
        return builder.as_string()
    
    def __init__(self, numbers=None):
        _buf = ForgetFunctions.__new(numbers)
        self._init_from_buffer(_buf, 0, 0, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_numbers(): parts.append("numbers = %s" % self.get_numbers().shortrepr())
        return "(%s)" % ", ".join(parts)

_ForgetFunctions_list_item_type = _StructItemType(ForgetFunctions)

@Submit.__extend__
class Submit(_Struct):
    __capnpy_id__ = 0xbcdee20eaabd142d
    __static_data_size__ = 0
    __static_ptrs_size__ = 10
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def functions(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_functions(self):
        res = self.functions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_functions(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def large(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_large(self):
        res = self.large
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_large(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(32)
    
    def get_payload(self):
        return self._read_data(32, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def options(self):
        # no union check
        offset = 40
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Options.__new__(Options)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_options(self):
        res = self.options
        if res is None:
            return Options.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_options(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def inputs(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_inputs(self):
        res = self.inputs
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_inputs(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def input_counts(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint32))
    
    def get_input_counts(self):
        res = self.input_counts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_input_counts(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def keep(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint8))
    
    def get_keep(self):
        res = self.keep
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_keep(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def keep_earlier(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint64))
    
    def get_keep_earlier(self):
        res = self.keep_earlier
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_keep_earlier(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None, functions=None, sizes=None, large=None, payload=None, options=None, inputs=None, input_counts=None, keep=None, keep_earlier=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(80)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), functions)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), large)
        builder.alloc_data(pos + 32, payload)
        builder.copy_from_struct(pos + 40, Options, options)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), inputs)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint32), input_counts)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint8), keep)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint64), keep_earlier)
        return builder.as_string()
    
    def __init__(self, ids=None, functions=None, sizes=None, large=None, payload=None, options=None, inputs=None, input_counts=None, keep=None, keep_earlier=None):
        _buf = Submit.__new(ids, functions, sizes, large, payload, options, inputs, input_counts, keep, keep_earlier)
        self._init_from_buffer(_buf, 0, 0, 10)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_functions(): parts.append("functions = %s" % self.get_functions().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_large(): parts.append("large = %s" % self.get_large().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        if self.has_options(): parts.append("options = %s" % self.get_options().shortrepr())
        if self.has_inputs(): parts.append("inputs = %s" % self.get_inputs().shortrepr())
        if self.has_input_counts(): parts.append("inputCounts = %s" % self.get_input_counts().shortrepr())
        if self.has_keep(): parts.append("keep = %s" % self.get_keep().shortrepr())
        if self.has_keep_earlier(): parts.append("keepEarlier = %s" % self.get_keep_earlier().shortrepr())
        return "(%s)" % ", ".join(parts)

_Submit_list_item_type = _StructItemType(Submit)

@Dispatch.__extend__
class Dispatch(_Struct):
    __capnpy_id__ = 0xea6133e22b0caef7
    __static_data_size__ = 0
    __static_ptrs_size__ = 18
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def functions(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_functions(self):
        res = self.functions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_functions(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def large(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint32))
    
    def get_large(self):
        res = self.large
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_large(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(48)
    
    def get_payload(self):
        return self._read_data(48, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def flags(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint8))
    
    def get_flags(self):
        res = self.flags
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_flags(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def depths(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint32))
    
    def get_depths(self):
        res = self.depths
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_depths(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def priorities(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint32))
    
    def get_priorities(self):
        res = self.priorities
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_priorities(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def inputs(self):
        # no union check
        return self._read_list(80, _PrimitiveItemType(_Types.uint64))
    
    def get_inputs(self):
        res = self.inputs
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_inputs(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def input_counts(self):
        # no union check
        return self._read_list(88, _PrimitiveItemType(_Types.uint32))
    
    def get_input_counts(self):
        res = self.input_counts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_input_counts(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def input_sources(self):
        # no union check
        return self._read_list(96, _PrimitiveItemType(_Types.uint8))
    
    def get_input_sources(self):
        res = self.input_sources
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_input_sources(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def inline_sizes(self):
        # no union check
        return self._read_list(104, _PrimitiveItemType(_Types.uint32))
    
    def get_inline_sizes(self):
        res = self.inline_sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_inline_sizes(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_data(112)
    
    def get_names(self):
        return self._read_data(112, default_=b"")
    
    def has_names(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def name_sizes(self):
        # no union check
        return self._read_list(120, _PrimitiveItemType(_Types.uint32))
    
    def get_name_sizes(self):
        res = self.name_sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_name_sizes(self):
        ptr = self._read_fast_ptr(120)
        return ptr != 0
    
    @property
    def bookings(self):
        # no union check
        return self._read_data(128)
    
    def get_bookings(self):
        return self._read_data(128, default_=b"")
    
    def has_bookings(self):
        ptr = self._read_fast_ptr(128)
        return ptr != 0
    
    @property
    def row_bookings(self):
        # no union check
        return self._read_list(136, _PrimitiveItemType(_Types.uint32))
    
    def get_row_bookings(self):
        res = self.row_bookings
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_row_bookings(self):
        ptr = self._read_fast_ptr(136)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, attempts=None, functions=None, sizes=None, large=None, payload=None, flags=None, depths=None, priorities=None, inputs=None, input_counts=None, input_sources=None, inline_sizes=None, names=None, name_sizes=None, bookings=None, row_bookings=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(144)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), attempts)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), functions)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint32), large)
        builder.alloc_data(pos + 48, payload)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint8), flags)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint32), depths)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint32), priorities)
        builder.copy_from_list(pos + 80, _PrimitiveItemType(_Types.uint64), inputs)
        builder.copy_from_list(pos + 88, _PrimitiveItemType(_Types.uint32), input_counts)
        builder.copy_from_list(pos + 96, _PrimitiveItemType(_Types.uint8), input_sources)
        builder.copy_from_list(pos + 104, _PrimitiveItemType(_Types.uint32), inline_sizes)
        builder.alloc_data(pos + 112, names)
        builder.copy_from_list(pos + 120, _PrimitiveItemType(_Types.uint32), name_sizes)
        builder.alloc_data(pos + 128, bookings)
        builder.copy_from_list(pos + 136, _PrimitiveItemType(_Types.uint32), row_bookings)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, attempts=None, functions=None, sizes=None, large=None, payload=None, flags=None, depths=None, priorities=None, inputs=None, input_counts=None, input_sources=None, inline_sizes=None, names=None, name_sizes=None, bookings=None, row_bookings=None):
        _buf = Dispatch.__new(clients, ids, attempts, functions, sizes, large, payload, flags, depths, priorities, inputs, input_counts, input_sources, inline_sizes, names, name_sizes, bookings, row_bookings)
        self._init_from_buffer(_buf, 0, 0, 18)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        if self.has_functions(): parts.append("functions = %s" % self.get_functions().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_large(): parts.append("large = %s" % self.get_large().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        if self.has_flags(): parts.append("flags = %s" % self.get_flags().shortrepr())
        if self.has_depths(): parts.append("depths = %s" % self.get_depths().shortrepr())
        if self.has_priorities(): parts.append("priorities = %s" % self.get_priorities().shortrepr())
        if self.has_inputs(): parts.append("inputs = %s" % self.get_inputs().shortrepr())
        if self.has_input_counts(): parts.append("inputCounts = %s" % self.get_input_counts().shortrepr())
        if self.has_input_sources(): parts.append("inputSources = %s" % self.get_input_sources().shortrepr())
        if self.has_inline_sizes(): parts.append("inlineSizes = %s" % self.get_inline_sizes().shortrepr())
        if self.has_names(): parts.append("names = %s" % _data_repr(self.get_names()))
        if self.has_name_sizes(): parts.append("nameSizes = %s" % self.get_name_sizes().shortrepr())
        if self.has_bookings(): parts.append("bookings = %s" % _data_repr(self.get_bookings()))
        if self.has_row_bookings(): parts.append("rowBookings = %s" % self.get_row_bookings().shortrepr())
        return "(%s)" % ", ".join(parts)

_Dispatch_list_item_type = _StructItemType(Dispatch)

@Results.__extend__
class Results(_Struct):
    __capnpy_id__ = 0x950bf41333a8971f
    __static_data_size__ = 0
    __static_ptrs_size__ = 15
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def outcomes(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint8))
    
    def get_outcomes(self):
        res = self.outcomes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_outcomes(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def durations(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint64))
    
    def get_durations(self):
        res = self.durations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_durations(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def large(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint32))
    
    def get_large(self):
        res = self.large
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_large(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(56)
    
    def get_payload(self):
        return self._read_data(56, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def cpu_times(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint64))
    
    def get_cpu_times(self):
        res = self.cpu_times
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_cpu_times(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def peaks(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint64))
    
    def get_peaks(self):
        res = self.peaks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_peaks(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def errors(self):
        # no union check
        return self._read_data(80)
    
    def get_errors(self):
        return self._read_data(80, default_=b"")
    
    def has_errors(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def error_sizes(self):
        # no union check
        return self._read_list(88, _PrimitiveItemType(_Types.uint32))
    
    def get_error_sizes(self):
        res = self.error_sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_error_sizes(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def tracebacks(self):
        # no union check
        return self._read_data(96)
    
    def get_tracebacks(self):
        return self._read_data(96, default_=b"")
    
    def has_tracebacks(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def traceback_sizes(self):
        # no union check
        return self._read_list(104, _PrimitiveItemType(_Types.uint32))
    
    def get_traceback_sizes(self):
        res = self.traceback_sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_traceback_sizes(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def calls(self):
        # no union check
        return self._read_list(112, _PrimitiveItemType(_Types.uint32))
    
    def get_calls(self):
        res = self.calls
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_calls(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, attempts=None, outcomes=None, durations=None, sizes=None, large=None, payload=None, cpu_times=None, peaks=None, errors=None, error_sizes=None, tracebacks=None, traceback_sizes=None, calls=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(120)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), attempts)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint8), outcomes)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), durations)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint32), large)
        builder.alloc_data(pos + 56, payload)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint64), cpu_times)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint64), peaks)
        builder.alloc_data(pos + 80, errors)
        builder.copy_from_list(pos + 88, _PrimitiveItemType(_Types.uint32), error_sizes)
        builder.alloc_data(pos + 96, tracebacks)
        builder.copy_from_list(pos + 104, _PrimitiveItemType(_Types.uint32), traceback_sizes)
        builder.copy_from_list(pos + 112, _PrimitiveItemType(_Types.uint32), calls)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, attempts=None, outcomes=None, durations=None, sizes=None, large=None, payload=None, cpu_times=None, peaks=None, errors=None, error_sizes=None, tracebacks=None, traceback_sizes=None, calls=None):
        _buf = Results.__new(clients, ids, attempts, outcomes, durations, sizes, large, payload, cpu_times, peaks, errors, error_sizes, tracebacks, traceback_sizes, calls)
        self._init_from_buffer(_buf, 0, 0, 15)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        if self.has_outcomes(): parts.append("outcomes = %s" % self.get_outcomes().shortrepr())
        if self.has_durations(): parts.append("durations = %s" % self.get_durations().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_large(): parts.append("large = %s" % self.get_large().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        if self.has_cpu_times(): parts.append("cpuTimes = %s" % self.get_cpu_times().shortrepr())
        if self.has_peaks(): parts.append("peaks = %s" % self.get_peaks().shortrepr())
        if self.has_errors(): parts.append("errors = %s" % _data_repr(self.get_errors()))
        if self.has_error_sizes(): parts.append("errorSizes = %s" % self.get_error_sizes().shortrepr())
        if self.has_tracebacks(): parts.append("tracebacks = %s" % _data_repr(self.get_tracebacks()))
        if self.has_traceback_sizes(): parts.append("tracebackSizes = %s" % self.get_traceback_sizes().shortrepr())
        if self.has_calls(): parts.append("calls = %s" % self.get_calls().shortrepr())
        return "(%s)" % ", ".join(parts)

_Results_list_item_type = _StructItemType(Results)

@Resolved.__extend__
class Resolved(_Struct):
    __capnpy_id__ = 0xa09d70753bbc0ea7
    __static_data_size__ = 0
    __static_ptrs_size__ = 8
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def outcomes(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint8))
    
    def get_outcomes(self):
        res = self.outcomes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_outcomes(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def large(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_large(self):
        res = self.large
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_large(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(32)
    
    def get_payload(self):
        return self._read_data(32, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def durations(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint64))
    
    def get_durations(self):
        res = self.durations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_durations(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def cpu_times(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_cpu_times(self):
        res = self.cpu_times
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_cpu_times(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def peaks(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint64))
    
    def get_peaks(self):
        res = self.peaks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_peaks(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None, outcomes=None, sizes=None, large=None, payload=None, durations=None, cpu_times=None, peaks=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(64)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint8), outcomes)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), large)
        builder.alloc_data(pos + 32, payload)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint64), durations)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), cpu_times)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint64), peaks)
        return builder.as_string()
    
    def __init__(self, ids=None, outcomes=None, sizes=None, large=None, payload=None, durations=None, cpu_times=None, peaks=None):
        _buf = Resolved.__new(ids, outcomes, sizes, large, payload, durations, cpu_times, peaks)
        self._init_from_buffer(_buf, 0, 0, 8)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_outcomes(): parts.append("outcomes = %s" % self.get_outcomes().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_large(): parts.append("large = %s" % self.get_large().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        if self.has_durations(): parts.append("durations = %s" % self.get_durations().shortrepr())
        if self.has_cpu_times(): parts.append("cpuTimes = %s" % self.get_cpu_times().shortrepr())
        if self.has_peaks(): parts.append("peaks = %s" % self.get_peaks().shortrepr())
        return "(%s)" % ", ".join(parts)

_Resolved_list_item_type = _StructItemType(Resolved)

@Started.__extend__
class Started(_Struct):
    __capnpy_id__ = 0xaeffa964349dc094
    __static_data_size__ = 0
    __static_ptrs_size__ = 3
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, attempts=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), attempts)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, attempts=None):
        _buf = Started.__new(clients, ids, attempts)
        self._init_from_buffer(_buf, 0, 0, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        return "(%s)" % ", ".join(parts)

_Started_list_item_type = _StructItemType(Started)

@Cancel.__extend__
class Cancel(_Struct):
    __capnpy_id__ = 0xb611a3fdd5c77789
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def force(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint8))
    
    def get_force(self):
        res = self.force
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_force(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None, force=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint8), force)
        return builder.as_string()
    
    def __init__(self, ids=None, force=None):
        _buf = Cancel.__new(ids, force)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_force(): parts.append("force = %s" % self.get_force().shortrepr())
        return "(%s)" % ", ".join(parts)

_Cancel_list_item_type = _StructItemType(Cancel)

@CancelRefused.__extend__
class CancelRefused(_Struct):
    __capnpy_id__ = 0xc36309a23f1ba41d
    __static_data_size__ = 0
    __static_ptrs_size__ = 1
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        return builder.as_string()
    
    def __init__(self, ids=None):
        _buf = CancelRefused.__new(ids)
        self._init_from_buffer(_buf, 0, 0, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        return "(%s)" % ", ".join(parts)

_CancelRefused_list_item_type = _StructItemType(CancelRefused)

@WorkerDied.__extend__
class WorkerDied(_Struct):
    __capnpy_id__ = 0xae243a6c7b1b2cbb
    __static_data_size__ = 5
    __static_ptrs_size__ = 1
    
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def pid(self):
        # no union check
        value = self._read_primitive(8, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def cause(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_cause(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_cause(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def peak_bytes(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def attempt(self):
        # no union check
        value = self._read_primitive(12, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(incarnation=0, pid=0, cause=None, peak_bytes=0, client=0, id=0, attempt=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(48)
        builder.write_uint64(pos + 0, incarnation)
        builder.write_uint32(pos + 8, pid)
        builder.alloc_text(pos + 40, _encode_maybe(cause))
        builder.write_uint64(pos + 16, peak_bytes)
        builder.write_uint64(pos + 24, client)
        builder.write_uint64(pos + 32, id)
        builder.write_uint32(pos + 12, attempt)
        return builder.as_string()
    
    def __init__(self, incarnation=0, pid=0, cause=None, peak_bytes=0, client=0, id=0, attempt=0):
        _buf = WorkerDied.__new(incarnation, pid, cause, peak_bytes, client, id, attempt)
        self._init_from_buffer(_buf, 0, 5, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("pid = %s" % self.pid)
        if self.has_cause(): parts.append("cause = %s" % _text_unicode_repr(self.get_cause()))
        parts.append("peakBytes = %s" % self.peak_bytes)
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("attempt = %s" % self.attempt)
        return "(%s)" % ", ".join(parts)

_WorkerDied_list_item_type = _StructItemType(WorkerDied)

@Error.__extend__
class Error(_Struct):
    __capnpy_id__ = 0x9258ea883e66b6f6
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def text(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_text(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def tasks(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_tasks(self):
        res = self.tasks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_tasks(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(text=None, tasks=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.alloc_text(pos + 0, _encode_maybe(text))
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), tasks)
        return builder.as_string()
    
    def __init__(self, text=None, tasks=None):
        _buf = Error.__new(text, tasks)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_text(): parts.append("text = %s" % _text_unicode_repr(self.get_text()))
        if self.has_tasks(): parts.append("tasks = %s" % self.get_tasks().shortrepr())
        return "(%s)" % ", ".join(parts)

_Error_list_item_type = _StructItemType(Error)

@Snapshot.__extend__
class Snapshot(_Struct):
    __capnpy_id__ = 0xc687910d18d52488
    __static_data_size__ = 22
    __static_ptrs_size__ = 21
    
    
    @property
    def protocol_version(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def version(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_version(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_version(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def uptime_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def address(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_address(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_address(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def waiting(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def dispatched(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def resolved(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def clients(self):
        # no union check
        value = self._read_primitive(4, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def workers(self):
        # no union check
        value = self._read_primitive(48, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def agents(self):
        # no union check
        value = self._read_primitive(52, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def received(self):
        # no union check
        return self._read_list(16, _Counter_list_item_type)
    
    def get_received(self):
        res = self.received
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Counter_list_item_type)
        return res
    
    def has_received(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def sent(self):
        # no union check
        return self._read_list(24, _Counter_list_item_type)
    
    def get_sent(self):
        res = self.sent
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Counter_list_item_type)
        return res
    
    def has_sent(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def dropped(self):
        # no union check
        return self._read_list(32, _Counter_list_item_type)
    
    def get_dropped(self):
        res = self.dropped
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Counter_list_item_type)
        return res
    
    def has_dropped(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def sequence(self):
        # no union check
        value = self._read_primitive(56, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unix_milliseconds(self):
        # no union check
        value = self._read_primitive(64, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def blocked(self):
        # no union check
        value = self._read_primitive(72, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def running(self):
        # no union check
        value = self._read_primitive(80, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def suspended(self):
        # no union check
        value = self._read_primitive(88, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def outcomes(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint64))
    
    def get_outcomes(self):
        res = self.outcomes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_outcomes(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def functions(self):
        # no union check
        value = self._read_primitive(96, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def objects(self):
        # no union check
        value = self._read_primitive(104, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def process(self):
        # no union check
        offset = 48
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = SchedulerProcess.__new__(SchedulerProcess)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_process(self):
        res = self.process
        if res is None:
            return SchedulerProcess.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_process(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def texts(self):
        # no union check
        offset = 56
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Texts.__new__(Texts)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_texts(self):
        res = self.texts
        if res is None:
            return Texts.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_texts(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def worker_columns(self):
        # no union check
        offset = 64
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = WorkerColumns.__new__(WorkerColumns)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_worker_columns(self):
        res = self.worker_columns
        if res is None:
            return WorkerColumns.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_worker_columns(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def agent_columns(self):
        # no union check
        offset = 72
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = AgentColumns.__new__(AgentColumns)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_agent_columns(self):
        res = self.agent_columns
        if res is None:
            return AgentColumns.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_agent_columns(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def client_columns(self):
        # no union check
        offset = 80
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ClientColumns.__new__(ClientColumns)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_client_columns(self):
        res = self.client_columns
        if res is None:
            return ClientColumns.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_client_columns(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def function_columns(self):
        # no union check
        offset = 88
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = FunctionColumns.__new__(FunctionColumns)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_function_columns(self):
        res = self.function_columns
        if res is None:
            return FunctionColumns.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_function_columns(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def object_columns(self):
        # no union check
        offset = 96
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ObjectColumns.__new__(ObjectColumns)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_object_columns(self):
        res = self.object_columns
        if res is None:
            return ObjectColumns.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_object_columns(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def deaths(self):
        # no union check
        return self._read_list(104, _Counter_list_item_type)
    
    def get_deaths(self):
        res = self.deaths
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Counter_list_item_type)
        return res
    
    def has_deaths(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def retries(self):
        # no union check
        value = self._read_primitive(112, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def dispatch_latencies(self):
        # no union check
        return self._read_list(112, _PrimitiveItemType(_Types.uint64))
    
    def get_dispatch_latencies(self):
        res = self.dispatch_latencies
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_dispatch_latencies(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def dispatch_latency_microseconds(self):
        # no union check
        value = self._read_primitive(120, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def waiting_bytes(self):
        # no union check
        value = self._read_primitive(128, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def object_bytes(self):
        # no union check
        value = self._read_primitive(136, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def memory_limit_bytes(self):
        # no union check
        value = self._read_primitive(144, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unschedulable(self):
        # no union check
        value = self._read_primitive(152, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unreachable_hosts(self):
        # no union check
        return self._read_list(120, _Counter_list_item_type)
    
    def get_unreachable_hosts(self):
        res = self.unreachable_hosts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Counter_list_item_type)
        return res
    
    def has_unreachable_hosts(self):
        ptr = self._read_fast_ptr(120)
        return ptr != 0
    
    @property
    def shares(self):
        # no union check
        return self._read_list(128, _Share_list_item_type)
    
    def get_shares(self):
        res = self.shares
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Share_list_item_type)
        return res
    
    def has_shares(self):
        ptr = self._read_fast_ptr(128)
        return ptr != 0
    
    @property
    def limits(self):
        # no union check
        return self._read_list(136, _TaskLimit_list_item_type)
    
    def get_limits(self):
        res = self.limits
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TaskLimit_list_item_type)
        return res
    
    def has_limits(self):
        ptr = self._read_fast_ptr(136)
        return ptr != 0
    
    @property
    def resources(self):
        # no union check
        return self._read_list(144, _HostPool_list_item_type)
    
    def get_resources(self):
        res = self.resources
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _HostPool_list_item_type)
        return res
    
    def has_resources(self):
        ptr = self._read_fast_ptr(144)
        return ptr != 0
    
    @property
    def resources_waiting(self):
        # no union check
        value = self._read_primitive(160, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def reservation_milliseconds(self):
        # no union check
        value = self._read_primitive(168, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def needs(self):
        # no union check
        return self._read_list(152, _Need_list_item_type)
    
    def get_needs(self):
        res = self.needs
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Need_list_item_type)
        return res
    
    def has_needs(self):
        ptr = self._read_fast_ptr(152)
        return ptr != 0
    
    @property
    def pools(self):
        # no union check
        return self._read_list(160, _PoolState_list_item_type)
    
    def get_pools(self):
        res = self.pools
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PoolState_list_item_type)
        return res
    
    def has_pools(self):
        ptr = self._read_fast_ptr(160)
        return ptr != 0
    
    @staticmethod
    def __new(protocol_version=0, version=None, incarnation=0, uptime_milliseconds=0, address=None, waiting=0, dispatched=0, resolved=0, clients=0, workers=0, agents=0, received=None, sent=None, dropped=None, sequence=0, unix_milliseconds=0, blocked=0, running=0, suspended=0, outcomes=None, functions=0, objects=0, process=None, texts=None, worker_columns=None, agent_columns=None, client_columns=None, function_columns=None, object_columns=None, deaths=None, retries=0, dispatch_latencies=None, dispatch_latency_microseconds=0, waiting_bytes=0, object_bytes=0, memory_limit_bytes=0, unschedulable=0, unreachable_hosts=None, shares=None, limits=None, resources=None, resources_waiting=0, reservation_milliseconds=0, needs=None, pools=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(344)
        builder.write_uint32(pos + 0, protocol_version)
        builder.alloc_text(pos + 176, _encode_maybe(version))
        builder.write_uint64(pos + 8, incarnation)
        builder.write_uint64(pos + 16, uptime_milliseconds)
        builder.alloc_text(pos + 184, _encode_maybe(address))
        builder.write_uint64(pos + 24, waiting)
        builder.write_uint64(pos + 32, dispatched)
        builder.write_uint64(pos + 40, resolved)
        builder.write_uint32(pos + 4, clients)
        builder.write_uint32(pos + 48, workers)
        builder.write_uint32(pos + 52, agents)
        builder.copy_from_list(pos + 192, _Counter_list_item_type, received)
        builder.copy_from_list(pos + 200, _Counter_list_item_type, sent)
        builder.copy_from_list(pos + 208, _Counter_list_item_type, dropped)
        builder.write_uint64(pos + 56, sequence)
        builder.write_uint64(pos + 64, unix_milliseconds)
        builder.write_uint64(pos + 72, blocked)
        builder.write_uint64(pos + 80, running)
        builder.write_uint64(pos + 88, suspended)
        builder.copy_from_list(pos + 216, _PrimitiveItemType(_Types.uint64), outcomes)
        builder.write_uint32(pos + 96, functions)
        builder.write_uint64(pos + 104, objects)
        builder.copy_from_struct(pos + 224, SchedulerProcess, process)
        builder.copy_from_struct(pos + 232, Texts, texts)
        builder.copy_from_struct(pos + 240, WorkerColumns, worker_columns)
        builder.copy_from_struct(pos + 248, AgentColumns, agent_columns)
        builder.copy_from_struct(pos + 256, ClientColumns, client_columns)
        builder.copy_from_struct(pos + 264, FunctionColumns, function_columns)
        builder.copy_from_struct(pos + 272, ObjectColumns, object_columns)
        builder.copy_from_list(pos + 280, _Counter_list_item_type, deaths)
        builder.write_uint64(pos + 112, retries)
        builder.copy_from_list(pos + 288, _PrimitiveItemType(_Types.uint64), dispatch_latencies)
        builder.write_uint64(pos + 120, dispatch_latency_microseconds)
        builder.write_uint64(pos + 128, waiting_bytes)
        builder.write_uint64(pos + 136, object_bytes)
        builder.write_uint64(pos + 144, memory_limit_bytes)
        builder.write_uint64(pos + 152, unschedulable)
        builder.copy_from_list(pos + 296, _Counter_list_item_type, unreachable_hosts)
        builder.copy_from_list(pos + 304, _Share_list_item_type, shares)
        builder.copy_from_list(pos + 312, _TaskLimit_list_item_type, limits)
        builder.copy_from_list(pos + 320, _HostPool_list_item_type, resources)
        builder.write_uint64(pos + 160, resources_waiting)
        builder.write_uint64(pos + 168, reservation_milliseconds)
        builder.copy_from_list(pos + 328, _Need_list_item_type, needs)
        builder.copy_from_list(pos + 336, _PoolState_list_item_type, pools)
        return builder.as_string()
    
    def __init__(self, protocol_version=0, version=None, incarnation=0, uptime_milliseconds=0, address=None, waiting=0, dispatched=0, resolved=0, clients=0, workers=0, agents=0, received=None, sent=None, dropped=None, sequence=0, unix_milliseconds=0, blocked=0, running=0, suspended=0, outcomes=None, functions=0, objects=0, process=None, texts=None, worker_columns=None, agent_columns=None, client_columns=None, function_columns=None, object_columns=None, deaths=None, retries=0, dispatch_latencies=None, dispatch_latency_microseconds=0, waiting_bytes=0, object_bytes=0, memory_limit_bytes=0, unschedulable=0, unreachable_hosts=None, shares=None, limits=None, resources=None, resources_waiting=0, reservation_milliseconds=0, needs=None, pools=None):
        _buf = Snapshot.__new(protocol_version, version, incarnation, uptime_milliseconds, address, waiting, dispatched, resolved, clients, workers, agents, received, sent, dropped, sequence, unix_milliseconds, blocked, running, suspended, outcomes, functions, objects, process, texts, worker_columns, agent_columns, client_columns, function_columns, object_columns, deaths, retries, dispatch_latencies, dispatch_latency_microseconds, waiting_bytes, object_bytes, memory_limit_bytes, unschedulable, unreachable_hosts, shares, limits, resources, resources_waiting, reservation_milliseconds, needs, pools)
        self._init_from_buffer(_buf, 0, 22, 21)
    
    def shortrepr(self):
        parts = []
        parts.append("protocolVersion = %s" % self.protocol_version)
        if self.has_version(): parts.append("version = %s" % _text_unicode_repr(self.get_version()))
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("uptimeMilliseconds = %s" % self.uptime_milliseconds)
        if self.has_address(): parts.append("address = %s" % _text_unicode_repr(self.get_address()))
        parts.append("waiting = %s" % self.waiting)
        parts.append("dispatched = %s" % self.dispatched)
        parts.append("resolved = %s" % self.resolved)
        parts.append("clients = %s" % self.clients)
        parts.append("workers = %s" % self.workers)
        parts.append("agents = %s" % self.agents)
        if self.has_received(): parts.append("received = %s" % self.get_received().shortrepr())
        if self.has_sent(): parts.append("sent = %s" % self.get_sent().shortrepr())
        if self.has_dropped(): parts.append("dropped = %s" % self.get_dropped().shortrepr())
        parts.append("sequence = %s" % self.sequence)
        parts.append("unixMilliseconds = %s" % self.unix_milliseconds)
        parts.append("blocked = %s" % self.blocked)
        parts.append("running = %s" % self.running)
        parts.append("suspended = %s" % self.suspended)
        if self.has_outcomes(): parts.append("outcomes = %s" % self.get_outcomes().shortrepr())
        parts.append("functions = %s" % self.functions)
        parts.append("objects = %s" % self.objects)
        if self.has_process(): parts.append("process = %s" % self.get_process().shortrepr())
        if self.has_texts(): parts.append("texts = %s" % self.get_texts().shortrepr())
        if self.has_worker_columns(): parts.append("workerColumns = %s" % self.get_worker_columns().shortrepr())
        if self.has_agent_columns(): parts.append("agentColumns = %s" % self.get_agent_columns().shortrepr())
        if self.has_client_columns(): parts.append("clientColumns = %s" % self.get_client_columns().shortrepr())
        if self.has_function_columns(): parts.append("functionColumns = %s" % self.get_function_columns().shortrepr())
        if self.has_object_columns(): parts.append("objectColumns = %s" % self.get_object_columns().shortrepr())
        if self.has_deaths(): parts.append("deaths = %s" % self.get_deaths().shortrepr())
        parts.append("retries = %s" % self.retries)
        if self.has_dispatch_latencies(): parts.append("dispatchLatencies = %s" % self.get_dispatch_latencies().shortrepr())
        parts.append("dispatchLatencyMicroseconds = %s" % self.dispatch_latency_microseconds)
        parts.append("waitingBytes = %s" % self.waiting_bytes)
        parts.append("objectBytes = %s" % self.object_bytes)
        parts.append("memoryLimitBytes = %s" % self.memory_limit_bytes)
        parts.append("unschedulable = %s" % self.unschedulable)
        if self.has_unreachable_hosts(): parts.append("unreachableHosts = %s" % self.get_unreachable_hosts().shortrepr())
        if self.has_shares(): parts.append("shares = %s" % self.get_shares().shortrepr())
        if self.has_limits(): parts.append("limits = %s" % self.get_limits().shortrepr())
        if self.has_resources(): parts.append("resources = %s" % self.get_resources().shortrepr())
        parts.append("resourcesWaiting = %s" % self.resources_waiting)
        parts.append("reservationMilliseconds = %s" % self.reservation_milliseconds)
        if self.has_needs(): parts.append("needs = %s" % self.get_needs().shortrepr())
        if self.has_pools(): parts.append("pools = %s" % self.get_pools().shortrepr())
        return "(%s)" % ", ".join(parts)

_Snapshot_list_item_type = _StructItemType(Snapshot)

@Tasks.__extend__
class Tasks(_Struct):
    __capnpy_id__ = 0x9d7e44066f2e81a7
    __static_data_size__ = 0
    __static_ptrs_size__ = 3
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, attempts=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), attempts)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, attempts=None):
        _buf = Tasks.__new(clients, ids, attempts)
        self._init_from_buffer(_buf, 0, 0, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        return "(%s)" % ", ".join(parts)

_Tasks_list_item_type = _StructItemType(Tasks)

@Retracted.__extend__
class Retracted(_Struct):
    __capnpy_id__ = 0xdc336d08646437fe
    __static_data_size__ = 0
    __static_ptrs_size__ = 4
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def returned(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint8))
    
    def get_returned(self):
        res = self.returned
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_returned(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, attempts=None, returned=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(32)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), attempts)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint8), returned)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, attempts=None, returned=None):
        _buf = Retracted.__new(clients, ids, attempts, returned)
        self._init_from_buffer(_buf, 0, 0, 4)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        if self.has_returned(): parts.append("returned = %s" % self.get_returned().shortrepr())
        return "(%s)" % ", ".join(parts)

_Retracted_list_item_type = _StructItemType(Retracted)

@EndWorker.__extend__
class EndWorker(_Struct):
    __capnpy_id__ = 0xf7f7e2c802df4c43
    __static_data_size__ = 4
    __static_ptrs_size__ = 1
    
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def attempt(self):
        # no union check
        value = self._read_primitive(24, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def reason(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_reason(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_reason(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(incarnation=0, client=0, id=0, attempt=0, reason=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.write_uint64(pos + 0, incarnation)
        builder.write_uint64(pos + 8, client)
        builder.write_uint64(pos + 16, id)
        builder.write_uint32(pos + 24, attempt)
        builder.alloc_text(pos + 32, _encode_maybe(reason))
        return builder.as_string()
    
    def __init__(self, incarnation=0, client=0, id=0, attempt=0, reason=None):
        _buf = EndWorker.__new(incarnation, client, id, attempt, reason)
        self._init_from_buffer(_buf, 0, 4, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("attempt = %s" % self.attempt)
        if self.has_reason(): parts.append("reason = %s" % _text_unicode_repr(self.get_reason()))
        return "(%s)" % ", ".join(parts)

_EndWorker_list_item_type = _StructItemType(EndWorker)

@Credit.__extend__
class Credit(_Struct):
    __capnpy_id__ = 0xff1157d827ba88f0
    __static_data_size__ = 1
    __static_ptrs_size__ = 0
    
    
    @property
    def bytes(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(bytes=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.write_uint64(pos + 0, bytes)
        return builder.as_string()
    
    def __init__(self, bytes=0):
        _buf = Credit.__new(bytes)
        self._init_from_buffer(_buf, 0, 1, 0)
    
    def shortrepr(self):
        parts = []
        parts.append("bytes = %s" % self.bytes)
        return "(%s)" % ", ".join(parts)

_Credit_list_item_type = _StructItemType(Credit)

@Received.__extend__
class Received(_Struct):
    __capnpy_id__ = 0xfdc01b720d935353
    __static_data_size__ = 1
    __static_ptrs_size__ = 0
    
    
    @property
    def bytes(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(bytes=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.write_uint64(pos + 0, bytes)
        return builder.as_string()
    
    def __init__(self, bytes=0):
        _buf = Received.__new(bytes)
        self._init_from_buffer(_buf, 0, 1, 0)
    
    def shortrepr(self):
        parts = []
        parts.append("bytes = %s" % self.bytes)
        return "(%s)" % ", ".join(parts)

_Received_list_item_type = _StructItemType(Received)

@Object.__extend__
class Object(_Struct):
    __capnpy_id__ = 0xffa5627f5db89e1b
    __static_data_size__ = 3
    __static_ptrs_size__ = 2
    
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def file_bytes(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def data(self):
        # no union check
        offset = 8
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = DataAddress.__new__(DataAddress)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_data(self):
        res = self.data
        if res is None:
            return DataAddress.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_data(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(client=0, id=0, name=None, file_bytes=0, data=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.alloc_text(pos + 24, _encode_maybe(name))
        builder.write_uint64(pos + 16, file_bytes)
        builder.copy_from_struct(pos + 32, DataAddress, data)
        return builder.as_string()
    
    def __init__(self, client=0, id=0, name=None, file_bytes=0, data=None):
        _buf = Object.__new(client, id, name, file_bytes, data)
        self._init_from_buffer(_buf, 0, 3, 2)
    
    def shortrepr(self):
        parts = []
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("fileBytes = %s" % self.file_bytes)
        if self.has_data(): parts.append("data = %s" % self.get_data().shortrepr())
        return "(%s)" % ", ".join(parts)

_Object_list_item_type = _StructItemType(Object)

@ForgetObjects.__extend__
class ForgetObjects(_Struct):
    __capnpy_id__ = 0x965fbf8df13c1d77
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None):
        _buf = ForgetObjects.__new(clients, ids)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        return "(%s)" % ", ".join(parts)

_ForgetObjects_list_item_type = _StructItemType(ForgetObjects)

@Output.__extend__
class Output(_Struct):
    __capnpy_id__ = 0xac947a07434a1972
    __static_data_size__ = 0
    __static_ptrs_size__ = 7
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def streams(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint8))
    
    def get_streams(self):
        res = self.streams
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_streams(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def labels(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_labels(self):
        res = self.labels
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_labels(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def text(self):
        # no union check
        return self._read_data(40)
    
    def get_text(self):
        return self._read_data(40, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def dropped(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_dropped(self):
        res = self.dropped
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_dropped(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, streams=None, labels=None, sizes=None, text=None, dropped=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(56)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint8), streams)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), labels)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), sizes)
        builder.alloc_data(pos + 40, text)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), dropped)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, streams=None, labels=None, sizes=None, text=None, dropped=None):
        _buf = Output.__new(clients, ids, streams, labels, sizes, text, dropped)
        self._init_from_buffer(_buf, 0, 0, 7)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_streams(): parts.append("streams = %s" % self.get_streams().shortrepr())
        if self.has_labels(): parts.append("labels = %s" % self.get_labels().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_text(): parts.append("text = %s" % _data_repr(self.get_text()))
        if self.has_dropped(): parts.append("dropped = %s" % self.get_dropped().shortrepr())
        return "(%s)" % ", ".join(parts)

_Output_list_item_type = _StructItemType(Output)

@FetchObjects.__extend__
class FetchObjects(_Struct):
    __capnpy_id__ = 0xe5b2f80695f5634e
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None):
        _buf = FetchObjects.__new(clients, ids)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        return "(%s)" % ", ".join(parts)

_FetchObjects_list_item_type = _StructItemType(FetchObjects)

@History.__extend__
class History(_Struct):
    __capnpy_id__ = 0xae0879926a48d682
    __static_data_size__ = 0
    __static_ptrs_size__ = 17
    
    
    @property
    def incarnation(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_incarnation(self):
        res = self.incarnation
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_incarnation(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def first(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_first(self):
        res = self.first
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_first(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def kinds(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint8))
    
    def get_kinds(self):
        res = self.kinds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_kinds(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def times(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_times(self):
        res = self.times
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_times(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def clients(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def workers(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint64))
    
    def get_workers(self):
        res = self.workers
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_workers(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def outcomes(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint8))
    
    def get_outcomes(self):
        res = self.outcomes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_outcomes(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def durations(self):
        # no union check
        return self._read_list(80, _PrimitiveItemType(_Types.uint64))
    
    def get_durations(self):
        res = self.durations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_durations(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def text(self):
        # no union check
        return self._read_data(88)
    
    def get_text(self):
        return self._read_data(88, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(96, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def errors(self):
        # no union check
        return self._read_list(104, _PrimitiveItemType(_Types.uint32))
    
    def get_errors(self):
        res = self.errors
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_errors(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def functions(self):
        # no union check
        return self._read_list(112, _PrimitiveItemType(_Types.uint32))
    
    def get_functions(self):
        res = self.functions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_functions(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def tracebacks(self):
        # no union check
        return self._read_list(120, _PrimitiveItemType(_Types.uint32))
    
    def get_tracebacks(self):
        res = self.tracebacks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_tracebacks(self):
        ptr = self._read_fast_ptr(120)
        return ptr != 0
    
    @property
    def wait_reasons(self):
        # no union check
        return self._read_list(128, _PrimitiveItemType(_Types.uint32))
    
    def get_wait_reasons(self):
        res = self.wait_reasons
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_wait_reasons(self):
        ptr = self._read_fast_ptr(128)
        return ptr != 0
    
    @staticmethod
    def __new(incarnation=None, first=None, kinds=None, times=None, clients=None, ids=None, attempts=None, workers=None, names=None, outcomes=None, durations=None, text=None, sizes=None, errors=None, functions=None, tracebacks=None, wait_reasons=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(136)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), incarnation)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), first)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint8), kinds)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), times)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint32), attempts)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint64), workers)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint8), outcomes)
        builder.copy_from_list(pos + 80, _PrimitiveItemType(_Types.uint64), durations)
        builder.alloc_data(pos + 88, text)
        builder.copy_from_list(pos + 96, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 104, _PrimitiveItemType(_Types.uint32), errors)
        builder.copy_from_list(pos + 112, _PrimitiveItemType(_Types.uint32), functions)
        builder.copy_from_list(pos + 120, _PrimitiveItemType(_Types.uint32), tracebacks)
        builder.copy_from_list(pos + 128, _PrimitiveItemType(_Types.uint32), wait_reasons)
        return builder.as_string()
    
    def __init__(self, incarnation=None, first=None, kinds=None, times=None, clients=None, ids=None, attempts=None, workers=None, names=None, outcomes=None, durations=None, text=None, sizes=None, errors=None, functions=None, tracebacks=None, wait_reasons=None):
        _buf = History.__new(incarnation, first, kinds, times, clients, ids, attempts, workers, names, outcomes, durations, text, sizes, errors, functions, tracebacks, wait_reasons)
        self._init_from_buffer(_buf, 0, 0, 17)
    
    def shortrepr(self):
        parts = []
        if self.has_incarnation(): parts.append("incarnation = %s" % self.get_incarnation().shortrepr())
        if self.has_first(): parts.append("first = %s" % self.get_first().shortrepr())
        if self.has_kinds(): parts.append("kinds = %s" % self.get_kinds().shortrepr())
        if self.has_times(): parts.append("times = %s" % self.get_times().shortrepr())
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        if self.has_workers(): parts.append("workers = %s" % self.get_workers().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_outcomes(): parts.append("outcomes = %s" % self.get_outcomes().shortrepr())
        if self.has_durations(): parts.append("durations = %s" % self.get_durations().shortrepr())
        if self.has_text(): parts.append("text = %s" % _data_repr(self.get_text()))
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_errors(): parts.append("errors = %s" % self.get_errors().shortrepr())
        if self.has_functions(): parts.append("functions = %s" % self.get_functions().shortrepr())
        if self.has_tracebacks(): parts.append("tracebacks = %s" % self.get_tracebacks().shortrepr())
        if self.has_wait_reasons(): parts.append("waitReasons = %s" % self.get_wait_reasons().shortrepr())
        return "(%s)" % ", ".join(parts)

_History_list_item_type = _StructItemType(History)

@Graphs.__extend__
class Graphs(_Struct):
    __capnpy_id__ = 0x970ea67684428d6c
    __static_data_size__ = 0
    __static_ptrs_size__ = 13
    
    
    @property
    def incarnation(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_incarnation(self):
        res = self.incarnation
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_incarnation(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def total(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_total(self):
        res = self.total
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_total(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def clients(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def states(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint8))
    
    def get_states(self):
        res = self.states
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_states(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def inputs(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_inputs(self):
        res = self.inputs
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_inputs(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def input_counts(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint32))
    
    def get_input_counts(self):
        res = self.input_counts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_input_counts(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def text(self):
        # no union check
        return self._read_data(64)
    
    def get_text(self):
        return self._read_data(64, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def graphs(self):
        # no union check
        return self._read_list(80, _PrimitiveItemType(_Types.uint64))
    
    def get_graphs(self):
        res = self.graphs
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_graphs(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def keys(self):
        # no union check
        return self._read_list(88, _PrimitiveItemType(_Types.uint32))
    
    def get_keys(self):
        res = self.keys
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_keys(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def submit_milliseconds(self):
        # no union check
        return self._read_list(96, _PrimitiveItemType(_Types.uint64))
    
    def get_submit_milliseconds(self):
        res = self.submit_milliseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_submit_milliseconds(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @staticmethod
    def __new(incarnation=None, total=None, clients=None, ids=None, names=None, states=None, inputs=None, input_counts=None, text=None, sizes=None, graphs=None, keys=None, submit_milliseconds=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(104)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), incarnation)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), total)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint8), states)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), inputs)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint32), input_counts)
        builder.alloc_data(pos + 64, text)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 80, _PrimitiveItemType(_Types.uint64), graphs)
        builder.copy_from_list(pos + 88, _PrimitiveItemType(_Types.uint32), keys)
        builder.copy_from_list(pos + 96, _PrimitiveItemType(_Types.uint64), submit_milliseconds)
        return builder.as_string()
    
    def __init__(self, incarnation=None, total=None, clients=None, ids=None, names=None, states=None, inputs=None, input_counts=None, text=None, sizes=None, graphs=None, keys=None, submit_milliseconds=None):
        _buf = Graphs.__new(incarnation, total, clients, ids, names, states, inputs, input_counts, text, sizes, graphs, keys, submit_milliseconds)
        self._init_from_buffer(_buf, 0, 0, 13)
    
    def shortrepr(self):
        parts = []
        if self.has_incarnation(): parts.append("incarnation = %s" % self.get_incarnation().shortrepr())
        if self.has_total(): parts.append("total = %s" % self.get_total().shortrepr())
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_states(): parts.append("states = %s" % self.get_states().shortrepr())
        if self.has_inputs(): parts.append("inputs = %s" % self.get_inputs().shortrepr())
        if self.has_input_counts(): parts.append("inputCounts = %s" % self.get_input_counts().shortrepr())
        if self.has_text(): parts.append("text = %s" % _data_repr(self.get_text()))
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_graphs(): parts.append("graphs = %s" % self.get_graphs().shortrepr())
        if self.has_keys(): parts.append("keys = %s" % self.get_keys().shortrepr())
        if self.has_submit_milliseconds(): parts.append("submitMilliseconds = %s" % self.get_submit_milliseconds().shortrepr())
        return "(%s)" % ", ".join(parts)

_Graphs_list_item_type = _StructItemType(Graphs)

@Notice.__extend__
class Notice(_Struct):
    __capnpy_id__ = 0x9946cbe32e3d1755
    __static_data_size__ = 0
    __static_ptrs_size__ = 1
    
    
    @property
    def text(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_text(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(text=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.alloc_text(pos + 0, _encode_maybe(text))
        return builder.as_string()
    
    def __init__(self, text=None):
        _buf = Notice.__new(text)
        self._init_from_buffer(_buf, 0, 0, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_text(): parts.append("text = %s" % _text_unicode_repr(self.get_text()))
        return "(%s)" % ", ".join(parts)

_Notice_list_item_type = _StructItemType(Notice)

@TransferObjects.__extend__
class TransferObjects(_Struct):
    __capnpy_id__ = 0x96c9256b50237db5
    __static_data_size__ = 1
    __static_ptrs_size__ = 4
    
    
    @property
    def source(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def data(self):
        # no union check
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = DataAddress.__new__(DataAddress)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_data(self):
        res = self.data
        if res is None:
            return DataAddress.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_data(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def clients(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def bytes(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_bytes(self):
        res = self.bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_bytes(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @staticmethod
    def __new(source=0, data=None, clients=None, ids=None, bytes=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.write_uint64(pos + 0, source)
        builder.copy_from_struct(pos + 8, DataAddress, data)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), bytes)
        return builder.as_string()
    
    def __init__(self, source=0, data=None, clients=None, ids=None, bytes=None):
        _buf = TransferObjects.__new(source, data, clients, ids, bytes)
        self._init_from_buffer(_buf, 0, 1, 4)
    
    def shortrepr(self):
        parts = []
        parts.append("source = %s" % self.source)
        if self.has_data(): parts.append("data = %s" % self.get_data().shortrepr())
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_bytes(): parts.append("bytes = %s" % self.get_bytes().shortrepr())
        return "(%s)" % ", ".join(parts)

_TransferObjects_list_item_type = _StructItemType(TransferObjects)

@Transferred.__extend__
class Transferred(_Struct):
    __capnpy_id__ = 0xa1e45a5cfe195717
    __static_data_size__ = 2
    __static_ptrs_size__ = 3
    
    
    @property
    def source(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def error(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_error(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_error(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def is_unreachable(self):
        # no union check
        value = self._read_bit(8, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @staticmethod
    def __new(source=0, clients=None, ids=None, error=None, is_unreachable=False):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.write_uint64(pos + 0, source)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), ids)
        builder.alloc_text(pos + 32, _encode_maybe(error))
        builder.write_bool(8, 0, is_unreachable)
        return builder.as_string()
    
    def __init__(self, source=0, clients=None, ids=None, error=None, is_unreachable=False):
        _buf = Transferred.__new(source, clients, ids, error, is_unreachable)
        self._init_from_buffer(_buf, 0, 2, 3)
    
    def shortrepr(self):
        parts = []
        parts.append("source = %s" % self.source)
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_error(): parts.append("error = %s" % _text_unicode_repr(self.get_error()))
        parts.append("isUnreachable = %s" % str(self.is_unreachable).lower())
        return "(%s)" % ", ".join(parts)

_Transferred_list_item_type = _StructItemType(Transferred)

@ReadObject.__extend__
class ReadObject(_Struct):
    __capnpy_id__ = 0x8d83fc14556c4459
    __static_data_size__ = 4
    __static_ptrs_size__ = 1
    
    
    @property
    def ticket(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_ticket(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_ticket(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def offset(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def bytes(self):
        # no union check
        value = self._read_primitive(24, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(ticket=None, client=0, id=0, offset=0, bytes=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.alloc_text(pos + 32, _encode_maybe(ticket))
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.write_uint64(pos + 16, offset)
        builder.write_uint32(pos + 24, bytes)
        return builder.as_string()
    
    def __init__(self, ticket=None, client=0, id=0, offset=0, bytes=0):
        _buf = ReadObject.__new(ticket, client, id, offset, bytes)
        self._init_from_buffer(_buf, 0, 4, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_ticket(): parts.append("ticket = %s" % _text_unicode_repr(self.get_ticket()))
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("offset = %s" % self.offset)
        parts.append("bytes = %s" % self.bytes)
        return "(%s)" % ", ".join(parts)

_ReadObject_list_item_type = _StructItemType(ReadObject)

@ObjectChunk.__extend__
class ObjectChunk(_Struct):
    __capnpy_id__ = 0xf3f33ac9acbbe838
    __static_data_size__ = 4
    __static_ptrs_size__ = 0
    
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def offset(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def file_bytes(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(client=0, id=0, offset=0, file_bytes=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(32)
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.write_uint64(pos + 16, offset)
        builder.write_uint64(pos + 24, file_bytes)
        return builder.as_string()
    
    def __init__(self, client=0, id=0, offset=0, file_bytes=0):
        _buf = ObjectChunk.__new(client, id, offset, file_bytes)
        self._init_from_buffer(_buf, 0, 4, 0)
    
    def shortrepr(self):
        parts = []
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("offset = %s" % self.offset)
        parts.append("fileBytes = %s" % self.file_bytes)
        return "(%s)" % ", ".join(parts)

_ObjectChunk_list_item_type = _StructItemType(ObjectChunk)

@NoObject.__extend__
class NoObject(_Struct):
    __capnpy_id__ = 0x9eb5ab3e883b5eb9
    __static_data_size__ = 2
    __static_ptrs_size__ = 1
    
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def reason(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_reason(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_reason(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(client=0, id=0, reason=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.alloc_text(pos + 16, _encode_maybe(reason))
        return builder.as_string()
    
    def __init__(self, client=0, id=0, reason=None):
        _buf = NoObject.__new(client, id, reason)
        self._init_from_buffer(_buf, 0, 2, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        if self.has_reason(): parts.append("reason = %s" % _text_unicode_repr(self.get_reason()))
        return "(%s)" % ", ".join(parts)

_NoObject_list_item_type = _StructItemType(NoObject)

@Objects.__extend__
class Objects(_Struct):
    __capnpy_id__ = 0xce86e459c18dc64d
    __static_data_size__ = 0
    __static_ptrs_size__ = 4
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def large(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_large(self):
        res = self.large
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_large(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(24)
    
    def get_payload(self):
        return self._read_data(24, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None, sizes=None, large=None, payload=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(32)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), sizes)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), large)
        builder.alloc_data(pos + 24, payload)
        return builder.as_string()
    
    def __init__(self, ids=None, sizes=None, large=None, payload=None):
        _buf = Objects.__new(ids, sizes, large, payload)
        self._init_from_buffer(_buf, 0, 0, 4)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_large(): parts.append("large = %s" % self.get_large().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        return "(%s)" % ", ".join(parts)

_Objects_list_item_type = _StructItemType(Objects)

@Environment.__extend__
class Environment(_Struct):
    __capnpy_id__ = 0xf5e583236c2814e9
    __static_data_size__ = 2
    __static_ptrs_size__ = 3
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def contents(self):
        # no union check
        return self._read_list(8, _TextUnicodeItemType(_Types.text))
    
    def get_contents(self):
        res = self.contents
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_contents(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def bytes(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def level(self):
        # no union check
        value = self._read_primitive(8, ord(b'B'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def platform(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_platform(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_platform(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(name=None, contents=None, bytes=0, level=0, platform=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.alloc_text(pos + 16, _encode_maybe(name))
        builder.copy_from_list(pos + 24, _TextUnicodeItemType(_Types.text), contents)
        builder.write_uint64(pos + 0, bytes)
        builder.write_uint8(pos + 8, level)
        builder.alloc_text(pos + 32, _encode_maybe(platform))
        return builder.as_string()
    
    def __init__(self, name=None, contents=None, bytes=0, level=0, platform=None):
        _buf = Environment.__new(name, contents, bytes, level, platform)
        self._init_from_buffer(_buf, 0, 2, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        if self.has_contents(): parts.append("contents = %s" % self.get_contents().shortrepr())
        parts.append("bytes = %s" % self.bytes)
        parts.append("level = %s" % self.level)
        if self.has_platform(): parts.append("platform = %s" % _text_unicode_repr(self.get_platform()))
        return "(%s)" % ", ".join(parts)

_Environment_list_item_type = _StructItemType(Environment)

@ContentsWanted.__extend__
class ContentsWanted(_Struct):
    __capnpy_id__ = 0xfca5fc2312afbfa7
    __static_data_size__ = 0
    __static_ptrs_size__ = 1
    
    
    @property
    def names(self):
        # no union check
        return self._read_list(0, _TextUnicodeItemType(_Types.text))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(names=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.copy_from_list(pos + 0, _TextUnicodeItemType(_Types.text), names)
        return builder.as_string()
    
    def __init__(self, names=None):
        _buf = ContentsWanted.__new(names)
        self._init_from_buffer(_buf, 0, 0, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        return "(%s)" % ", ".join(parts)

_ContentsWanted_list_item_type = _StructItemType(ContentsWanted)

@Contents.__extend__
class Contents(_Struct):
    __capnpy_id__ = 0xd7ae71263728a5a3
    __static_data_size__ = 1
    __static_ptrs_size__ = 0
    
    
    @property
    def count(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(count=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(8)
        builder.write_uint32(pos + 0, count)
        return builder.as_string()
    
    def __init__(self, count=0):
        _buf = Contents.__new(count)
        self._init_from_buffer(_buf, 0, 1, 0)
    
    def shortrepr(self):
        parts = []
        parts.append("count = %s" % self.count)
        return "(%s)" % ", ".join(parts)

_Contents_list_item_type = _StructItemType(Contents)

@EnvironmentReady.__extend__
class EnvironmentReady(_Struct):
    __capnpy_id__ = 0x89cb09a5ceebb126
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def error(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_error(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_error(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(name=None, error=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.alloc_text(pos + 0, _encode_maybe(name))
        builder.alloc_text(pos + 8, _encode_maybe(error))
        return builder.as_string()
    
    def __init__(self, name=None, error=None):
        _buf = EnvironmentReady.__new(name, error)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        if self.has_error(): parts.append("error = %s" % _text_unicode_repr(self.get_error()))
        return "(%s)" % ", ".join(parts)

_EnvironmentReady_list_item_type = _StructItemType(EnvironmentReady)

@ChangeWorker.__extend__
class ChangeWorker(_Struct):
    __capnpy_id__ = 0x94c1a2052e043972
    __static_data_size__ = 2
    __static_ptrs_size__ = 1
    
    
    @property
    def worker(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def environment(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_environment(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_environment(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def mode(self):
        # no union check
        value = self._read_primitive(8, ord(b'B'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(worker=0, environment=None, mode=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.write_uint64(pos + 0, worker)
        builder.alloc_text(pos + 16, _encode_maybe(environment))
        builder.write_uint8(pos + 8, mode)
        return builder.as_string()
    
    def __init__(self, worker=0, environment=None, mode=0):
        _buf = ChangeWorker.__new(worker, environment, mode)
        self._init_from_buffer(_buf, 0, 2, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("worker = %s" % self.worker)
        if self.has_environment(): parts.append("environment = %s" % _text_unicode_repr(self.get_environment()))
        parts.append("mode = %s" % self.mode)
        return "(%s)" % ", ".join(parts)

_ChangeWorker_list_item_type = _StructItemType(ChangeWorker)

@GangMember.__extend__
class GangMember(_Struct):
    __capnpy_id__ = 0xe54668bc622cc0a2
    __static_data_size__ = 3
    __static_ptrs_size__ = 1
    
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def attempt(self):
        # no union check
        value = self._read_primitive(16, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def rank(self):
        # no union check
        value = self._read_primitive(20, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def hosts(self):
        # no union check
        return self._read_list(0, _TextUnicodeItemType(_Types.text))
    
    def get_hosts(self):
        res = self.hosts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_hosts(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(client=0, id=0, attempt=0, rank=0, hosts=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(32)
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.write_uint32(pos + 16, attempt)
        builder.write_uint32(pos + 20, rank)
        builder.copy_from_list(pos + 24, _TextUnicodeItemType(_Types.text), hosts)
        return builder.as_string()
    
    def __init__(self, client=0, id=0, attempt=0, rank=0, hosts=None):
        _buf = GangMember.__new(client, id, attempt, rank, hosts)
        self._init_from_buffer(_buf, 0, 3, 1)
    
    def shortrepr(self):
        parts = []
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("attempt = %s" % self.attempt)
        parts.append("rank = %s" % self.rank)
        if self.has_hosts(): parts.append("hosts = %s" % self.get_hosts().shortrepr())
        return "(%s)" % ", ".join(parts)

_GangMember_list_item_type = _StructItemType(GangMember)

@Exchange.__extend__
class Exchange(_Struct):
    __capnpy_id__ = 0x82ac80e08947c8ce
    __static_data_size__ = 4
    __static_ptrs_size__ = 2
    
    
    @property
    def client(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def id(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def attempt(self):
        # no union check
        value = self._read_primitive(16, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def round(self):
        # no union check
        value = self._read_primitive(20, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def payload(self):
        # no union check
        return self._read_data(8)
    
    def get_payload(self):
        return self._read_data(8, default_=b"")
    
    def has_payload(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def ended(self):
        # no union check
        value = self._read_primitive(24, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(client=0, id=0, attempt=0, round=0, sizes=None, payload=None, ended=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(48)
        builder.write_uint64(pos + 0, client)
        builder.write_uint64(pos + 8, id)
        builder.write_uint32(pos + 16, attempt)
        builder.write_uint32(pos + 20, round)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), sizes)
        builder.alloc_data(pos + 40, payload)
        builder.write_uint32(pos + 24, ended)
        return builder.as_string()
    
    def __init__(self, client=0, id=0, attempt=0, round=0, sizes=None, payload=None, ended=0):
        _buf = Exchange.__new(client, id, attempt, round, sizes, payload, ended)
        self._init_from_buffer(_buf, 0, 4, 2)
    
    def shortrepr(self):
        parts = []
        parts.append("client = %s" % self.client)
        parts.append("id = %s" % self.id)
        parts.append("attempt = %s" % self.attempt)
        parts.append("round = %s" % self.round)
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        if self.has_payload(): parts.append("payload = %s" % _data_repr(self.get_payload()))
        parts.append("ended = %s" % self.ended)
        return "(%s)" % ", ".join(parts)

_Exchange_list_item_type = _StructItemType(Exchange)

@HeldResults.__extend__
class HeldResults(_Struct):
    __capnpy_id__ = 0xfbda15891629f685
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def ids(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def bytes(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_bytes(self):
        res = self.bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_bytes(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(ids=None, bytes=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), bytes)
        return builder.as_string()
    
    def __init__(self, ids=None, bytes=None):
        _buf = HeldResults.__new(ids, bytes)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_bytes(): parts.append("bytes = %s" % self.get_bytes().shortrepr())
        return "(%s)" % ", ".join(parts)

_HeldResults_list_item_type = _StructItemType(HeldResults)

@Message.__extend__
class Message(_Struct):
    __capnpy_id__ = 0xb2a24cc8f87661f0
    __static_data_size__ = 1
    __static_ptrs_size__ = 1
    
    
    __tag__ = Message__tag__
    __tag_offset__ = 0
    
    def is_hello(self):
        return self._read_int16(0) == 0
    def is_welcome(self):
        return self._read_int16(0) == 1
    def is_refused(self):
        return self._read_int16(0) == 2
    def is_hello_wanted(self):
        return self._read_int16(0) == 3
    def is_goodbye(self):
        return self._read_int16(0) == 4
    def is_heartbeat(self):
        return self._read_int16(0) == 5
    def is_heartbeat_echo(self):
        return self._read_int16(0) == 6
    def is_function(self):
        return self._read_int16(0) == 7
    def is_forget_functions(self):
        return self._read_int16(0) == 8
    def is_submit(self):
        return self._read_int16(0) == 9
    def is_dispatch(self):
        return self._read_int16(0) == 10
    def is_results(self):
        return self._read_int16(0) == 11
    def is_resolved(self):
        return self._read_int16(0) == 12
    def is_started(self):
        return self._read_int16(0) == 13
    def is_cancel(self):
        return self._read_int16(0) == 14
    def is_cancel_refused(self):
        return self._read_int16(0) == 15
    def is_worker_died(self):
        return self._read_int16(0) == 16
    def is_error(self):
        return self._read_int16(0) == 17
    def is_snapshot(self):
        return self._read_int16(0) == 18
    def is_retract(self):
        return self._read_int16(0) == 19
    def is_retracted(self):
        return self._read_int16(0) == 20
    def is_stop(self):
        return self._read_int16(0) == 21
    def is_suspended(self):
        return self._read_int16(0) == 22
    def is_resumed(self):
        return self._read_int16(0) == 23
    def is_end_worker(self):
        return self._read_int16(0) == 24
    def is_credit(self):
        return self._read_int16(0) == 25
    def is_received(self):
        return self._read_int16(0) == 26
    def is_object(self):
        return self._read_int16(0) == 27
    def is_forget_objects(self):
        return self._read_int16(0) == 28
    def is_shutdown(self):
        return self._read_int16(0) == 29
    def is_output(self):
        return self._read_int16(0) == 30
    def is_fetch_objects(self):
        return self._read_int16(0) == 31
    def is_history(self):
        return self._read_int16(0) == 32
    def is_graphs(self):
        return self._read_int16(0) == 33
    def is_notice(self):
        return self._read_int16(0) == 34
    def is_transfer_objects(self):
        return self._read_int16(0) == 35
    def is_transferred(self):
        return self._read_int16(0) == 36
    def is_read_object(self):
        return self._read_int16(0) == 37
    def is_object_chunk(self):
        return self._read_int16(0) == 38
    def is_no_object(self):
        return self._read_int16(0) == 39
    def is_objects(self):
        return self._read_int16(0) == 40
    def is_environment(self):
        return self._read_int16(0) == 41
    def is_contents_wanted(self):
        return self._read_int16(0) == 42
    def is_contents(self):
        return self._read_int16(0) == 43
    def is_environment_ready(self):
        return self._read_int16(0) == 44
    def is_change_worker(self):
        return self._read_int16(0) == 45
    def is_gang_member(self):
        return self._read_int16(0) == 46
    def is_exchange(self):
        return self._read_int16(0) == 47
    def is_held_results(self):
        return self._read_int16(0) == 48
    
    @property
    def hello(self):
        self._ensure_union(0)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Hello.__new__(Hello)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_hello(self):
        res = self.hello
        if res is None:
            return Hello.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_hello(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def welcome(self):
        self._ensure_union(1)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Welcome.__new__(Welcome)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_welcome(self):
        res = self.welcome
        if res is None:
            return Welcome.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_welcome(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def refused(self):
        self._ensure_union(2)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Refused.__new__(Refused)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_refused(self):
        res = self.refused
        if res is None:
            return Refused.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_refused(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def hello_wanted(self):
        self._ensure_union(3)
        return None
    
    @property
    def goodbye(self):
        self._ensure_union(4)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Goodbye.__new__(Goodbye)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_goodbye(self):
        res = self.goodbye
        if res is None:
            return Goodbye.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_goodbye(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def heartbeat(self):
        self._ensure_union(5)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Heartbeat.__new__(Heartbeat)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_heartbeat(self):
        res = self.heartbeat
        if res is None:
            return Heartbeat.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_heartbeat(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def heartbeat_echo(self):
        self._ensure_union(6)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = HeartbeatEcho.__new__(HeartbeatEcho)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_heartbeat_echo(self):
        res = self.heartbeat_echo
        if res is None:
            return HeartbeatEcho.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_heartbeat_echo(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def function(self):
        self._ensure_union(7)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Function.__new__(Function)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_function(self):
        res = self.function
        if res is None:
            return Function.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_function(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def forget_functions(self):
        self._ensure_union(8)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ForgetFunctions.__new__(ForgetFunctions)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_forget_functions(self):
        res = self.forget_functions
        if res is None:
            return ForgetFunctions.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_forget_functions(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def submit(self):
        self._ensure_union(9)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Submit.__new__(Submit)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_submit(self):
        res = self.submit
        if res is None:
            return Submit.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_submit(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def dispatch(self):
        self._ensure_union(10)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Dispatch.__new__(Dispatch)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_dispatch(self):
        res = self.dispatch
        if res is None:
            return Dispatch.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_dispatch(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def results(self):
        self._ensure_union(11)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Results.__new__(Results)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_results(self):
        res = self.results
        if res is None:
            return Results.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_results(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def resolved(self):
        self._ensure_union(12)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Resolved.__new__(Resolved)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_resolved(self):
        res = self.resolved
        if res is None:
            return Resolved.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_resolved(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def started(self):
        self._ensure_union(13)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Started.__new__(Started)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_started(self):
        res = self.started
        if res is None:
            return Started.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_started(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def cancel(self):
        self._ensure_union(14)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Cancel.__new__(Cancel)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_cancel(self):
        res = self.cancel
        if res is None:
            return Cancel.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_cancel(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def cancel_refused(self):
        self._ensure_union(15)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = CancelRefused.__new__(CancelRefused)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_cancel_refused(self):
        res = self.cancel_refused
        if res is None:
            return CancelRefused.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_cancel_refused(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def worker_died(self):
        self._ensure_union(16)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = WorkerDied.__new__(WorkerDied)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_worker_died(self):
        res = self.worker_died
        if res is None:
            return WorkerDied.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_worker_died(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def error(self):
        self._ensure_union(17)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Error.__new__(Error)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_error(self):
        res = self.error
        if res is None:
            return Error.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_error(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def snapshot(self):
        self._ensure_union(18)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Snapshot.__new__(Snapshot)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_snapshot(self):
        res = self.snapshot
        if res is None:
            return Snapshot.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_snapshot(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def retract(self):
        self._ensure_union(19)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Tasks.__new__(Tasks)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_retract(self):
        res = self.retract
        if res is None:
            return Tasks.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_retract(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def retracted(self):
        self._ensure_union(20)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Retracted.__new__(Retracted)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_retracted(self):
        res = self.retracted
        if res is None:
            return Retracted.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_retracted(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def stop(self):
        self._ensure_union(21)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Tasks.__new__(Tasks)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_stop(self):
        res = self.stop
        if res is None:
            return Tasks.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_stop(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def suspended(self):
        self._ensure_union(22)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Tasks.__new__(Tasks)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_suspended(self):
        res = self.suspended
        if res is None:
            return Tasks.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_suspended(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def resumed(self):
        self._ensure_union(23)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Tasks.__new__(Tasks)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_resumed(self):
        res = self.resumed
        if res is None:
            return Tasks.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_resumed(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def end_worker(self):
        self._ensure_union(24)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = EndWorker.__new__(EndWorker)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_end_worker(self):
        res = self.end_worker
        if res is None:
            return EndWorker.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_end_worker(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def credit(self):
        self._ensure_union(25)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Credit.__new__(Credit)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_credit(self):
        res = self.credit
        if res is None:
            return Credit.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_credit(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def received(self):
        self._ensure_union(26)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Received.__new__(Received)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_received(self):
        res = self.received
        if res is None:
            return Received.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_received(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def object(self):
        self._ensure_union(27)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Object.__new__(Object)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_object(self):
        res = self.object
        if res is None:
            return Object.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_object(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def forget_objects(self):
        self._ensure_union(28)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ForgetObjects.__new__(ForgetObjects)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_forget_objects(self):
        res = self.forget_objects
        if res is None:
            return ForgetObjects.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_forget_objects(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def shutdown(self):
        self._ensure_union(29)
        return None
    
    @property
    def output(self):
        self._ensure_union(30)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Output.__new__(Output)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_output(self):
        res = self.output
        if res is None:
            return Output.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_output(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def fetch_objects(self):
        self._ensure_union(31)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = FetchObjects.__new__(FetchObjects)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_fetch_objects(self):
        res = self.fetch_objects
        if res is None:
            return FetchObjects.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_fetch_objects(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def history(self):
        self._ensure_union(32)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = History.__new__(History)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_history(self):
        res = self.history
        if res is None:
            return History.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_history(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def graphs(self):
        self._ensure_union(33)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Graphs.__new__(Graphs)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_graphs(self):
        res = self.graphs
        if res is None:
            return Graphs.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_graphs(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def notice(self):
        self._ensure_union(34)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Notice.__new__(Notice)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_notice(self):
        res = self.notice
        if res is None:
            return Notice.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_notice(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def transfer_objects(self):
        self._ensure_union(35)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = TransferObjects.__new__(TransferObjects)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_transfer_objects(self):
        res = self.transfer_objects
        if res is None:
            return TransferObjects.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_transfer_objects(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def transferred(self):
        self._ensure_union(36)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Transferred.__new__(Transferred)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_transferred(self):
        res = self.transferred
        if res is None:
            return Transferred.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_transferred(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def read_object(self):
        self._ensure_union(37)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ReadObject.__new__(ReadObject)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_read_object(self):
        res = self.read_object
        if res is None:
            return ReadObject.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_read_object(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def object_chunk(self):
        self._ensure_union(38)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ObjectChunk.__new__(ObjectChunk)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_object_chunk(self):
        res = self.object_chunk
        if res is None:
            return ObjectChunk.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_object_chunk(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def no_object(self):
        self._ensure_union(39)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = NoObject.__new__(NoObject)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_no_object(self):
        res = self.no_object
        if res is None:
            return NoObject.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_no_object(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def objects(self):
        self._ensure_union(40)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Objects.__new__(Objects)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_objects(self):
        res = self.objects
        if res is None:
            return Objects.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_objects(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def environment(self):
        self._ensure_union(41)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Environment.__new__(Environment)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_environment(self):
        res = self.environment
        if res is None:
            return Environment.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_environment(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def contents_wanted(self):
        self._ensure_union(42)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ContentsWanted.__new__(ContentsWanted)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_contents_wanted(self):
        res = self.contents_wanted
        if res is None:
            return ContentsWanted.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_contents_wanted(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def contents(self):
        self._ensure_union(43)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Contents.__new__(Contents)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_contents(self):
        res = self.contents
        if res is None:
            return Contents.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_contents(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def environment_ready(self):
        self._ensure_union(44)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = EnvironmentReady.__new__(EnvironmentReady)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_environment_ready(self):
        res = self.environment_ready
        if res is None:
            return EnvironmentReady.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_environment_ready(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def change_worker(self):
        self._ensure_union(45)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = ChangeWorker.__new__(ChangeWorker)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_change_worker(self):
        res = self.change_worker
        if res is None:
            return ChangeWorker.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_change_worker(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def gang_member(self):
        self._ensure_union(46)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = GangMember.__new__(GangMember)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_gang_member(self):
        res = self.gang_member
        if res is None:
            return GangMember.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_gang_member(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def exchange(self):
        self._ensure_union(47)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = Exchange.__new__(Exchange)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_exchange(self):
        res = self.exchange
        if res is None:
            return Exchange.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_exchange(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def held_results(self):
        self._ensure_union(48)
        offset = 0
        p = self._read_fast_ptr(offset)
        if _ptr.kind(p) == _ptr.FAR:
            offset, p = self._read_far_ptr(offset)
        else:
            offset += self._ptrs_offset
        if p == 0:
            return None
        obj = HeldResults.__new__(HeldResults)
        obj._init_from_pointer(self._seg, offset, p)
        return obj
    
    def get_held_results(self):
        res = self.held_results
        if res is None:
            return HeldResults.from_buffer(b'', 0, data_size=0, ptrs_size=0)
        return res
    
    def has_held_results(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @staticmethod
    def __new(hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        anonymous__curtag = None
        if hello is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'hello')
            builder.write_int16(0, 0)
            builder.copy_from_struct(pos + 8, Hello, hello)
        if welcome is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'welcome')
            builder.write_int16(0, 1)
            builder.copy_from_struct(pos + 8, Welcome, welcome)
        if refused is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'refused')
            builder.write_int16(0, 2)
            builder.copy_from_struct(pos + 8, Refused, refused)
        if hello_wanted is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'hello_wanted')
            builder.write_int16(0, 3)
        if goodbye is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'goodbye')
            builder.write_int16(0, 4)
            builder.copy_from_struct(pos + 8, Goodbye, goodbye)
        if heartbeat is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'heartbeat')
            builder.write_int16(0, 5)
            builder.copy_from_struct(pos + 8, Heartbeat, heartbeat)
        if heartbeat_echo is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'heartbeat_echo')
            builder.write_int16(0, 6)
            builder.copy_from_struct(pos + 8, HeartbeatEcho, heartbeat_echo)
        if function is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'function')
            builder.write_int16(0, 7)
            builder.copy_from_struct(pos + 8, Function, function)
        if forget_functions is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'forget_functions')
            builder.write_int16(0, 8)
            builder.copy_from_struct(pos + 8, ForgetFunctions, forget_functions)
        if submit is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'submit')
            builder.write_int16(0, 9)
            builder.copy_from_struct(pos + 8, Submit, submit)
        if dispatch is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'dispatch')
            builder.write_int16(0, 10)
            builder.copy_from_struct(pos + 8, Dispatch, dispatch)
        if results is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'results')
            builder.write_int16(0, 11)
            builder.copy_from_struct(pos + 8, Results, results)
        if resolved is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'resolved')
            builder.write_int16(0, 12)
            builder.copy_from_struct(pos + 8, Resolved, resolved)
        if started is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'started')
            builder.write_int16(0, 13)
            builder.copy_from_struct(pos + 8, Started, started)
        if cancel is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'cancel')
            builder.write_int16(0, 14)
            builder.copy_from_struct(pos + 8, Cancel, cancel)
        if cancel_refused is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'cancel_refused')
            builder.write_int16(0, 15)
            builder.copy_from_struct(pos + 8, CancelRefused, cancel_refused)
        if worker_died is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'worker_died')
            builder.write_int16(0, 16)
            builder.copy_from_struct(pos + 8, WorkerDied, worker_died)
        if error is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'error')
            builder.write_int16(0, 17)
            builder.copy_from_struct(pos + 8, Error, error)
        if snapshot is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'snapshot')
            builder.write_int16(0, 18)
            builder.copy_from_struct(pos + 8, Snapshot, snapshot)
        if retract is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'retract')
            builder.write_int16(0, 19)
            builder.copy_from_struct(pos + 8, Tasks, retract)
        if retracted is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'retracted')
            builder.write_int16(0, 20)
            builder.copy_from_struct(pos + 8, Retracted, retracted)
        if stop is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'stop')
            builder.write_int16(0, 21)
            builder.copy_from_struct(pos + 8, Tasks, stop)
        if suspended is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'suspended')
            builder.write_int16(0, 22)
            builder.copy_from_struct(pos + 8, Tasks, suspended)
        if resumed is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'resumed')
            builder.write_int16(0, 23)
            builder.copy_from_struct(pos + 8, Tasks, resumed)
        if end_worker is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'end_worker')
            builder.write_int16(0, 24)
            builder.copy_from_struct(pos + 8, EndWorker, end_worker)
        if credit is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'credit')
            builder.write_int16(0, 25)
            builder.copy_from_struct(pos + 8, Credit, credit)
        if received is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'received')
            builder.write_int16(0, 26)
            builder.copy_from_struct(pos + 8, Received, received)
        if object is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'object')
            builder.write_int16(0, 27)
            builder.copy_from_struct(pos + 8, Object, object)
        if forget_objects is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'forget_objects')
            builder.write_int16(0, 28)
            builder.copy_from_struct(pos + 8, ForgetObjects, forget_objects)
        if shutdown is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'shutdown')
            builder.write_int16(0, 29)
        if output is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'output')
            builder.write_int16(0, 30)
            builder.copy_from_struct(pos + 8, Output, output)
        if fetch_objects is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'fetch_objects')
            builder.write_int16(0, 31)
            builder.copy_from_struct(pos + 8, FetchObjects, fetch_objects)
        if history is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'history')
            builder.write_int16(0, 32)
            builder.copy_from_struct(pos + 8, History, history)
        if graphs is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'graphs')
            builder.write_int16(0, 33)
            builder.copy_from_struct(pos + 8, Graphs, graphs)
        if notice is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'notice')
            builder.write_int16(0, 34)
            builder.copy_from_struct(pos + 8, Notice, notice)
        if transfer_objects is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'transfer_objects')
            builder.write_int16(0, 35)
            builder.copy_from_struct(pos + 8, TransferObjects, transfer_objects)
        if transferred is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'transferred')
            builder.write_int16(0, 36)
            builder.copy_from_struct(pos + 8, Transferred, transferred)
        if read_object is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'read_object')
            builder.write_int16(0, 37)
            builder.copy_from_struct(pos + 8, ReadObject, read_object)
        if object_chunk is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'object_chunk')
            builder.write_int16(0, 38)
            builder.copy_from_struct(pos + 8, ObjectChunk, object_chunk)
        if no_object is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'no_object')
            builder.write_int16(0, 39)
            builder.copy_from_struct(pos + 8, NoObject, no_object)
        if objects is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'objects')
            builder.write_int16(0, 40)
            builder.copy_from_struct(pos + 8, Objects, objects)
        if environment is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'environment')
            builder.write_int16(0, 41)
            builder.copy_from_struct(pos + 8, Environment, environment)
        if contents_wanted is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'contents_wanted')
            builder.write_int16(0, 42)
            builder.copy_from_struct(pos + 8, ContentsWanted, contents_wanted)
        if contents is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'contents')
            builder.write_int16(0, 43)
            builder.copy_from_struct(pos + 8, Contents, contents)
        if environment_ready is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'environment_ready')
            builder.write_int16(0, 44)
            builder.copy_from_struct(pos + 8, EnvironmentReady, environment_ready)
        if change_worker is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'change_worker')
            builder.write_int16(0, 45)
            builder.copy_from_struct(pos + 8, ChangeWorker, change_worker)
        if gang_member is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'gang_member')
            builder.write_int16(0, 46)
            builder.copy_from_struct(pos + 8, GangMember, gang_member)
        if exchange is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'exchange')
            builder.write_int16(0, 47)
            builder.copy_from_struct(pos + 8, Exchange, exchange)
        if held_results is not _undefined:
            anonymous__curtag = _check_tag(anonymous__curtag, 'held_results')
            builder.write_int16(0, 48)
            builder.copy_from_struct(pos + 8, HeldResults, held_results)
        return builder.as_string()
    
    def __init__(self, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined):
        _buf = Message.__new(hello, welcome, refused, hello_wanted, goodbye, heartbeat, heartbeat_echo, function, forget_functions, submit, dispatch, results, resolved, started, cancel, cancel_refused, worker_died, error, snapshot, retract, retracted, stop, suspended, resumed, end_worker, credit, received, object, forget_objects, shutdown, output, fetch_objects, history, graphs, notice, transfer_objects, transferred, read_object, object_chunk, no_object, objects, environment, contents_wanted, contents, environment_ready, change_worker, gang_member, exchange, held_results)
        self._init_from_buffer(_buf, 0, 1, 1)
    
    @classmethod
    def new_hello(cls, hello=None):
        buf = Message.__new(hello=hello, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_welcome(cls, welcome=None):
        buf = Message.__new(welcome=welcome, hello=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_refused(cls, refused=None):
        buf = Message.__new(refused=refused, hello=_undefined, welcome=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_hello_wanted(cls, hello_wanted=None):
        buf = Message.__new(hello_wanted=hello_wanted, hello=_undefined, welcome=_undefined, refused=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_goodbye(cls, goodbye=None):
        buf = Message.__new(goodbye=goodbye, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_heartbeat(cls, heartbeat=None):
        buf = Message.__new(heartbeat=heartbeat, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_heartbeat_echo(cls, heartbeat_echo=None):
        buf = Message.__new(heartbeat_echo=heartbeat_echo, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_function(cls, function=None):
        buf = Message.__new(function=function, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_forget_functions(cls, forget_functions=None):
        buf = Message.__new(forget_functions=forget_functions, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_submit(cls, submit=None):
        buf = Message.__new(submit=submit, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_dispatch(cls, dispatch=None):
        buf = Message.__new(dispatch=dispatch, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_results(cls, results=None):
        buf = Message.__new(results=results, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_resolved(cls, resolved=None):
        buf = Message.__new(resolved=resolved, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_started(cls, started=None):
        buf = Message.__new(started=started, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_cancel(cls, cancel=None):
        buf = Message.__new(cancel=cancel, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_cancel_refused(cls, cancel_refused=None):
        buf = Message.__new(cancel_refused=cancel_refused, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_worker_died(cls, worker_died=None):
        buf = Message.__new(worker_died=worker_died, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_error(cls, error=None):
        buf = Message.__new(error=error, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_snapshot(cls, snapshot=None):
        buf = Message.__new(snapshot=snapshot, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_retract(cls, retract=None):
        buf = Message.__new(retract=retract, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_retracted(cls, retracted=None):
        buf = Message.__new(retracted=retracted, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_stop(cls, stop=None):
        buf = Message.__new(stop=stop, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_suspended(cls, suspended=None):
        buf = Message.__new(suspended=suspended, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_resumed(cls, resumed=None):
        buf = Message.__new(resumed=resumed, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_end_worker(cls, end_worker=None):
        buf = Message.__new(end_worker=end_worker, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_credit(cls, credit=None):
        buf = Message.__new(credit=credit, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_received(cls, received=None):
        buf = Message.__new(received=received, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_object(cls, object=None):
        buf = Message.__new(object=object, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_forget_objects(cls, forget_objects=None):
        buf = Message.__new(forget_objects=forget_objects, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_shutdown(cls, shutdown=None):
        buf = Message.__new(shutdown=shutdown, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_output(cls, output=None):
        buf = Message.__new(output=output, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_fetch_objects(cls, fetch_objects=None):
        buf = Message.__new(fetch_objects=fetch_objects, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_history(cls, history=None):
        buf = Message.__new(history=history, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_graphs(cls, graphs=None):
        buf = Message.__new(graphs=graphs, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_notice(cls, notice=None):
        buf = Message.__new(notice=notice, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_transfer_objects(cls, transfer_objects=None):
        buf = Message.__new(transfer_objects=transfer_objects, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_transferred(cls, transferred=None):
        buf = Message.__new(transferred=transferred, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_read_object(cls, read_object=None):
        buf = Message.__new(read_object=read_object, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_object_chunk(cls, object_chunk=None):
        buf = Message.__new(object_chunk=object_chunk, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_no_object(cls, no_object=None):
        buf = Message.__new(no_object=no_object, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_objects(cls, objects=None):
        buf = Message.__new(objects=objects, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_environment(cls, environment=None):
        buf = Message.__new(environment=environment, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_contents_wanted(cls, contents_wanted=None):
        buf = Message.__new(contents_wanted=contents_wanted, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_contents(cls, contents=None):
        buf = Message.__new(contents=contents, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_environment_ready(cls, environment_ready=None):
        buf = Message.__new(environment_ready=environment_ready, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_change_worker(cls, change_worker=None):
        buf = Message.__new(change_worker=change_worker, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, gang_member=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_gang_member(cls, gang_member=None):
        buf = Message.__new(gang_member=gang_member, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, exchange=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_exchange(cls, exchange=None):
        buf = Message.__new(exchange=exchange, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, held_results=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    @classmethod
    def new_held_results(cls, held_results=None):
        buf = Message.__new(held_results=held_results, hello=_undefined, welcome=_undefined, refused=_undefined, hello_wanted=_undefined, goodbye=_undefined, heartbeat=_undefined, heartbeat_echo=_undefined, function=_undefined, forget_functions=_undefined, submit=_undefined, dispatch=_undefined, results=_undefined, resolved=_undefined, started=_undefined, cancel=_undefined, cancel_refused=_undefined, worker_died=_undefined, error=_undefined, snapshot=_undefined, retract=_undefined, retracted=_undefined, stop=_undefined, suspended=_undefined, resumed=_undefined, end_worker=_undefined, credit=_undefined, received=_undefined, object=_undefined, forget_objects=_undefined, shutdown=_undefined, output=_undefined, fetch_objects=_undefined, history=_undefined, graphs=_undefined, notice=_undefined, transfer_objects=_undefined, transferred=_undefined, read_object=_undefined, object_chunk=_undefined, no_object=_undefined, objects=_undefined, environment=_undefined, contents_wanted=_undefined, contents=_undefined, environment_ready=_undefined, change_worker=_undefined, gang_member=_undefined, exchange=_undefined)
        return cls.from_buffer(buf, 0, 1, 1)
    
    def shortrepr(self):
        parts = []
        if self.is_hello() and (self.has_hello() or
                                  not True):
            parts.append("hello = %s" % self.get_hello().shortrepr())
        if self.is_welcome() and (self.has_welcome() or
                                  not False):
            parts.append("welcome = %s" % self.get_welcome().shortrepr())
        if self.is_refused() and (self.has_refused() or
                                  not False):
            parts.append("refused = %s" % self.get_refused().shortrepr())
        if self.is_hello_wanted(): parts.append("helloWanted = %s" % "void")
        if self.is_goodbye() and (self.has_goodbye() or
                                  not False):
            parts.append("goodbye = %s" % self.get_goodbye().shortrepr())
        if self.is_heartbeat() and (self.has_heartbeat() or
                                  not False):
            parts.append("heartbeat = %s" % self.get_heartbeat().shortrepr())
        if self.is_heartbeat_echo() and (self.has_heartbeat_echo() or
                                  not False):
            parts.append("heartbeatEcho = %s" % self.get_heartbeat_echo().shortrepr())
        if self.is_function() and (self.has_function() or
                                  not False):
            parts.append("function = %s" % self.get_function().shortrepr())
        if self.is_forget_functions() and (self.has_forget_functions() or
                                  not False):
            parts.append("forgetFunctions = %s" % self.get_forget_functions().shortrepr())
        if self.is_submit() and (self.has_submit() or
                                  not False):
            parts.append("submit = %s" % self.get_submit().shortrepr())
        if self.is_dispatch() and (self.has_dispatch() or
                                  not False):
            parts.append("dispatch = %s" % self.get_dispatch().shortrepr())
        if self.is_results() and (self.has_results() or
                                  not False):
            parts.append("results = %s" % self.get_results().shortrepr())
        if self.is_resolved() and (self.has_resolved() or
                                  not False):
            parts.append("resolved = %s" % self.get_resolved().shortrepr())
        if self.is_started() and (self.has_started() or
                                  not False):
            parts.append("started = %s" % self.get_started().shortrepr())
        if self.is_cancel() and (self.has_cancel() or
                                  not False):
            parts.append("cancel = %s" % self.get_cancel().shortrepr())
        if self.is_cancel_refused() and (self.has_cancel_refused() or
                                  not False):
            parts.append("cancelRefused = %s" % self.get_cancel_refused().shortrepr())
        if self.is_worker_died() and (self.has_worker_died() or
                                  not False):
            parts.append("workerDied = %s" % self.get_worker_died().shortrepr())
        if self.is_error() and (self.has_error() or
                                  not False):
            parts.append("error = %s" % self.get_error().shortrepr())
        if self.is_snapshot() and (self.has_snapshot() or
                                  not False):
            parts.append("snapshot = %s" % self.get_snapshot().shortrepr())
        if self.is_retract() and (self.has_retract() or
                                  not False):
            parts.append("retract = %s" % self.get_retract().shortrepr())
        if self.is_retracted() and (self.has_retracted() or
                                  not False):
            parts.append("retracted = %s" % self.get_retracted().shortrepr())
        if self.is_stop() and (self.has_stop() or
                                  not False):
            parts.append("stop = %s" % self.get_stop().shortrepr())
        if self.is_suspended() and (self.has_suspended() or
                                  not False):
            parts.append("suspended = %s" % self.get_suspended().shortrepr())
        if self.is_resumed() and (self.has_resumed() or
                                  not False):
            parts.append("resumed = %s" % self.get_resumed().shortrepr())
        if self.is_end_worker() and (self.has_end_worker() or
                                  not False):
            parts.append("endWorker = %s" % self.get_end_worker().shortrepr())
        if self.is_credit() and (self.has_credit() or
                                  not False):
            parts.append("credit = %s" % self.get_credit().shortrepr())
        if self.is_received() and (self.has_received() or
                                  not False):
            parts.append("received = %s" % self.get_received().shortrepr())
        if self.is_object() and (self.has_object() or
                                  not False):
            parts.append("object = %s" % self.get_object().shortrepr())
        if self.is_forget_objects() and (self.has_forget_objects() or
                                  not False):
            parts.append("forgetObjects = %s" % self.get_forget_objects().shortrepr())
        if self.is_shutdown(): parts.append("shutdown = %s" % "void")
        if self.is_output() and (self.has_output() or
                                  not False):
            parts.append("output = %s" % self.get_output().shortrepr())
        if self.is_fetch_objects() and (self.has_fetch_objects() or
                                  not False):
            parts.append("fetchObjects = %s" % self.get_fetch_objects().shortrepr())
        if self.is_history() and (self.has_history() or
                                  not False):
            parts.append("history = %s" % self.get_history().shortrepr())
        if self.is_graphs() and (self.has_graphs() or
                                  not False):
            parts.append("graphs = %s" % self.get_graphs().shortrepr())
        if self.is_notice() and (self.has_notice() or
                                  not False):
            parts.append("notice = %s" % self.get_notice().shortrepr())
        if self.is_transfer_objects() and (self.has_transfer_objects() or
                                  not False):
            parts.append("transferObjects = %s" % self.get_transfer_objects().shortrepr())
        if self.is_transferred() and (self.has_transferred() or
                                  not False):
            parts.append("transferred = %s" % self.get_transferred().shortrepr())
        if self.is_read_object() and (self.has_read_object() or
                                  not False):
            parts.append("readObject = %s" % self.get_read_object().shortrepr())
        if self.is_object_chunk() and (self.has_object_chunk() or
                                  not False):
            parts.append("objectChunk = %s" % self.get_object_chunk().shortrepr())
        if self.is_no_object() and (self.has_no_object() or
                                  not False):
            parts.append("noObject = %s" % self.get_no_object().shortrepr())
        if self.is_objects() and (self.has_objects() or
                                  not False):
            parts.append("objects = %s" % self.get_objects().shortrepr())
        if self.is_environment() and (self.has_environment() or
                                  not False):
            parts.append("environment = %s" % self.get_environment().shortrepr())
        if self.is_contents_wanted() and (self.has_contents_wanted() or
                                  not False):
            parts.append("contentsWanted = %s" % self.get_contents_wanted().shortrepr())
        if self.is_contents() and (self.has_contents() or
                                  not False):
            parts.append("contents = %s" % self.get_contents().shortrepr())
        if self.is_environment_ready() and (self.has_environment_ready() or
                                  not False):
            parts.append("environmentReady = %s" % self.get_environment_ready().shortrepr())
        if self.is_change_worker() and (self.has_change_worker() or
                                  not False):
            parts.append("changeWorker = %s" % self.get_change_worker().shortrepr())
        if self.is_gang_member() and (self.has_gang_member() or
                                  not False):
            parts.append("gangMember = %s" % self.get_gang_member().shortrepr())
        if self.is_exchange() and (self.has_exchange() or
                                  not False):
            parts.append("exchange = %s" % self.get_exchange().shortrepr())
        if self.is_held_results() and (self.has_held_results() or
                                  not False):
            parts.append("heldResults = %s" % self.get_held_results().shortrepr())
        return "(%s)" % ", ".join(parts)

_Message_list_item_type = _StructItemType(Message)

@Capability.__extend__
class Capability(_Struct):
    __capnpy_id__ = 0x990994eac80c0904
    __static_data_size__ = 1
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def amount(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, amount=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.alloc_text(pos + 8, _encode_maybe(name))
        builder.write_uint32(pos + 0, amount)
        return builder.as_string()
    
    def __init__(self, name=None, amount=0):
        _buf = Capability.__new(name, amount)
        self._init_from_buffer(_buf, 0, 1, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("amount = %s" % self.amount)
        return "(%s)" % ", ".join(parts)

_Capability_list_item_type = _StructItemType(Capability)

@DataAddress.__extend__
class DataAddress(_Struct):
    __capnpy_id__ = 0xa1d052bab4c0864f
    __static_data_size__ = 0
    __static_ptrs_size__ = 3
    
    
    @property
    def address(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_address(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_address(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def key(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_key(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_key(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def ticket(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_ticket(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_ticket(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @staticmethod
    def __new(address=None, key=None, ticket=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.alloc_text(pos + 0, _encode_maybe(address))
        builder.alloc_text(pos + 8, _encode_maybe(key))
        builder.alloc_text(pos + 16, _encode_maybe(ticket))
        return builder.as_string()
    
    def __init__(self, address=None, key=None, ticket=None):
        _buf = DataAddress.__new(address, key, ticket)
        self._init_from_buffer(_buf, 0, 0, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_address(): parts.append("address = %s" % _text_unicode_repr(self.get_address()))
        if self.has_key(): parts.append("key = %s" % _text_unicode_repr(self.get_key()))
        if self.has_ticket(): parts.append("ticket = %s" % _text_unicode_repr(self.get_ticket()))
        return "(%s)" % ", ".join(parts)

_DataAddress_list_item_type = _StructItemType(DataAddress)

@HostResource.__extend__
class HostResource(_Struct):
    __capnpy_id__ = 0x82fdec9084e3b1cd
    __static_data_size__ = 2
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def amount(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def has_ids(self):
        # no union check
        value = self._read_bit(8, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @staticmethod
    def __new(name=None, amount=0, has_ids=False):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.alloc_text(pos + 16, _encode_maybe(name))
        builder.write_uint64(pos + 0, amount)
        builder.write_bool(8, 0, has_ids)
        return builder.as_string()
    
    def __init__(self, name=None, amount=0, has_ids=False):
        _buf = HostResource.__new(name, amount, has_ids)
        self._init_from_buffer(_buf, 0, 2, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("amount = %s" % self.amount)
        parts.append("hasIds = %s" % str(self.has_ids).lower())
        return "(%s)" % ", ".join(parts)

_HostResource_list_item_type = _StructItemType(HostResource)

@WorkerHeartbeat.__extend__
class WorkerHeartbeat(_Struct):
    __capnpy_id__ = 0x9bad7d3d4ed5d7bd
    __static_data_size__ = 3
    __static_ptrs_size__ = 0
    
    
    @property
    def incarnation(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def resident_bytes(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def cpu_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(incarnation=0, resident_bytes=0, cpu_milliseconds=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.write_uint64(pos + 0, incarnation)
        builder.write_uint64(pos + 8, resident_bytes)
        builder.write_uint64(pos + 16, cpu_milliseconds)
        return builder.as_string()
    
    def __init__(self, incarnation=0, resident_bytes=0, cpu_milliseconds=0):
        _buf = WorkerHeartbeat.__new(incarnation, resident_bytes, cpu_milliseconds)
        self._init_from_buffer(_buf, 0, 3, 0)
    
    def shortrepr(self):
        parts = []
        parts.append("incarnation = %s" % self.incarnation)
        parts.append("residentBytes = %s" % self.resident_bytes)
        parts.append("cpuMilliseconds = %s" % self.cpu_milliseconds)
        return "(%s)" % ", ".join(parts)

_WorkerHeartbeat_list_item_type = _StructItemType(WorkerHeartbeat)

@PoolState.__extend__
class PoolState(_Struct):
    __capnpy_id__ = 0xb5b47eecc83f3c4d
    __static_data_size__ = 6
    __static_ptrs_size__ = 2
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def wanted(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def booting(self):
        # no union check
        value = self._read_primitive(4, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def there(self):
        # no union check
        value = self._read_primitive(8, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def draining(self):
        # no union check
        value = self._read_primitive(12, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def failed(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def late(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def left(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def is_resting(self):
        # no union check
        value = self._read_bit(40, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def problem(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_problem(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_problem(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def problem_seconds(self):
        # no union check
        value = self._read_primitive(44, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, wanted=0, booting=0, there=0, draining=0, failed=0, late=0, left=0, is_resting=False, problem=None, problem_seconds=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(64)
        builder.alloc_text(pos + 48, _encode_maybe(name))
        builder.write_uint32(pos + 0, wanted)
        builder.write_uint32(pos + 4, booting)
        builder.write_uint32(pos + 8, there)
        builder.write_uint32(pos + 12, draining)
        builder.write_uint64(pos + 16, failed)
        builder.write_uint64(pos + 24, late)
        builder.write_uint64(pos + 32, left)
        builder.write_bool(40, 0, is_resting)
        builder.alloc_text(pos + 56, _encode_maybe(problem))
        builder.write_uint32(pos + 44, problem_seconds)
        return builder.as_string()
    
    def __init__(self, name=None, wanted=0, booting=0, there=0, draining=0, failed=0, late=0, left=0, is_resting=False, problem=None, problem_seconds=0):
        _buf = PoolState.__new(name, wanted, booting, there, draining, failed, late, left, is_resting, problem, problem_seconds)
        self._init_from_buffer(_buf, 0, 6, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("wanted = %s" % self.wanted)
        parts.append("booting = %s" % self.booting)
        parts.append("there = %s" % self.there)
        parts.append("draining = %s" % self.draining)
        parts.append("failed = %s" % self.failed)
        parts.append("late = %s" % self.late)
        parts.append("left = %s" % self.left)
        parts.append("isResting = %s" % str(self.is_resting).lower())
        if self.has_problem(): parts.append("problem = %s" % _text_unicode_repr(self.get_problem()))
        parts.append("problemSeconds = %s" % self.problem_seconds)
        return "(%s)" % ", ".join(parts)

_PoolState_list_item_type = _StructItemType(PoolState)

@Host.__extend__
class Host(_Struct):
    __capnpy_id__ = 0x8d8f5a8a44bc5e26
    __static_data_size__ = 2
    __static_ptrs_size__ = 3
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def language(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_language(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_language(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def version(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_version(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_version(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def packages(self):
        # no union check
        value = self._read_primitive(0, ord(b'H'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unix_milliseconds(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, language=None, version=None, packages=0, unix_milliseconds=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.alloc_text(pos + 16, _encode_maybe(name))
        builder.alloc_text(pos + 24, _encode_maybe(language))
        builder.alloc_text(pos + 32, _encode_maybe(version))
        builder.write_uint16(pos + 0, packages)
        builder.write_uint64(pos + 8, unix_milliseconds)
        return builder.as_string()
    
    def __init__(self, name=None, language=None, version=None, packages=0, unix_milliseconds=0):
        _buf = Host.__new(name, language, version, packages, unix_milliseconds)
        self._init_from_buffer(_buf, 0, 2, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        if self.has_language(): parts.append("language = %s" % _text_unicode_repr(self.get_language()))
        if self.has_version(): parts.append("version = %s" % _text_unicode_repr(self.get_version()))
        parts.append("packages = %s" % self.packages)
        parts.append("unixMilliseconds = %s" % self.unix_milliseconds)
        return "(%s)" % ", ".join(parts)

_Host_list_item_type = _StructItemType(Host)

@Options.__extend__
class Options(_Struct):
    __capnpy_id__ = 0xd07e5958881ef616
    __static_data_size__ = 5
    __static_ptrs_size__ = 5
    
    
    @property
    def priority(self):
        # no union check
        value = self._read_primitive(0, ord(b'i'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def depth(self):
        # no union check
        value = self._read_primitive(4, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def retries(self):
        # no union check
        value = self._read_primitive(8, ord(b'i'))
        if -1 != 0:
            value = value ^ -1
        return value
    
    @property
    def timeout_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def profiling(self):
        # no union check
        value = self._read_bit(12, 1)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def capabilities(self):
        # no union check
        return self._read_list(8, _Capability_list_item_type)
    
    def get_capabilities(self):
        res = self.capabilities
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Capability_list_item_type)
        return res
    
    def has_capabilities(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def stream_output(self):
        # no union check
        value = self._read_bit(12, 2)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def graph(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def keys(self):
        # no union check
        return self._read_text_unicode(16)
    
    def get_keys(self):
        return self._read_text_unicode(16, default_=b"")
    
    def has_keys(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def calls(self):
        # no union check
        value = self._read_primitive(32, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def limits(self):
        # no union check
        return self._read_list(24, _TextUnicodeItemType(_Types.text))
    
    def get_limits(self):
        res = self.limits
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_limits(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def resources(self):
        # no union check
        return self._read_list(32, _Resource_list_item_type)
    
    def get_resources(self):
        res = self.resources
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Resource_list_item_type)
        return res
    
    def has_resources(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def release_resources(self):
        # no union check
        value = self._read_bit(12, 4)
        if False != 0:
            value = value ^ False
        return value
    
    @property
    def gang_size(self):
        # no union check
        value = self._read_primitive(36, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(priority=0, depth=0, retries=-1, timeout_milliseconds=0, profiling=False, name=None, capabilities=None, stream_output=False, graph=0, keys=None, calls=0, limits=None, resources=None, release_resources=False, gang_size=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(80)
        builder.write_int32(pos + 0, priority)
        builder.write_uint32(pos + 4, depth)
        retries ^= -1
        builder.write_int32(pos + 8, retries)
        builder.write_uint64(pos + 16, timeout_milliseconds)
        builder.write_bool(12, 0, profiling)
        builder.alloc_text(pos + 40, _encode_maybe(name))
        builder.copy_from_list(pos + 48, _Capability_list_item_type, capabilities)
        builder.write_bool(12, 1, stream_output)
        builder.write_uint64(pos + 24, graph)
        builder.alloc_text(pos + 56, _encode_maybe(keys))
        builder.write_uint32(pos + 32, calls)
        builder.copy_from_list(pos + 64, _TextUnicodeItemType(_Types.text), limits)
        builder.copy_from_list(pos + 72, _Resource_list_item_type, resources)
        builder.write_bool(12, 2, release_resources)
        builder.write_uint32(pos + 36, gang_size)
        return builder.as_string()
    
    def __init__(self, priority=0, depth=0, retries=-1, timeout_milliseconds=0, profiling=False, name=None, capabilities=None, stream_output=False, graph=0, keys=None, calls=0, limits=None, resources=None, release_resources=False, gang_size=0):
        _buf = Options.__new(priority, depth, retries, timeout_milliseconds, profiling, name, capabilities, stream_output, graph, keys, calls, limits, resources, release_resources, gang_size)
        self._init_from_buffer(_buf, 0, 5, 5)
    
    def shortrepr(self):
        parts = []
        parts.append("priority = %s" % self.priority)
        parts.append("depth = %s" % self.depth)
        parts.append("retries = %s" % self.retries)
        parts.append("timeoutMilliseconds = %s" % self.timeout_milliseconds)
        parts.append("profiling = %s" % str(self.profiling).lower())
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        if self.has_capabilities(): parts.append("capabilities = %s" % self.get_capabilities().shortrepr())
        parts.append("streamOutput = %s" % str(self.stream_output).lower())
        parts.append("graph = %s" % self.graph)
        if self.has_keys(): parts.append("keys = %s" % _text_unicode_repr(self.get_keys()))
        parts.append("calls = %s" % self.calls)
        if self.has_limits(): parts.append("limits = %s" % self.get_limits().shortrepr())
        if self.has_resources(): parts.append("resources = %s" % self.get_resources().shortrepr())
        parts.append("releaseResources = %s" % str(self.release_resources).lower())
        parts.append("gangSize = %s" % self.gang_size)
        return "(%s)" % ", ".join(parts)

_Options_list_item_type = _StructItemType(Options)

@Resource.__extend__
class Resource(_Struct):
    __capnpy_id__ = 0x8d053718cf89047f
    __static_data_size__ = 1
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def amount(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, amount=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.alloc_text(pos + 8, _encode_maybe(name))
        builder.write_uint64(pos + 0, amount)
        return builder.as_string()
    
    def __init__(self, name=None, amount=0):
        _buf = Resource.__new(name, amount)
        self._init_from_buffer(_buf, 0, 1, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("amount = %s" % self.amount)
        return "(%s)" % ", ".join(parts)

_Resource_list_item_type = _StructItemType(Resource)

@Counter.__extend__
class Counter(_Struct):
    __capnpy_id__ = 0x8d744c24ac985510
    __static_data_size__ = 2
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def count(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def last_milliseconds(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, count=0, last_milliseconds=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(24)
        builder.alloc_text(pos + 16, _encode_maybe(name))
        builder.write_uint64(pos + 0, count)
        builder.write_uint64(pos + 8, last_milliseconds)
        return builder.as_string()
    
    def __init__(self, name=None, count=0, last_milliseconds=0):
        _buf = Counter.__new(name, count, last_milliseconds)
        self._init_from_buffer(_buf, 0, 2, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("count = %s" % self.count)
        parts.append("lastMilliseconds = %s" % self.last_milliseconds)
        return "(%s)" % ", ".join(parts)

_Counter_list_item_type = _StructItemType(Counter)

@SchedulerProcess.__extend__
class SchedulerProcess(_Struct):
    __capnpy_id__ = 0xa7dab8c36236904a
    __static_data_size__ = 6
    __static_ptrs_size__ = 3
    
    
    @property
    def interpreter(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_interpreter(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_interpreter(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def host(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_host(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_host(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def pid(self):
        # no union check
        value = self._read_primitive(0, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def resident_bytes(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def cpu_milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def loop_turns(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def loop_microseconds(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def loop_durations(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint64))
    
    def get_loop_durations(self):
        res = self.loop_durations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_loop_durations(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def monitor_microseconds(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(interpreter=None, host=None, pid=0, resident_bytes=0, cpu_milliseconds=0, loop_turns=0, loop_microseconds=0, loop_durations=None, monitor_microseconds=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(72)
        builder.alloc_text(pos + 48, _encode_maybe(interpreter))
        builder.alloc_text(pos + 56, _encode_maybe(host))
        builder.write_uint32(pos + 0, pid)
        builder.write_uint64(pos + 8, resident_bytes)
        builder.write_uint64(pos + 16, cpu_milliseconds)
        builder.write_uint64(pos + 24, loop_turns)
        builder.write_uint64(pos + 32, loop_microseconds)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint64), loop_durations)
        builder.write_uint64(pos + 40, monitor_microseconds)
        return builder.as_string()
    
    def __init__(self, interpreter=None, host=None, pid=0, resident_bytes=0, cpu_milliseconds=0, loop_turns=0, loop_microseconds=0, loop_durations=None, monitor_microseconds=0):
        _buf = SchedulerProcess.__new(interpreter, host, pid, resident_bytes, cpu_milliseconds, loop_turns, loop_microseconds, loop_durations, monitor_microseconds)
        self._init_from_buffer(_buf, 0, 6, 3)
    
    def shortrepr(self):
        parts = []
        if self.has_interpreter(): parts.append("interpreter = %s" % _text_unicode_repr(self.get_interpreter()))
        if self.has_host(): parts.append("host = %s" % _text_unicode_repr(self.get_host()))
        parts.append("pid = %s" % self.pid)
        parts.append("residentBytes = %s" % self.resident_bytes)
        parts.append("cpuMilliseconds = %s" % self.cpu_milliseconds)
        parts.append("loopTurns = %s" % self.loop_turns)
        parts.append("loopMicroseconds = %s" % self.loop_microseconds)
        if self.has_loop_durations(): parts.append("loopDurations = %s" % self.get_loop_durations().shortrepr())
        parts.append("monitorMicroseconds = %s" % self.monitor_microseconds)
        return "(%s)" % ", ".join(parts)

_SchedulerProcess_list_item_type = _StructItemType(SchedulerProcess)

@Texts.__extend__
class Texts(_Struct):
    __capnpy_id__ = 0xc2c3faa3f0ee14a5
    __static_data_size__ = 0
    __static_ptrs_size__ = 2
    
    
    @property
    def text(self):
        # no union check
        return self._read_data(0)
    
    def get_text(self):
        return self._read_data(0, default_=b"")
    
    def has_text(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def sizes(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_sizes(self):
        res = self.sizes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_sizes(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @staticmethod
    def __new(text=None, sizes=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(16)
        builder.alloc_data(pos + 0, text)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), sizes)
        return builder.as_string()
    
    def __init__(self, text=None, sizes=None):
        _buf = Texts.__new(text, sizes)
        self._init_from_buffer(_buf, 0, 0, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_text(): parts.append("text = %s" % _data_repr(self.get_text()))
        if self.has_sizes(): parts.append("sizes = %s" % self.get_sizes().shortrepr())
        return "(%s)" % ", ".join(parts)

_Texts_list_item_type = _StructItemType(Texts)

@WorkerColumns.__extend__
class WorkerColumns(_Struct):
    __capnpy_id__ = 0xe7cb1d0d3b1c02c5
    __static_data_size__ = 0
    __static_ptrs_size__ = 24
    
    
    @property
    def incarnations(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_incarnations(self):
        res = self.incarnations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_incarnations(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def agents(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_agents(self):
        res = self.agents
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_agents(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def hosts(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_hosts(self):
        res = self.hosts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_hosts(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def pids(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint32))
    
    def get_pids(self):
        res = self.pids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_pids(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def languages(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint32))
    
    def get_languages(self):
        res = self.languages
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_languages(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def versions(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint32))
    
    def get_versions(self):
        res = self.versions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_versions(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def capabilities(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint32))
    
    def get_capabilities(self):
        res = self.capabilities
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_capabilities(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def states(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint8))
    
    def get_states(self):
        res = self.states
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_states(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def resident_bytes(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint64))
    
    def get_resident_bytes(self):
        res = self.resident_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_resident_bytes(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def cpu_milliseconds(self):
        # no union check
        return self._read_list(80, _PrimitiveItemType(_Types.uint64))
    
    def get_cpu_milliseconds(self):
        res = self.cpu_milliseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_cpu_milliseconds(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def free(self):
        # no union check
        return self._read_list(88, _PrimitiveItemType(_Types.uint32))
    
    def get_free(self):
        res = self.free
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_free(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def held(self):
        # no union check
        return self._read_list(96, _PrimitiveItemType(_Types.uint32))
    
    def get_held(self):
        res = self.held
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_held(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def running(self):
        # no union check
        return self._read_list(104, _PrimitiveItemType(_Types.uint32))
    
    def get_running(self):
        res = self.running
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_running(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def suspended(self):
        # no union check
        return self._read_list(112, _PrimitiveItemType(_Types.uint32))
    
    def get_suspended(self):
        res = self.suspended
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_suspended(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def sent(self):
        # no union check
        return self._read_list(120, _PrimitiveItemType(_Types.uint64))
    
    def get_sent(self):
        res = self.sent
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_sent(self):
        ptr = self._read_fast_ptr(120)
        return ptr != 0
    
    @property
    def done(self):
        # no union check
        return self._read_list(128, _PrimitiveItemType(_Types.uint64))
    
    def get_done(self):
        res = self.done
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_done(self):
        ptr = self._read_fast_ptr(128)
        return ptr != 0
    
    @property
    def clients(self):
        # no union check
        return self._read_list(136, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(136)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(144, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(144)
        return ptr != 0
    
    @property
    def attempts(self):
        # no union check
        return self._read_list(152, _PrimitiveItemType(_Types.uint32))
    
    def get_attempts(self):
        res = self.attempts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_attempts(self):
        ptr = self._read_fast_ptr(152)
        return ptr != 0
    
    @property
    def tasks(self):
        # no union check
        return self._read_list(160, _PrimitiveItemType(_Types.uint32))
    
    def get_tasks(self):
        res = self.tasks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_tasks(self):
        ptr = self._read_fast_ptr(160)
        return ptr != 0
    
    @property
    def run_milliseconds(self):
        # no union check
        return self._read_list(168, _PrimitiveItemType(_Types.uint64))
    
    def get_run_milliseconds(self):
        res = self.run_milliseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_run_milliseconds(self):
        ptr = self._read_fast_ptr(168)
        return ptr != 0
    
    @property
    def functions(self):
        # no union check
        return self._read_list(176, _PrimitiveItemType(_Types.uint32))
    
    def get_functions(self):
        res = self.functions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_functions(self):
        ptr = self._read_fast_ptr(176)
        return ptr != 0
    
    @property
    def environments(self):
        # no union check
        return self._read_list(184, _PrimitiveItemType(_Types.uint32))
    
    def get_environments(self):
        res = self.environments
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_environments(self):
        ptr = self._read_fast_ptr(184)
        return ptr != 0
    
    @staticmethod
    def __new(incarnations=None, agents=None, names=None, hosts=None, pids=None, languages=None, versions=None, capabilities=None, states=None, resident_bytes=None, cpu_milliseconds=None, free=None, held=None, running=None, suspended=None, sent=None, done=None, clients=None, ids=None, attempts=None, tasks=None, run_milliseconds=None, functions=None, environments=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(192)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), incarnations)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), agents)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), hosts)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), pids)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint32), languages)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint32), versions)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint32), capabilities)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint8), states)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint64), resident_bytes)
        builder.copy_from_list(pos + 80, _PrimitiveItemType(_Types.uint64), cpu_milliseconds)
        builder.copy_from_list(pos + 88, _PrimitiveItemType(_Types.uint32), free)
        builder.copy_from_list(pos + 96, _PrimitiveItemType(_Types.uint32), held)
        builder.copy_from_list(pos + 104, _PrimitiveItemType(_Types.uint32), running)
        builder.copy_from_list(pos + 112, _PrimitiveItemType(_Types.uint32), suspended)
        builder.copy_from_list(pos + 120, _PrimitiveItemType(_Types.uint64), sent)
        builder.copy_from_list(pos + 128, _PrimitiveItemType(_Types.uint64), done)
        builder.copy_from_list(pos + 136, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 144, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 152, _PrimitiveItemType(_Types.uint32), attempts)
        builder.copy_from_list(pos + 160, _PrimitiveItemType(_Types.uint32), tasks)
        builder.copy_from_list(pos + 168, _PrimitiveItemType(_Types.uint64), run_milliseconds)
        builder.copy_from_list(pos + 176, _PrimitiveItemType(_Types.uint32), functions)
        builder.copy_from_list(pos + 184, _PrimitiveItemType(_Types.uint32), environments)
        return builder.as_string()
    
    def __init__(self, incarnations=None, agents=None, names=None, hosts=None, pids=None, languages=None, versions=None, capabilities=None, states=None, resident_bytes=None, cpu_milliseconds=None, free=None, held=None, running=None, suspended=None, sent=None, done=None, clients=None, ids=None, attempts=None, tasks=None, run_milliseconds=None, functions=None, environments=None):
        _buf = WorkerColumns.__new(incarnations, agents, names, hosts, pids, languages, versions, capabilities, states, resident_bytes, cpu_milliseconds, free, held, running, suspended, sent, done, clients, ids, attempts, tasks, run_milliseconds, functions, environments)
        self._init_from_buffer(_buf, 0, 0, 24)
    
    def shortrepr(self):
        parts = []
        if self.has_incarnations(): parts.append("incarnations = %s" % self.get_incarnations().shortrepr())
        if self.has_agents(): parts.append("agents = %s" % self.get_agents().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_hosts(): parts.append("hosts = %s" % self.get_hosts().shortrepr())
        if self.has_pids(): parts.append("pids = %s" % self.get_pids().shortrepr())
        if self.has_languages(): parts.append("languages = %s" % self.get_languages().shortrepr())
        if self.has_versions(): parts.append("versions = %s" % self.get_versions().shortrepr())
        if self.has_capabilities(): parts.append("capabilities = %s" % self.get_capabilities().shortrepr())
        if self.has_states(): parts.append("states = %s" % self.get_states().shortrepr())
        if self.has_resident_bytes(): parts.append("residentBytes = %s" % self.get_resident_bytes().shortrepr())
        if self.has_cpu_milliseconds(): parts.append("cpuMilliseconds = %s" % self.get_cpu_milliseconds().shortrepr())
        if self.has_free(): parts.append("free = %s" % self.get_free().shortrepr())
        if self.has_held(): parts.append("held = %s" % self.get_held().shortrepr())
        if self.has_running(): parts.append("running = %s" % self.get_running().shortrepr())
        if self.has_suspended(): parts.append("suspended = %s" % self.get_suspended().shortrepr())
        if self.has_sent(): parts.append("sent = %s" % self.get_sent().shortrepr())
        if self.has_done(): parts.append("done = %s" % self.get_done().shortrepr())
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_attempts(): parts.append("attempts = %s" % self.get_attempts().shortrepr())
        if self.has_tasks(): parts.append("tasks = %s" % self.get_tasks().shortrepr())
        if self.has_run_milliseconds(): parts.append("runMilliseconds = %s" % self.get_run_milliseconds().shortrepr())
        if self.has_functions(): parts.append("functions = %s" % self.get_functions().shortrepr())
        if self.has_environments(): parts.append("environments = %s" % self.get_environments().shortrepr())
        return "(%s)" % ", ".join(parts)

_WorkerColumns_list_item_type = _StructItemType(WorkerColumns)

@AgentColumns.__extend__
class AgentColumns(_Struct):
    __capnpy_id__ = 0x893b63319b442fca
    __static_data_size__ = 0
    __static_ptrs_size__ = 17
    
    
    @property
    def incarnations(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_incarnations(self):
        res = self.incarnations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_incarnations(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def hosts(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_hosts(self):
        res = self.hosts
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_hosts(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def pids(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint32))
    
    def get_pids(self):
        res = self.pids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_pids(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def languages(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint32))
    
    def get_languages(self):
        res = self.languages
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_languages(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def versions(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint32))
    
    def get_versions(self):
        res = self.versions
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_versions(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def resident_bytes(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_resident_bytes(self):
        res = self.resident_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_resident_bytes(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def cpu_milliseconds(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint64))
    
    def get_cpu_milliseconds(self):
        res = self.cpu_milliseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_cpu_milliseconds(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def lag_microseconds(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint64))
    
    def get_lag_microseconds(self):
        res = self.lag_microseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_lag_microseconds(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @property
    def last_heartbeat_milliseconds(self):
        # no union check
        return self._read_list(72, _PrimitiveItemType(_Types.uint64))
    
    def get_last_heartbeat_milliseconds(self):
        res = self.last_heartbeat_milliseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_last_heartbeat_milliseconds(self):
        ptr = self._read_fast_ptr(72)
        return ptr != 0
    
    @property
    def memory_bytes(self):
        # no union check
        return self._read_list(80, _PrimitiveItemType(_Types.uint64))
    
    def get_memory_bytes(self):
        res = self.memory_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_memory_bytes(self):
        ptr = self._read_fast_ptr(80)
        return ptr != 0
    
    @property
    def disk_bytes(self):
        # no union check
        return self._read_list(88, _PrimitiveItemType(_Types.uint64))
    
    def get_disk_bytes(self):
        res = self.disk_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_disk_bytes(self):
        ptr = self._read_fast_ptr(88)
        return ptr != 0
    
    @property
    def moved_bytes(self):
        # no union check
        return self._read_list(96, _PrimitiveItemType(_Types.uint64))
    
    def get_moved_bytes(self):
        res = self.moved_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_moved_bytes(self):
        ptr = self._read_fast_ptr(96)
        return ptr != 0
    
    @property
    def received_bytes(self):
        # no union check
        return self._read_list(104, _PrimitiveItemType(_Types.uint64))
    
    def get_received_bytes(self):
        res = self.received_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_received_bytes(self):
        ptr = self._read_fast_ptr(104)
        return ptr != 0
    
    @property
    def sent_bytes(self):
        # no union check
        return self._read_list(112, _PrimitiveItemType(_Types.uint64))
    
    def get_sent_bytes(self):
        res = self.sent_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_sent_bytes(self):
        ptr = self._read_fast_ptr(112)
        return ptr != 0
    
    @property
    def coming_bytes(self):
        # no union check
        return self._read_list(120, _PrimitiveItemType(_Types.uint64))
    
    def get_coming_bytes(self):
        res = self.coming_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_coming_bytes(self):
        ptr = self._read_fast_ptr(120)
        return ptr != 0
    
    @property
    def room_bytes(self):
        # no union check
        return self._read_list(128, _PrimitiveItemType(_Types.uint64))
    
    def get_room_bytes(self):
        res = self.room_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_room_bytes(self):
        ptr = self._read_fast_ptr(128)
        return ptr != 0
    
    @staticmethod
    def __new(incarnations=None, names=None, hosts=None, pids=None, languages=None, versions=None, resident_bytes=None, cpu_milliseconds=None, lag_microseconds=None, last_heartbeat_milliseconds=None, memory_bytes=None, disk_bytes=None, moved_bytes=None, received_bytes=None, sent_bytes=None, coming_bytes=None, room_bytes=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(136)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), incarnations)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), hosts)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint32), pids)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint32), languages)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint32), versions)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), resident_bytes)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint64), cpu_milliseconds)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint64), lag_microseconds)
        builder.copy_from_list(pos + 72, _PrimitiveItemType(_Types.uint64), last_heartbeat_milliseconds)
        builder.copy_from_list(pos + 80, _PrimitiveItemType(_Types.uint64), memory_bytes)
        builder.copy_from_list(pos + 88, _PrimitiveItemType(_Types.uint64), disk_bytes)
        builder.copy_from_list(pos + 96, _PrimitiveItemType(_Types.uint64), moved_bytes)
        builder.copy_from_list(pos + 104, _PrimitiveItemType(_Types.uint64), received_bytes)
        builder.copy_from_list(pos + 112, _PrimitiveItemType(_Types.uint64), sent_bytes)
        builder.copy_from_list(pos + 120, _PrimitiveItemType(_Types.uint64), coming_bytes)
        builder.copy_from_list(pos + 128, _PrimitiveItemType(_Types.uint64), room_bytes)
        return builder.as_string()
    
    def __init__(self, incarnations=None, names=None, hosts=None, pids=None, languages=None, versions=None, resident_bytes=None, cpu_milliseconds=None, lag_microseconds=None, last_heartbeat_milliseconds=None, memory_bytes=None, disk_bytes=None, moved_bytes=None, received_bytes=None, sent_bytes=None, coming_bytes=None, room_bytes=None):
        _buf = AgentColumns.__new(incarnations, names, hosts, pids, languages, versions, resident_bytes, cpu_milliseconds, lag_microseconds, last_heartbeat_milliseconds, memory_bytes, disk_bytes, moved_bytes, received_bytes, sent_bytes, coming_bytes, room_bytes)
        self._init_from_buffer(_buf, 0, 0, 17)
    
    def shortrepr(self):
        parts = []
        if self.has_incarnations(): parts.append("incarnations = %s" % self.get_incarnations().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_hosts(): parts.append("hosts = %s" % self.get_hosts().shortrepr())
        if self.has_pids(): parts.append("pids = %s" % self.get_pids().shortrepr())
        if self.has_languages(): parts.append("languages = %s" % self.get_languages().shortrepr())
        if self.has_versions(): parts.append("versions = %s" % self.get_versions().shortrepr())
        if self.has_resident_bytes(): parts.append("residentBytes = %s" % self.get_resident_bytes().shortrepr())
        if self.has_cpu_milliseconds(): parts.append("cpuMilliseconds = %s" % self.get_cpu_milliseconds().shortrepr())
        if self.has_lag_microseconds(): parts.append("lagMicroseconds = %s" % self.get_lag_microseconds().shortrepr())
        if self.has_last_heartbeat_milliseconds(): parts.append("lastHeartbeatMilliseconds = %s" % self.get_last_heartbeat_milliseconds().shortrepr())
        if self.has_memory_bytes(): parts.append("memoryBytes = %s" % self.get_memory_bytes().shortrepr())
        if self.has_disk_bytes(): parts.append("diskBytes = %s" % self.get_disk_bytes().shortrepr())
        if self.has_moved_bytes(): parts.append("movedBytes = %s" % self.get_moved_bytes().shortrepr())
        if self.has_received_bytes(): parts.append("receivedBytes = %s" % self.get_received_bytes().shortrepr())
        if self.has_sent_bytes(): parts.append("sentBytes = %s" % self.get_sent_bytes().shortrepr())
        if self.has_coming_bytes(): parts.append("comingBytes = %s" % self.get_coming_bytes().shortrepr())
        if self.has_room_bytes(): parts.append("roomBytes = %s" % self.get_room_bytes().shortrepr())
        return "(%s)" % ", ".join(parts)

_AgentColumns_list_item_type = _StructItemType(AgentColumns)

@ClientColumns.__extend__
class ClientColumns(_Struct):
    __capnpy_id__ = 0xea7564062035f338
    __static_data_size__ = 0
    __static_ptrs_size__ = 9
    
    
    @property
    def incarnations(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_incarnations(self):
        res = self.incarnations
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_incarnations(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def workers(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint64))
    
    def get_workers(self):
        res = self.workers
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_workers(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def waiting(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_waiting(self):
        res = self.waiting
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_waiting(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def not_waiting(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint64))
    
    def get_not_waiting(self):
        res = self.not_waiting
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_not_waiting(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def objects(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint64))
    
    def get_objects(self):
        res = self.objects
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_objects(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def object_bytes(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_object_bytes(self):
        res = self.object_bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_object_bytes(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def done(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint64))
    
    def get_done(self):
        res = self.done
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_done(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def shares(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint32))
    
    def get_shares(self):
        res = self.shares
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_shares(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @staticmethod
    def __new(incarnations=None, names=None, workers=None, waiting=None, not_waiting=None, objects=None, object_bytes=None, done=None, shares=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(72)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), incarnations)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint64), workers)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), waiting)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), not_waiting)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint64), objects)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), object_bytes)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint64), done)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint32), shares)
        return builder.as_string()
    
    def __init__(self, incarnations=None, names=None, workers=None, waiting=None, not_waiting=None, objects=None, object_bytes=None, done=None, shares=None):
        _buf = ClientColumns.__new(incarnations, names, workers, waiting, not_waiting, objects, object_bytes, done, shares)
        self._init_from_buffer(_buf, 0, 0, 9)
    
    def shortrepr(self):
        parts = []
        if self.has_incarnations(): parts.append("incarnations = %s" % self.get_incarnations().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_workers(): parts.append("workers = %s" % self.get_workers().shortrepr())
        if self.has_waiting(): parts.append("waiting = %s" % self.get_waiting().shortrepr())
        if self.has_not_waiting(): parts.append("notWaiting = %s" % self.get_not_waiting().shortrepr())
        if self.has_objects(): parts.append("objects = %s" % self.get_objects().shortrepr())
        if self.has_object_bytes(): parts.append("objectBytes = %s" % self.get_object_bytes().shortrepr())
        if self.has_done(): parts.append("done = %s" % self.get_done().shortrepr())
        if self.has_shares(): parts.append("shares = %s" % self.get_shares().shortrepr())
        return "(%s)" % ", ".join(parts)

_ClientColumns_list_item_type = _StructItemType(ClientColumns)

@FunctionColumns.__extend__
class FunctionColumns(_Struct):
    __capnpy_id__ = 0xdd251dca209ad846
    __static_data_size__ = 0
    __static_ptrs_size__ = 9
    
    
    @property
    def numbers(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint32))
    
    def get_numbers(self):
        res = self.numbers
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_numbers(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def tasks(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint64))
    
    def get_tasks(self):
        res = self.tasks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_tasks(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def done(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_done(self):
        res = self.done
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_done(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def failed(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint64))
    
    def get_failed(self):
        res = self.failed
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_failed(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def run_nanoseconds(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint64))
    
    def get_run_nanoseconds(self):
        res = self.run_nanoseconds
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_run_nanoseconds(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @property
    def bytes(self):
        # no union check
        return self._read_list(48, _PrimitiveItemType(_Types.uint64))
    
    def get_bytes(self):
        res = self.bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_bytes(self):
        ptr = self._read_fast_ptr(48)
        return ptr != 0
    
    @property
    def clients(self):
        # no union check
        return self._read_list(56, _PrimitiveItemType(_Types.uint32))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(56)
        return ptr != 0
    
    @property
    def task_names(self):
        # no union check
        return self._read_list(64, _PrimitiveItemType(_Types.uint32))
    
    def get_task_names(self):
        res = self.task_names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_task_names(self):
        ptr = self._read_fast_ptr(64)
        return ptr != 0
    
    @staticmethod
    def __new(numbers=None, names=None, tasks=None, done=None, failed=None, run_nanoseconds=None, bytes=None, clients=None, task_names=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(72)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint32), numbers)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint64), tasks)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), done)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), failed)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint64), run_nanoseconds)
        builder.copy_from_list(pos + 48, _PrimitiveItemType(_Types.uint64), bytes)
        builder.copy_from_list(pos + 56, _PrimitiveItemType(_Types.uint32), clients)
        builder.copy_from_list(pos + 64, _PrimitiveItemType(_Types.uint32), task_names)
        return builder.as_string()
    
    def __init__(self, numbers=None, names=None, tasks=None, done=None, failed=None, run_nanoseconds=None, bytes=None, clients=None, task_names=None):
        _buf = FunctionColumns.__new(numbers, names, tasks, done, failed, run_nanoseconds, bytes, clients, task_names)
        self._init_from_buffer(_buf, 0, 0, 9)
    
    def shortrepr(self):
        parts = []
        if self.has_numbers(): parts.append("numbers = %s" % self.get_numbers().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_tasks(): parts.append("tasks = %s" % self.get_tasks().shortrepr())
        if self.has_done(): parts.append("done = %s" % self.get_done().shortrepr())
        if self.has_failed(): parts.append("failed = %s" % self.get_failed().shortrepr())
        if self.has_run_nanoseconds(): parts.append("runNanoseconds = %s" % self.get_run_nanoseconds().shortrepr())
        if self.has_bytes(): parts.append("bytes = %s" % self.get_bytes().shortrepr())
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_task_names(): parts.append("taskNames = %s" % self.get_task_names().shortrepr())
        return "(%s)" % ", ".join(parts)

_FunctionColumns_list_item_type = _StructItemType(FunctionColumns)

@ObjectColumns.__extend__
class ObjectColumns(_Struct):
    __capnpy_id__ = 0xb9d7fd2ef3e931be
    __static_data_size__ = 0
    __static_ptrs_size__ = 6
    
    
    @property
    def clients(self):
        # no union check
        return self._read_list(0, _PrimitiveItemType(_Types.uint64))
    
    def get_clients(self):
        res = self.clients
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_clients(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def ids(self):
        # no union check
        return self._read_list(8, _PrimitiveItemType(_Types.uint64))
    
    def get_ids(self):
        res = self.ids
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_ids(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def names(self):
        # no union check
        return self._read_list(16, _PrimitiveItemType(_Types.uint32))
    
    def get_names(self):
        res = self.names
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint32))
        return res
    
    def has_names(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def bytes(self):
        # no union check
        return self._read_list(24, _PrimitiveItemType(_Types.uint64))
    
    def get_bytes(self):
        res = self.bytes
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_bytes(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def tasks(self):
        # no union check
        return self._read_list(32, _PrimitiveItemType(_Types.uint64))
    
    def get_tasks(self):
        res = self.tasks
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint64))
        return res
    
    def has_tasks(self):
        ptr = self._read_fast_ptr(32)
        return ptr != 0
    
    @property
    def states(self):
        # no union check
        return self._read_list(40, _PrimitiveItemType(_Types.uint8))
    
    def get_states(self):
        res = self.states
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _PrimitiveItemType(_Types.uint8))
        return res
    
    def has_states(self):
        ptr = self._read_fast_ptr(40)
        return ptr != 0
    
    @staticmethod
    def __new(clients=None, ids=None, names=None, bytes=None, tasks=None, states=None):
        builder = _SegmentBuilder()
        pos = builder.allocate(48)
        builder.copy_from_list(pos + 0, _PrimitiveItemType(_Types.uint64), clients)
        builder.copy_from_list(pos + 8, _PrimitiveItemType(_Types.uint64), ids)
        builder.copy_from_list(pos + 16, _PrimitiveItemType(_Types.uint32), names)
        builder.copy_from_list(pos + 24, _PrimitiveItemType(_Types.uint64), bytes)
        builder.copy_from_list(pos + 32, _PrimitiveItemType(_Types.uint64), tasks)
        builder.copy_from_list(pos + 40, _PrimitiveItemType(_Types.uint8), states)
        return builder.as_string()
    
    def __init__(self, clients=None, ids=None, names=None, bytes=None, tasks=None, states=None):
        _buf = ObjectColumns.__new(clients, ids, names, bytes, tasks, states)
        self._init_from_buffer(_buf, 0, 0, 6)
    
    def shortrepr(self):
        parts = []
        if self.has_clients(): parts.append("clients = %s" % self.get_clients().shortrepr())
        if self.has_ids(): parts.append("ids = %s" % self.get_ids().shortrepr())
        if self.has_names(): parts.append("names = %s" % self.get_names().shortrepr())
        if self.has_bytes(): parts.append("bytes = %s" % self.get_bytes().shortrepr())
        if self.has_tasks(): parts.append("tasks = %s" % self.get_tasks().shortrepr())
        if self.has_states(): parts.append("states = %s" % self.get_states().shortrepr())
        return "(%s)" % ", ".join(parts)

_ObjectColumns_list_item_type = _StructItemType(ObjectColumns)

@Share.__extend__
class Share(_Struct):
    __capnpy_id__ = 0x97bee393e39c199d
    __static_data_size__ = 7
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def weight(self):
        # no union check
        value = self._read_primitive(0, ord(b'd'))
        if 0.0 != 0:
            value = value ^ 0.0
        return value
    
    @property
    def clients(self):
        # no union check
        value = self._read_primitive(8, ord(b'I'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def waiting(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def running(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def used_milliseconds(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def max_running(self):
        # no union check
        value = self._read_primitive(40, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def max_waiting(self):
        # no union check
        value = self._read_primitive(48, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, weight=0.0, clients=0, waiting=0, running=0, used_milliseconds=0, max_running=0, max_waiting=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(64)
        builder.alloc_text(pos + 56, _encode_maybe(name))
        builder.write_float64(pos + 0, weight)
        builder.write_uint32(pos + 8, clients)
        builder.write_uint64(pos + 16, waiting)
        builder.write_uint64(pos + 24, running)
        builder.write_uint64(pos + 32, used_milliseconds)
        builder.write_uint64(pos + 40, max_running)
        builder.write_uint64(pos + 48, max_waiting)
        return builder.as_string()
    
    def __init__(self, name=None, weight=0.0, clients=0, waiting=0, running=0, used_milliseconds=0, max_running=0, max_waiting=0):
        _buf = Share.__new(name, weight, clients, waiting, running, used_milliseconds, max_running, max_waiting)
        self._init_from_buffer(_buf, 0, 7, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("weight = %s" % _float64_repr(self.weight))
        parts.append("clients = %s" % self.clients)
        parts.append("waiting = %s" % self.waiting)
        parts.append("running = %s" % self.running)
        parts.append("usedMilliseconds = %s" % self.used_milliseconds)
        parts.append("maxRunning = %s" % self.max_running)
        parts.append("maxWaiting = %s" % self.max_waiting)
        return "(%s)" % ", ".join(parts)

_Share_list_item_type = _StructItemType(Share)

@TaskLimit.__extend__
class TaskLimit(_Struct):
    __capnpy_id__ = 0xb1814a9a8a644d96
    __static_data_size__ = 4
    __static_ptrs_size__ = 1
    
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_name(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def most(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def per_second(self):
        # no union check
        value = self._read_primitive(8, ord(b'd'))
        if 0.0 != 0:
            value = value ^ 0.0
        return value
    
    @property
    def running(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def waiting(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(name=None, most=0, per_second=0.0, running=0, waiting=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(40)
        builder.alloc_text(pos + 32, _encode_maybe(name))
        builder.write_uint64(pos + 0, most)
        builder.write_float64(pos + 8, per_second)
        builder.write_uint64(pos + 16, running)
        builder.write_uint64(pos + 24, waiting)
        return builder.as_string()
    
    def __init__(self, name=None, most=0, per_second=0.0, running=0, waiting=0):
        _buf = TaskLimit.__new(name, most, per_second, running, waiting)
        self._init_from_buffer(_buf, 0, 4, 1)
    
    def shortrepr(self):
        parts = []
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("most = %s" % self.most)
        parts.append("perSecond = %s" % _float64_repr(self.per_second))
        parts.append("running = %s" % self.running)
        parts.append("waiting = %s" % self.waiting)
        return "(%s)" % ", ".join(parts)

_TaskLimit_list_item_type = _StructItemType(TaskLimit)

@HostPool.__extend__
class HostPool(_Struct):
    __capnpy_id__ = 0xb69d8d5de34c5c3b
    __static_data_size__ = 5
    __static_ptrs_size__ = 2
    
    
    @property
    def host(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_host(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_host(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def name(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_name(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_name(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def total(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def booked(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def reserved(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def free(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def agent(self):
        # no union check
        value = self._read_primitive(32, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(host=None, name=None, total=0, booked=0, reserved=0, free=0, agent=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(56)
        builder.alloc_text(pos + 40, _encode_maybe(host))
        builder.alloc_text(pos + 48, _encode_maybe(name))
        builder.write_uint64(pos + 0, total)
        builder.write_uint64(pos + 8, booked)
        builder.write_uint64(pos + 16, reserved)
        builder.write_uint64(pos + 24, free)
        builder.write_uint64(pos + 32, agent)
        return builder.as_string()
    
    def __init__(self, host=None, name=None, total=0, booked=0, reserved=0, free=0, agent=0):
        _buf = HostPool.__new(host, name, total, booked, reserved, free, agent)
        self._init_from_buffer(_buf, 0, 5, 2)
    
    def shortrepr(self):
        parts = []
        if self.has_host(): parts.append("host = %s" % _text_unicode_repr(self.get_host()))
        if self.has_name(): parts.append("name = %s" % _text_unicode_repr(self.get_name()))
        parts.append("total = %s" % self.total)
        parts.append("booked = %s" % self.booked)
        parts.append("reserved = %s" % self.reserved)
        parts.append("free = %s" % self.free)
        parts.append("agent = %s" % self.agent)
        return "(%s)" % ", ".join(parts)

_HostPool_list_item_type = _StructItemType(HostPool)

@Need.__extend__
class Need(_Struct):
    __capnpy_id__ = 0xb71add18ddf915ac
    __static_data_size__ = 4
    __static_ptrs_size__ = 4
    
    
    @property
    def capabilities(self):
        # no union check
        return self._read_text_unicode(0)
    
    def get_capabilities(self):
        return self._read_text_unicode(0, default_=b"")
    
    def has_capabilities(self):
        ptr = self._read_fast_ptr(0)
        return ptr != 0
    
    @property
    def kind(self):
        # no union check
        return self._read_text_unicode(8)
    
    def get_kind(self):
        return self._read_text_unicode(8, default_=b"")
    
    def has_kind(self):
        ptr = self._read_fast_ptr(8)
        return ptr != 0
    
    @property
    def limits(self):
        # no union check
        return self._read_list(16, _TextUnicodeItemType(_Types.text))
    
    def get_limits(self):
        res = self.limits
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _TextUnicodeItemType(_Types.text))
        return res
    
    def has_limits(self):
        ptr = self._read_fast_ptr(16)
        return ptr != 0
    
    @property
    def waiting(self):
        # no union check
        value = self._read_primitive(0, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def unknown(self):
        # no union check
        value = self._read_primitive(8, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def milliseconds(self):
        # no union check
        value = self._read_primitive(16, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @property
    def resources(self):
        # no union check
        return self._read_list(24, _Resource_list_item_type)
    
    def get_resources(self):
        res = self.resources
        if res is None:
            return _List.from_buffer(b'', 0, 0, 0, _Resource_list_item_type)
        return res
    
    def has_resources(self):
        ptr = self._read_fast_ptr(24)
        return ptr != 0
    
    @property
    def held(self):
        # no union check
        value = self._read_primitive(24, ord(b'Q'))
        if 0 != 0:
            value = value ^ 0
        return value
    
    @staticmethod
    def __new(capabilities=None, kind=None, limits=None, waiting=0, unknown=0, milliseconds=0, resources=None, held=0):
        builder = _SegmentBuilder()
        pos = builder.allocate(64)
        builder.alloc_text(pos + 32, _encode_maybe(capabilities))
        builder.alloc_text(pos + 40, _encode_maybe(kind))
        builder.copy_from_list(pos + 48, _TextUnicodeItemType(_Types.text), limits)
        builder.write_uint64(pos + 0, waiting)
        builder.write_uint64(pos + 8, unknown)
        builder.write_uint64(pos + 16, milliseconds)
        builder.copy_from_list(pos + 56, _Resource_list_item_type, resources)
        builder.write_uint64(pos + 24, held)
        return builder.as_string()
    
    def __init__(self, capabilities=None, kind=None, limits=None, waiting=0, unknown=0, milliseconds=0, resources=None, held=0):
        _buf = Need.__new(capabilities, kind, limits, waiting, unknown, milliseconds, resources, held)
        self._init_from_buffer(_buf, 0, 4, 4)
    
    def shortrepr(self):
        parts = []
        if self.has_capabilities(): parts.append("capabilities = %s" % _text_unicode_repr(self.get_capabilities()))
        if self.has_kind(): parts.append("kind = %s" % _text_unicode_repr(self.get_kind()))
        if self.has_limits(): parts.append("limits = %s" % self.get_limits().shortrepr())
        parts.append("waiting = %s" % self.waiting)
        parts.append("unknown = %s" % self.unknown)
        parts.append("milliseconds = %s" % self.milliseconds)
        if self.has_resources(): parts.append("resources = %s" % self.get_resources().shortrepr())
        parts.append("held = %s" % self.held)
        return "(%s)" % ", ".join(parts)

_Need_list_item_type = _StructItemType(Need)

protocolVersion = 1

_extend_module_maybe(globals(), modname=__name__)
