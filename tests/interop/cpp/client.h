// A client that submits tasks for functions that workers offer by name, and reports their answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "peer.h"

class Client : public Peer {
public:
    explicit Client(const Settings& settings) : Peer(settings, Role::CLIENT) {}

    // Submits tasks of one function, one per payload. Returns the first id; the others follow it. Tasks beyond the
    // credit wait here.
    uint64_t submit(const std::string& kind, std::vector<std::string> payloads);
    void cancel(uint64_t id, bool force);
    size_t open() const { return open_.size(); }

protected:
    virtual void resolved(uint64_t id, Outcome outcome, const std::string& payload) = 0;
    virtual void started(uint64_t) {}
    virtual void cancelRefused(uint64_t) {}
    virtual void noticed(const std::string&) {}

    void describe(Hello::Builder) override {}
    void joined(Welcome::Reader welcome) override;
    void handleMessage(Message::Reader message, const std::vector<Frame>& frames) override;

private:
    static constexpr uint64_t OVERHEAD = 128;  // bytes that a task counts in addition to its payload
    static constexpr size_t BATCH = 1000;      // most rows of a Submit
    static constexpr size_t BATCH_BYTES = 1 << 20;  // most payload bytes of a Submit

    struct Task {
        uint32_t function;
        std::string payload;
    };

    void flush();
    void sendBatch();
    void announce(uint32_t number, const std::string& kind);
    void handleResolved(Resolved::Reader batch, const std::vector<Frame>& frames);
    void count(uint64_t bytes);

    std::map<std::string, uint32_t> functions_;  // numbers of functions, by kind
    std::map<uint64_t, Task> open_;              // tasks without an answer, by id
    uint64_t nextId_ = 0;
    uint64_t nextToSend_ = 0;  // open tasks from this id on are not sent yet
    // Bytes since the last welcome.
    uint64_t credit_ = 0, submitted_ = 0;
    uint64_t window_ = 0, received_ = 0, acknowledged_ = 0;
};
