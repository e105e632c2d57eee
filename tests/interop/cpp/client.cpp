#include "client.h"

#include <algorithm>

uint64_t Client::submit(const std::string& kind, std::vector<std::string> payloads, std::vector<uint64_t> inputs,
                        bool keep) {
    auto [function, isNew] = functions_.try_emplace(kind, functions_.size() + 1);
    if (isNew && isJoined()) announce(function->second, kind);
    uint64_t first = nextId_;
    for (std::string& payload : payloads) {
        open_[nextId_++] = {function->second, std::move(payload), inputs, keep ? Keep::YES : Keep::NO};
    }
    flush();
    return first;
}

void Client::cancel(uint64_t id, bool force) {
    if (id >= nextToSend_ || !isJoined()) {  // the scheduler does not have it
        if (open_.erase(id)) resolved(id, Outcome::CANCELLED, "");
        return;
    }
    capnp::MallocMessageBuilder builder;
    Cancel::Builder cancel = builder.initRoot<Message>().initCancel();
    cancel.initIds(1).set(0, id);
    if (force) cancel.initForce(1).set(0, 1);
    send(builder);
}

void Client::announce(uint32_t number, const std::string& kind) {
    capnp::MallocMessageBuilder builder;
    Function::Builder function = builder.initRoot<Message>().initFunction();
    function.setNumber(number);
    function.setName(kind.substr(kind.rfind(' ') + 1));
    function.setKind(kind);
    send(builder, {""});  // by name: no bytes, but the frame is required
}

// Submits all open tasks again, with their ids: the scheduler is new, or does not know this client. Their inputs go into
// `keepEarlier`; the scheduler asks for those that it does not have.
void Client::joined(Welcome::Reader welcome) {
    credit_ = welcome.getCredit();
    window_ = welcome.getResultWindow();
    submitted_ = received_ = acknowledged_ = 0;
    nextToSend_ = 0;
    known_.clear();
    asked_.clear();
    for (const auto& function : functions_) announce(function.second, function.first);
    flush();
    std::vector<uint64_t> ended;
    for (uint64_t id : wanted_) {
        if (!open_.count(id)) ended.push_back(id);
    }
    sendIds(Message::FETCH_OBJECTS, ended);
}

void Client::flush() {
    while (isJoined() && submitted_ < credit_ && open_.lower_bound(nextToSend_) != open_.end()) sendBatch();
}

void Client::sendBatch() {
    auto end = sendRows(open_.lower_bound(nextToSend_), BATCH, std::min<uint64_t>(BATCH_BYTES, credit_ - submitted_));
    nextToSend_ = std::prev(end)->first + 1;
}

// Sends a batch that begins with this task and ends with the task that reaches one of the limits. Returns the first task
// that is not in it.
Client::Tasks::iterator Client::sendRows(Tasks::iterator task, size_t most, uint64_t mostBytes) {
    std::vector<Tasks::iterator> tasks;
    std::map<uint64_t, uint8_t> keep;  // by task, if its result is kept
    std::vector<uint64_t> inputs, earlier;
    Payloads rows;
    uint64_t bytes = 0;
    for (; task != open_.end() && tasks.size() < most && bytes < mostBytes; ++task) {
        for (uint64_t input : task->second.inputs) {
            inputs.push_back(input);
            if (!known_.insert(input).second) continue;
            // A result is kept from its task's row on, if this is in the same batch, or from now on.
            if (!tasks.empty() && input >= tasks.front()->first && input < task->first && open_.count(input)) {
                keep[input] = uint8_t(Keep::BOTH);
            } else {
                earlier.push_back(input);
            }
        }
        if (task->second.keep != Keep::NO) {
            keep[task->first] = uint8_t(task->second.keep);
            known_.insert(task->first);
        }
        tasks.push_back(task);
        bytes += task->second.payload.size() + OVERHEAD;
        rows.add(task->second.payload);
    }
    submitted_ += bytes;
    capnp::MallocMessageBuilder builder;
    Submit::Builder submit = builder.initRoot<Message>().initSubmit();
    auto ids = submit.initIds(tasks.size());
    auto functions = submit.initFunctions(tasks.size());
    auto counts = submit.initInputCounts(inputs.empty() ? 0 : tasks.size());
    auto kept = submit.initKeep(keep.empty() ? 0 : tasks.size());
    for (size_t row = 0; row < tasks.size(); ++row) {
        ids.set(row, tasks[row]->first);
        functions.set(row, tasks[row]->second.function);
        if (counts.size()) counts.set(row, tasks[row]->second.inputs.size());
        if (auto found = keep.find(tasks[row]->first); found != keep.end()) kept.set(row, found->second);
    }
    auto read = submit.initInputs(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) read.set(i, inputs[i]);
    auto keptEarlier = submit.initKeepEarlier(earlier.size());
    for (size_t i = 0; i < earlier.size(); ++i) keptEarlier.set(i, earlier[i]);
    rows.write(submit);
    send(builder, rows.frames);
    return task;
}

void Client::handleMessage(Message::Reader message, const std::vector<Frame>& frames) {
    switch (message.which()) {
        case Message::RESOLVED:
            handleResolved(message.getResolved(), frames);
            break;
        case Message::STARTED:
            for (uint64_t id : message.getStarted().getIds()) {
                if (open_.count(id)) started(id);
            }
            break;
        case Message::CANCEL_REFUSED:
            for (uint64_t id : message.getCancelRefused().getIds()) {
                if (open_.count(id)) cancelRefused(id);
            }
            break;
        case Message::CREDIT:
            credit_ = message.getCredit().getBytes();
            flush();
            break;
        case Message::OUTPUT:
            count(message.getOutput().getText().size());
            break;
        case Message::NOTICE:
            noticed(message.getNotice().getText());
            break;
        case Message::OBJECT: {
            std::string value;
            for (const Frame& frame : frames) value += frame;
            if (wanted_.erase(message.getObject().getId())) fetched(message.getObject().getId(), value);
            break;
        }
        case Message::FORGET_OBJECTS:
            for (uint64_t id : message.getForgetObjects().getIds()) handleMissing(id);
            break;
        case Message::FETCH_OBJECTS:
            for (uint64_t id : message.getFetchObjects().getIds()) {
                asked_.insert(id);
                if (!open_.count(id) && kept_.count(id)) makeAgain(id);
            }
            sendAsked();
            break;
        default:
            break;
    }
}

void Client::handleResolved(Resolved::Reader batch, const std::vector<Frame>& frames) {
    auto ids = batch.getIds();
    auto answers = payloads(ids.size(), batch.getSizes(), batch.getLarge(), batch.getPayload(), frames);
    uint64_t bytes = 0;
    for (uint32_t row = 0; row < ids.size(); ++row) {
        bytes += answers[row].size();
        auto task = open_.extract(ids[row]);
        if (task.empty()) continue;  // answered before; the task was submitted twice
        handleEnd(ids[row], task.mapped(), Outcome(at(batch.getOutcomes(), row)), answers[row]);
    }
    count(bytes);
    sendAsked();
}

void Client::handleEnd(uint64_t id, const Task& task, Outcome outcome, const std::string& payload) {
    if (outcome == Outcome::VALUE) values_[id] = payload;
    if (outcome == Outcome::KEPT) {
        kept_[id] = task;
        asked_.erase(id);  // the scheduler has it now
        if (wanted_.count(id)) sendIds(Message::FETCH_OBJECTS, {id});
    } else if (wanted_.erase(id)) {
        outcome == Outcome::VALUE ? fetched(id, payload) : lost(id);
    }
    if (!task.isAgain) resolved(id, outcome, payload);
}

// ---------------------------------------------------------------------------------------- results that other tasks read

void Client::fetch(uint64_t id) {
    wanted_.insert(id);
    if (isJoined() && !open_.count(id)) sendIds(Message::FETCH_OBJECTS, {id});
}

void Client::forget(uint64_t id) { unneeded_.insert(id); }

bool Client::isRead(uint64_t id) const {
    return std::any_of(open_.begin(), open_.end(), [id](const auto& each) {
        const auto& inputs = each.second.inputs;
        return each.first == id || std::find(inputs.begin(), inputs.end(), id) != inputs.end();
    });
}

// Frees results. Their readers must have ended: after a lost connection they would need them again.
void Client::tick() {
    std::vector<uint64_t> ids;
    for (auto id = unneeded_.begin(); id != unneeded_.end();) {
        if (!isJoined() || isRead(*id) || wanted_.count(*id)) {
            ++id;
            continue;
        }
        values_.erase(*id);
        kept_.erase(*id);
        if (known_.erase(*id)) ids.push_back(*id);
        id = unneeded_.erase(id);
    }
    sendIds(Message::FORGET_OBJECTS, ids);
}

// Submits the task of a kept result again, with the tasks of its own kept inputs if they are lost too: the scheduler
// asks for those that it does not have.
void Client::makeAgain(uint64_t id) {
    auto task = kept_.extract(id);
    task.mapped().isAgain = true;
    sendRows(open_.insert(std::move(task)).position, 1);
}

void Client::handleMissing(uint64_t id) {
    known_.erase(id);
    if (!wanted_.count(id) || open_.count(id)) return;
    if (kept_.count(id)) {
        makeAgain(id);
    } else {
        wanted_.erase(id);
        lost(id);
    }
}

// Answers for the results that the scheduler has asked for and that can be here or can't come.
void Client::sendAsked() {
    std::vector<uint64_t> missing, found;
    Payloads rows;
    for (auto id = asked_.begin(); id != asked_.end();) {
        if (open_.count(*id)) {
            ++id;
            continue;
        }
        auto value = values_.find(*id);
        if (value == values_.end()) {
            missing.push_back(*id);
            known_.erase(*id);
        } else {
            found.push_back(*id);
            submitted_ += value->second.size() + OVERHEAD;
            rows.add(value->second);
        }
        id = asked_.erase(id);
    }
    sendIds(Message::FORGET_OBJECTS, missing);
    if (found.empty()) return;
    capnp::MallocMessageBuilder builder;
    Objects::Builder objects = builder.initRoot<Message>().initObjects();
    auto ids = objects.initIds(found.size());
    for (size_t row = 0; row < found.size(); ++row) ids.set(row, found[row]);
    rows.write(objects);
    send(builder, rows.frames);
}

void Client::sendIds(Message::Which kind, const std::vector<uint64_t>& ids) {
    if (ids.empty()) return;
    capnp::MallocMessageBuilder builder;
    auto message = builder.initRoot<Message>();
    auto column = kind == Message::FETCH_OBJECTS ? message.initFetchObjects().initIds(ids.size())
                                                 : message.initForgetObjects().initIds(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) column.set(i, ids[i]);
    send(builder);
}

void Client::count(uint64_t bytes) {
    received_ += bytes;
    if (window_ == 0 || received_ - acknowledged_ < window_ / 4) return;
    acknowledged_ = received_;
    capnp::MallocMessageBuilder builder;
    builder.initRoot<Message>().initReceived().setBytes(received_);
    send(builder);
}
