// A worker that offers functions by name. It has no host agent: the scheduler notices its death when its lease ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "peer.h"

// Thrown by a function that stops on request.
struct Stopped {};

using Stop = std::atomic<bool>;

// The bytes of one object that a task reads; null: it is not here.
using Input = std::shared_ptr<const std::string>;

// Turns the bytes of the arguments and of the inputs into the bytes of the result. Its exceptions become the task's
// error. No input is null.
using Call = std::function<std::string(const std::string& arguments, const std::vector<Input>& inputs, const Stop& stop)>;

class Worker : public Peer {
public:
    // `offers`: functions by kind, for example "named json add".
    Worker(const Settings& settings, std::map<std::string, Call> offers);
    ~Worker() override;

protected:
    void describe(Hello::Builder hello) override;
    void joined(Welcome::Reader welcome) override;
    void forgotten() override;
    void handleMessage(Message::Reader message, const std::vector<Frame>& frames) override;
    Time deadline() override;
    void tick() override;

private:
    struct Name {
        uint64_t client, id;
        uint32_t attempt;
        bool operator<(const Name& other) const {
            return std::tie(client, id, attempt) < std::tie(other.client, other.id, other.attempt);
        }
    };

    struct Task {
        Name name;
        std::string kind;
        std::string arguments;
        uint8_t flags;
        std::vector<Input> inputs;
    };

    struct Answer {
        Outcome outcome;
        std::string payload;
        uint64_t nanoseconds, cpuNanoseconds, peakBytes;
    };

    static constexpr uint8_t PROFILE = 1, REPORT_START = 2;

    static std::set<Name> names(Tasks::Reader tasks);
    static void write(Tasks::Builder tasks, const std::vector<Name>& names);
    void queue(Dispatch::Reader batch, const std::vector<Frame>& frames);
    std::vector<Input> takeInputs(Dispatch::Reader batch, uint64_t client, uint32_t begin, uint32_t end,
                                  std::string& payload) const;
    void returnTasks(Tasks::Reader wanted);
    void reportStarted();
    void answer();
    void runTasks();
    Answer execute(const Task& task);

    std::map<std::string, Call> offers_;
    std::map<uint32_t, std::string> kinds_;  // kinds of functions, by the scheduler's numbers
    std::map<std::pair<uint64_t, uint64_t>, Input> objects_;  // by client and id
    std::deque<Task> queue_;
    std::optional<Task> running_;
    Time startTime_;
    bool isReported_ = false;  // whether `started` was sent for the running task

    // Shared by the thread with the socket and the thread that runs tasks: one task, one answer.
    std::mutex lock_;
    std::condition_variable taskReady_;
    std::optional<Task> task_;
    std::optional<Answer> answer_;
    bool isEnding_ = false;
    Stop stop_{false};
    int done_;  // an eventfd, readable when there is an answer
    std::thread thread_;
};
