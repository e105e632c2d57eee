// A client with one command per line of standard input, and one line of output per event:
//
//   submit CODEC NAME PAYLOAD    one task; ids count from 0
//   many CODEC NAME COUNT        tasks with the arguments [0, 1], [1, 1], ...
//   cancel ID, force ID
//
// At the end of its input it waits for open tasks and leaves. `client ADDRESS [--name NAME] [--keys DIR]`.

#include <unistd.h>

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
        std::cout << "resolved " << id << " " << OUTCOMES[int(outcome)] << " " << payload << std::endl;
    }

    void started(uint64_t id) override { std::cout << "started " << id << std::endl; }
    void cancelRefused(uint64_t id) override { std::cout << "cancelRefused " << id << std::endl; }
    void noticed(const std::string& text) override { std::cout << "notice " << text << std::endl; }

    void tick() override {
        if (hasEnded_ && open() == 0) leave("done");
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
        if (command == "submit" || command == "many") {
            words >> codec >> name >> std::ws;
            std::getline(words, rest);
            std::vector<std::string> payloads;
            if (command == "submit") payloads.push_back(rest);
            for (int i = 0; command == "many" && i < std::stoi(rest); ++i) {
                payloads.push_back("[" + std::to_string(i) + ",1]");
            }
            submit("named " + codec + " " + name, std::move(payloads));
        } else if (command == "cancel" || command == "force") {
            uint64_t id = 0;
            words >> id;
            cancel(id, command == "force");
        } else {
            throw std::runtime_error("no such command: " + line);
        }
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
