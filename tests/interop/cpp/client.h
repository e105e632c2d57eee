// A client that submits tasks for functions that workers offer by name, and reports their answers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "peer.h"

class Client : public Peer {
public:
    explicit Client(const Settings& settings) : Peer(settings, Role::CLIENT) {}

    // Submits tasks of one function, one per payload. Returns the first id; the others follow it. Tasks beyond the
    // credit wait here.
    //
    // `inputs`: earlier tasks whose results the tasks read, behind their own arguments.
    // `keep`: the results stay in the cluster; `fetch` brings them.
    //
    // Results stay here or in the cluster until `forget`, because a later task may read them.
    uint64_t submit(const std::string& kind, std::vector<std::string> payloads, std::vector<uint64_t> inputs = {},
                    bool keep = false);
    void cancel(uint64_t id, bool force);
    // Asks for the value of a task with `keep`: `fetched` or `lost` follows.
    void fetch(uint64_t id);
    // The result of this task is not needed any more, except by tasks that were submitted already.
    void forget(uint64_t id);
    // Whether tasks are open, or values on their way.
    bool isBusy() const { return !open_.empty() || !wanted_.empty() || !unneeded_.empty(); }

protected:
    virtual void resolved(uint64_t id, Outcome outcome, const std::string& payload) = 0;
    virtual void fetched(uint64_t, const std::string& /* value */) {}
    // The value of a task does not exist, and can't be made again.
    virtual void lost(uint64_t) {}
    virtual void started(uint64_t) {}
    virtual void cancelRefused(uint64_t) {}
    virtual void noticed(const std::string&) {}

    void describe(Hello::Builder) override {}
    void joined(Welcome::Reader welcome) override;
    void handleMessage(Message::Reader message, const std::vector<Frame>& frames) override;
    void tick() override;

private:
    static constexpr uint64_t OVERHEAD = 128;  // bytes that a task counts in addition to its payload
    static constexpr size_t BATCH = 1000;      // most rows of a Submit
    static constexpr size_t BATCH_BYTES = 1 << 20;  // most payload bytes of a Submit

    struct Task {
        uint32_t function;
        std::string payload;
        std::vector<uint64_t> inputs;
        Keep keep;
        bool isAgain = false;  // its first answer was reported
    };
    using Tasks = std::map<uint64_t, Task>;

    void flush();
    void sendBatch();
    Tasks::iterator sendRows(Tasks::iterator task, size_t most, uint64_t mostBytes = BATCH_BYTES);
    void makeAgain(uint64_t id);
    bool isRead(uint64_t id) const;
    void handleEnd(uint64_t id, const Task& task, Outcome outcome, const std::string& payload);
    void handleMissing(uint64_t id);
    void sendAsked();
    void sendIds(Message::Which kind, const std::vector<uint64_t>& ids);
    void announce(uint32_t number, const std::string& kind);
    void handleResolved(Resolved::Reader batch, const std::vector<Frame>& frames);
    void count(uint64_t bytes);

    std::map<std::string, uint32_t> functions_;  // numbers of functions, by kind
    Tasks open_;                                 // tasks without an answer, by id
    Tasks kept_;                                 // tasks whose results stay in the cluster: they may be lost there
    std::map<uint64_t, std::string> values_;     // results that are here, by task
    std::set<uint64_t> known_;     // results that the scheduler has, or waits for, since the last welcome
    std::set<uint64_t> asked_;     // results that the scheduler has asked for
    std::set<uint64_t> wanted_;    // values that the scheduler was asked for
    std::set<uint64_t> unneeded_;  // results to forget when no open task reads them
    uint64_t nextId_ = 0;
    uint64_t nextToSend_ = 0;  // open tasks from this id on are not sent yet
    // Bytes since the last welcome.
    uint64_t credit_ = 0, submitted_ = 0;
    uint64_t window_ = 0, received_ = 0, acknowledged_ = 0;
};
