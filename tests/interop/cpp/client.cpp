#include "client.h"

uint64_t Client::submit(const std::string& kind, std::vector<std::string> payloads) {
    auto [function, isNew] = functions_.try_emplace(kind, functions_.size() + 1);
    if (isNew && isJoined()) announce(function->second, kind);
    uint64_t first = nextId_;
    for (std::string& payload : payloads) open_[nextId_++] = {function->second, std::move(payload)};
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

// Submits all open tasks again, with their ids: the scheduler is new, or does not know this client.
void Client::joined(Welcome::Reader welcome) {
    credit_ = welcome.getCredit();
    window_ = welcome.getResultWindow();
    submitted_ = received_ = acknowledged_ = 0;
    nextToSend_ = 0;
    for (const auto& function : functions_) announce(function.second, function.first);
    flush();
}

void Client::flush() {
    while (isJoined() && submitted_ < credit_ && open_.lower_bound(nextToSend_) != open_.end()) sendBatch();
}

void Client::sendBatch() {
    std::vector<uint64_t> ids;
    std::vector<uint32_t> numbers;
    Payloads rows;
    size_t bytes = 0;
    auto task = open_.lower_bound(nextToSend_);
    for (; task != open_.end() && ids.size() < BATCH && bytes < BATCH_BYTES; ++task) {
        ids.push_back(task->first);
        numbers.push_back(task->second.function);
        bytes += task->second.payload.size() + OVERHEAD;
        rows.add(task->second.payload);
    }
    nextToSend_ = ids.back() + 1;
    submitted_ += bytes;
    capnp::MallocMessageBuilder builder;
    Submit::Builder submit = builder.initRoot<Message>().initSubmit();
    auto idColumn = submit.initIds(ids.size());
    auto functions = submit.initFunctions(ids.size());
    for (size_t row = 0; row < ids.size(); ++row) {
        idColumn.set(row, ids[row]);
        functions.set(row, numbers[row]);
    }
    rows.write(submit);
    send(builder, rows.frames);
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
        if (open_.erase(ids[row]) == 0) continue;  // answered before; the task was submitted twice
        resolved(ids[row], Outcome(at(batch.getOutcomes(), row)), answers[row]);
    }
    count(bytes);
}

void Client::count(uint64_t bytes) {
    received_ += bytes;
    if (window_ == 0 || received_ - acknowledged_ < window_ / 4) return;
    acknowledged_ = received_;
    capnp::MallocMessageBuilder builder;
    builder.initRoot<Message>().initReceived().setBytes(received_);
    send(builder);
}
