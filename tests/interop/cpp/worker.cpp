#include "worker.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

namespace {

constexpr std::chrono::milliseconds LONG{10};  // `started` is sent for tasks that run for longer

uint64_t cpuNanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

uint64_t peakBytes() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return uint64_t(used.ru_maxrss) * 1024;
}

}  // namespace

Worker::Worker(const Settings& settings, std::map<std::string, Call> offers)
    : Peer(settings, Role::WORKER), offers_(std::move(offers)), done_(eventfd(0, EFD_CLOEXEC)) {
    watch(done_, [this] { answer(); });
    thread_ = std::thread([this] { runTasks(); });
}

Worker::~Worker() {
    {
        std::lock_guard<std::mutex> guard(lock_);
        isEnding_ = true;
        stop_ = true;
    }
    taskReady_.notify_one();
    thread_.join();
    close(done_);
}

// ------------------------------------------------------------------------------------------------------ conversation

void Worker::describe(Hello::Builder hello) {
    auto kinds = hello.initKinds(offers_.size());
    uint32_t position = 0;
    for (const auto& offer : offers_) kinds.set(position++, offer.first);
    if (running_) write(hello.initRunning(), {running_->name});
}

void Worker::joined(Welcome::Reader) {
    queue_.clear();
    kinds_.clear();
    objects_.clear();
}

void Worker::forgotten() { queue_.clear(); }

void Worker::handleMessage(Message::Reader message, const std::vector<Frame>& frames) {
    switch (message.which()) {
        case Message::FUNCTION:
            kinds_[message.getFunction().getNumber()] = message.getFunction().getKind();
            break;
        case Message::FORGET_FUNCTIONS:
            for (uint32_t number : message.getForgetFunctions().getNumbers()) kinds_.erase(number);
            break;
        case Message::DISPATCH:
            queue(message.getDispatch(), frames);
            break;
        case Message::RETRACT:
            returnTasks(message.getRetract());
            break;
        case Message::STOP:
            if (running_ && names(message.getStop()).count(running_->name)) stop_ = true;
            break;
        case Message::OBJECT: {
            auto content = std::make_shared<std::string>();
            for (const Frame& frame : frames) *content += frame;
            objects_[{message.getObject().getClient(), message.getObject().getId()}] = std::move(content);
            break;
        }
        case Message::FORGET_OBJECTS: {
            auto forgotten = message.getForgetObjects();
            auto ids = forgotten.getIds();
            for (uint32_t row = 0; row < ids.size(); ++row) objects_.erase({at(forgotten.getClients(), row), ids[row]});
            break;
        }
        default:  // unknown messages are ignored
            break;
    }
}

void Worker::queue(Dispatch::Reader batch, const std::vector<Frame>& frames) {
    auto ids = batch.getIds();
    auto arguments = payloads(ids.size(), batch.getSizes(), batch.getLarge(), batch.getPayload(), frames);
    uint32_t begin = 0;
    for (uint32_t row = 0; row < ids.size(); ++row) {
        Name name{at(batch.getClients(), row), ids[row], uint32_t(at(batch.getAttempts(), row))};
        auto kind = kinds_.find(at(batch.getFunctions(), row));
        uint32_t end = begin + at(batch.getInputCounts(), row);
        if (end > batch.getInputs().size()) throw std::runtime_error("`inputCounts` reach beyond `inputs`");
        auto inputs = takeInputs(batch, name.client, begin, end, arguments[row]);
        queue_.push_back({name, kind == kinds_.end() ? "" : kind->second, std::move(arguments[row]),
                          uint8_t(at(batch.getFlags(), row)), std::move(inputs)});
        begin = end;
    }
}

// Returns the inputs from `begin` to `end`: objects that the scheduler has sent before, or bytes at the end of the row's
// payload, which are cut off. Files of a host (`inputSources` 1 and 2) are for workers that have an agent.
std::vector<Input> Worker::takeInputs(Dispatch::Reader batch, uint64_t client, uint32_t begin, uint32_t end,
                                      std::string& payload) const {
    std::vector<Input> inputs(end - begin);
    size_t position = payload.size();
    for (uint32_t i = end; i-- > begin;) {
        if (uint64_t size = at(batch.getInlineSizes(), i)) {
            if (size - 1 > position) throw std::runtime_error("`inlineSizes` are longer than the payload");
            position -= size - 1;
            inputs[i - begin] = std::make_shared<std::string>(payload, position, size - 1);
        } else if (auto known = objects_.find({client, batch.getInputs()[i]});
                   known != objects_.end() && at(batch.getInputSources(), i) == 0) {
            inputs[i - begin] = known->second;
        }
    }
    payload.resize(position);
    return inputs;
}

void Worker::returnTasks(Tasks::Reader wanted) {
    std::set<Name> asked = names(wanted), given;
    for (auto task = queue_.begin(); task != queue_.end();) {
        if (asked.count(task->name)) {
            given.insert(task->name);
            task = queue_.erase(task);
        } else {
            ++task;
        }
    }
    capnp::MallocMessageBuilder builder;
    Retracted::Builder reply = builder.initRoot<Message>().initRetracted();
    auto clients = reply.initClients(asked.size());
    auto ids = reply.initIds(asked.size());
    auto attempts = reply.initAttempts(asked.size());
    auto answers = reply.initReturned(asked.size());
    uint32_t row = 0;
    for (const Name& name : asked) {
        clients.set(row, name.client);
        ids.set(row, name.id);
        attempts.set(row, name.attempt);
        answers.set(row++, given.count(name));
    }
    send(builder);
}

std::set<Worker::Name> Worker::names(Tasks::Reader tasks) {
    std::set<Name> found;
    auto ids = tasks.getIds();
    for (uint32_t row = 0; row < ids.size(); ++row) {
        found.insert({at(tasks.getClients(), row), ids[row], uint32_t(at(tasks.getAttempts(), row))});
    }
    return found;
}

void Worker::write(Tasks::Builder tasks, const std::vector<Name>& names) {
    auto clients = tasks.initClients(names.size());
    auto ids = tasks.initIds(names.size());
    auto attempts = tasks.initAttempts(names.size());
    for (uint32_t row = 0; row < names.size(); ++row) {
        clients.set(row, names[row].client);
        ids.set(row, names[row].id);
        attempts.set(row, names[row].attempt);
    }
}

// --------------------------------------------------------------------------------------------------- the task that runs

Time Worker::deadline() { return running_ && !isReported_ && isJoined() ? startTime_ + LONG : Time::max(); }

void Worker::tick() {
    if (!running_ && isJoined() && !queue_.empty()) {
        running_ = std::move(queue_.front());
        queue_.pop_front();
        startTime_ = Clock::now();
        isReported_ = stop_ = false;
        if (running_->flags & REPORT_START) reportStarted();  // before the task begins: its time limit counts from there
        {
            std::lock_guard<std::mutex> guard(lock_);
            task_ = running_;
        }
        taskReady_.notify_one();
    }
    if (running_ && !isReported_ && isJoined() && Clock::now() >= startTime_ + LONG) reportStarted();
}

void Worker::reportStarted() {
    capnp::MallocMessageBuilder builder;
    Started::Builder started = builder.initRoot<Message>().initStarted();
    started.initClients(1).set(0, running_->name.client);
    started.initIds(1).set(0, running_->name.id);
    started.initAttempts(1).set(0, running_->name.attempt);
    send(builder);
    isReported_ = true;
}

void Worker::answer() {
    uint64_t count;
    if (::read(done_, &count, sizeof count) != sizeof count) return;
    std::optional<Answer> answer;
    {
        std::lock_guard<std::mutex> guard(lock_);
        answer.swap(answer_);
    }
    capnp::MallocMessageBuilder builder;
    Results::Builder results = builder.initRoot<Message>().initResults();
    results.initClients(1).set(0, running_->name.client);
    results.initIds(1).set(0, running_->name.id);
    results.initAttempts(1).set(0, running_->name.attempt);
    results.initOutcomes(1).set(0, uint8_t(answer->outcome));
    results.initDurations(1).set(0, answer->nanoseconds);
    Payloads rows;
    rows.add(std::move(answer->payload));
    rows.write(results);
    if (running_->flags & PROFILE) {
        results.initCpuTimes(1).set(0, answer->cpuNanoseconds);
        results.initPeaks(1).set(0, answer->peakBytes);
    }
    running_.reset();
    send(builder, rows.frames);
}

void Worker::runTasks() {
    while (true) {
        Task task;
        {
            std::unique_lock<std::mutex> guard(lock_);
            taskReady_.wait(guard, [this] { return task_ || isEnding_; });
            if (isEnding_) return;
            task = std::move(*task_);
            task_.reset();
        }
        Answer answer = execute(task);
        {
            std::lock_guard<std::mutex> guard(lock_);
            answer_ = std::move(answer);
        }
        uint64_t one = 1;
        if (::write(done_, &one, sizeof one) != sizeof one) std::terminate();
    }
}

Worker::Answer Worker::execute(const Task& task) {
    Answer answer{Outcome::EXCEPTION, "", 0, cpuNanoseconds(), 0};
    Time begin = Clock::now();
    auto offer = offers_.find(task.kind);
    if (offer == offers_.end()) {
        answer.outcome = Outcome::FUNCTION_FAILED;
        answer.payload = "this worker does not offer " + (task.kind.empty() ? "that" : task.kind);
    } else if (std::count(task.inputs.begin(), task.inputs.end(), nullptr)) {
        answer.outcome = Outcome::INPUT_LOST;
        answer.payload = "an object that the task reads is not here";
    } else {
        try {
            answer.payload = offer->second(task.arguments, task.inputs, stop_);
            answer.outcome = Outcome::VALUE;
        } catch (const Stopped&) {
            answer.payload = "stopped";
        } catch (const kj::Exception& error) {
            answer.payload = error.getDescription().cStr();
        } catch (const std::exception& error) {
            answer.payload = error.what();
        }
    }
    answer.nanoseconds = std::chrono::nanoseconds(Clock::now() - begin).count();
    answer.cpuNanoseconds = cpuNanoseconds() - answer.cpuNanoseconds;
    answer.peakBytes = peakBytes();
    return answer;
}
