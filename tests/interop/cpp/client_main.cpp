// A client with one command per line of standard input, and one line of output per event:
//
//   submit CODEC NAME PAYLOAD      one task; ids count from 0
//   keep CODEC NAME PAYLOAD        one task whose result stays in the cluster
//   read IDS CODEC NAME PAYLOAD    one task that reads the results of these tasks, such as 0,2, behind its arguments
//   many CODEC NAME COUNT          tasks with the arguments [0, 1], [1, 1], ...
//   fetch ID                       the value of a kept result: a line `fetched ID VALUE`, or `lost ID`
//   forget ID                      the result is not needed any more
//   cancel ID, force ID
//
// At the end of its input it waits for open tasks and values, and leaves. `client ADDRESS [--name NAME] [--keys DIR]`.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <sstream>

#include "client.h"

namespace {

const char* const OUTCOMES[] = {"value",     "exception", "functionFailed", "resultFailed", "retryable", "workerDied",
                                "cancelled", "timedOut",  "kept",           "inputLost",    "stored"};

class Console : public Client {
public:
    explicit Console(const Settings& settings) : Client(settings) {
        watch(STDIN_FILENO, [this] { read(); });
    }

protected:
    void joined(Welcome::Reader welcome) override {
        std::cout << "welcome " << welcome.getIncarnation() << std::endl;
        Client::joined(welcome);
    }

    void resolved(uint64_t id, Outcome outcome, const std::string& payload) override {
        std::cout << "resolved " << id << " " << OUTCOMES[int(outcome)] << " ";
        if (outcome == Outcome::KEPT) {  // eight bytes are the size; the name of the host follows
            uint64_t size = 0;
            memcpy(&size, payload.data(), std::min(payload.size(), sizeof size));
            std::cout << size << std::endl;
        } else {
            std::cout << payload << std::endl;
        }
    }

    void fetched(uint64_t id, const std::string& value) override {
        std::cout << "fetched " << id << " " << value << std::endl;
    }

    void lost(uint64_t id) override { std::cout << "lost " << id << std::endl; }

    void started(uint64_t id) override { std::cout << "started " << id << std::endl; }
    void cancelRefused(uint64_t id) override { std::cout << "cancelRefused " << id << std::endl; }
    void noticed(const std::string& text) override { std::cout << "notice " << text << std::endl; }

    void tick() override {
        Client::tick();
        if (hasEnded_ && !isBusy()) leave("done");
    }

private:
    void read() {
        char bytes[4096];
        ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
        if (size <= 0) {
            hasEnded_ = true;
            unwatch(STDIN_FILENO);  // at its end the input stays readable
            return;
        }
        input_.append(bytes, size);
        for (size_t end; (end = input_.find('\n')) != std::string::npos; input_.erase(0, end + 1)) {
            execute(input_.substr(0, end));
        }
    }

    void execute(const std::string& line) {
        std::istringstream words(line);
        std::string command, codec, name, rest;
        words >> command;
        if (command == "submit" || command == "keep" || command == "read" || command == "many") {
            std::vector<uint64_t> inputs;
            if (command == "read") inputs = readIds(words);
            words >> codec >> name >> std::ws;
            std::getline(words, rest);
            std::vector<std::string> payloads;
            if (command != "many") payloads.push_back(rest);
            for (int i = 0; command == "many" && i < std::stoi(rest); ++i) {
                payloads.push_back("[" + std::to_string(i) + ",1]");
            }
            submit("named " + codec + " " + name, std::move(payloads), std::move(inputs), command == "keep");
        } else if (command == "fetch" || command == "forget") {
            uint64_t id = 0;
            words >> id;
            command == "fetch" ? fetch(id) : forget(id);
        } else if (command == "cancel" || command == "force") {
            uint64_t id = 0;
            words >> id;
            cancel(id, command == "force");
        } else {
            throw std::runtime_error("no such command: " + line);
        }
    }

    static std::vector<uint64_t> readIds(std::istringstream& words) {
        std::string list, id;
        words >> list;
        std::vector<uint64_t> ids;
        for (std::istringstream parts(list); std::getline(parts, id, ',');) ids.push_back(std::stoull(id));
        return ids;
    }

    std::string input_;
    bool hasEnded_ = false;
};

}  // namespace

int main(int count, char** arguments) {
    try {
        Console(Settings::fromArguments(count, arguments)).run();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
