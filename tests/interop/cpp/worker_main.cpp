// A worker with functions for all tests: `worker ADDRESS [--name NAME] [--keys DIR]`.

#include <capnp/compat/json.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "worker.h"

namespace {

using Json = capnp::JsonValue;
using JsonCall = void (*)(capnp::List<Json>::Reader arguments, Json::Builder result, const Stop& stop);

void decode(const std::string& text, Json::Builder into) {
    capnp::JsonCodec().decodeRaw(kj::arrayPtr(text.data(), text.size()), into);
}

// Arguments are one array, and behind it the inputs; the result may be any value.
Call json(JsonCall call) {
    return [call](const std::string& text, const std::vector<Input>& inputs, const Stop& stop) {
        capnp::JsonCodec codec;
        capnp::MallocMessageBuilder given, arguments, result;
        decode(text, given.initRoot<Json>());
        if (!given.getRoot<Json>().isArray()) throw std::runtime_error("the arguments are not an array");
        auto first = given.getRoot<Json>().asReader().getArray();
        auto all = arguments.initRoot<Json>().initArray(first.size() + inputs.size());
        for (uint32_t i = 0; i < first.size(); ++i) all.setWithCaveats(i, first[i]);
        for (uint32_t i = 0; i < inputs.size(); ++i) decode(*inputs[i], all[first.size() + i]);
        call(all.asReader(), result.initRoot<Json>(), stop);
        return std::string(codec.encodeRaw(result.getRoot<Json>()).cStr());
    };
}

Json::Reader argument(capnp::List<Json>::Reader arguments, uint32_t position) {
    if (position >= arguments.size()) throw std::runtime_error("argument " + std::to_string(position) + " is missing");
    return arguments[position];
}

double number(capnp::List<Json>::Reader arguments, uint32_t position) {
    auto value = argument(arguments, position);
    if (!value.isNumber()) throw std::runtime_error("argument " + std::to_string(position) + " is not a number");
    return value.getNumber();
}

std::string text(capnp::List<Json>::Reader arguments, uint32_t position) {
    auto value = argument(arguments, position);
    if (!value.isString()) throw std::runtime_error("argument " + std::to_string(position) + " is not a string");
    return value.getString();
}

void add(capnp::List<Json>::Reader arguments, Json::Builder result, const Stop&) {
    result.setNumber(number(arguments, 0) + number(arguments, 1));
}

void same(capnp::List<Json>::Reader arguments, Json::Builder result, const Stop&) { result.setArray(arguments); }

void fail(capnp::List<Json>::Reader arguments, Json::Builder, const Stop&) {
    throw std::runtime_error(text(arguments, 0));
}

void processId(capnp::List<Json>::Reader, Json::Builder result, const Stop&) { result.setNumber(getpid()); }

// Writes a line to one file, then runs until another file exists or it is stopped.
void until(capnp::List<Json>::Reader arguments, Json::Builder result, const Stop& stop) {
    std::ofstream(text(arguments, 1), std::ios::app) << getpid() << std::endl;
    while (access(text(arguments, 0).c_str(), F_OK) != 0) {
        if (stop) throw Stopped();
        usleep(2000);
    }
    result.setNumber(getpid());
}

// The argument is the payload, and behind it the inputs.
std::string reverse(const std::string& payload, const std::vector<Input>& inputs, const Stop&) {
    std::string bytes = payload;
    for (const Input& input : inputs) bytes += *input;
    return {bytes.rbegin(), bytes.rend()};
}

}  // namespace

int main(int count, char** arguments) {
    // Before any thread starts: threads inherit the mask, so the descriptor below gets these signals.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    try {
        Worker worker(Settings::fromArguments(count, arguments), {
            {"named json add", json(add)},
            {"named json same", json(same)},
            {"named json fail", json(fail)},
            {"named json pid", json(processId)},
            {"named json until", json(until)},
            {"named raw reverse", reverse},
        });
        worker.leaveOn(signalfd(-1, &signals, SFD_CLOEXEC));
        worker.run();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
