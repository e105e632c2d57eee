// A client: it submits tasks for functions that workers offer by name, and tells what becomes of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "peer.h"

class Client : public Peer {
public:
    explicit Client(const Settings& settings) : Peer(settings, Role::CLIENT) {}

    // Submits tasks of one function, a payload each; returns the first id, the others follow it. What exceeds the
    // credit waits here.
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
    void take(Message::Reader message, const std::vector<Frame>& frames) override;

private:
    static constexpr uint64_t OVERHEAD = 128;  // of a task, beside its payload, in what is counted
    static constexpr size_t BATCH = 1000;      // rows, and
    static constexpr size_t BATCH_BYTES = 1 << 20;

    struct Task {
        uint32_t function;
        std::string payload;
    };

    void flush();
    void sendBatch();
    void announce(uint32_t number, const std::string& kind);
    void takeResolved(Resolved::Reader batch, const std::vector<Frame>& frames);
    void count(uint64_t bytes);

    std::map<std::string, uint32_t> functions_;  // numbers, by kind
    std::map<uint64_t, Task> open_;              // without an answer, by id
    uint64_t nextId_ = 0;
    uint64_t nextToSend_ = 0;  // of open tasks those from here on are not sent yet
    // Sums since the welcome, in bytes.
    uint64_t credit_ = 0, submitted_ = 0;
    uint64_t window_ = 0, taken_ = 0, told_ = 0;
};
