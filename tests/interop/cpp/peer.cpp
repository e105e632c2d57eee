#include "peer.h"

#include <capnp/serialize.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <random>
#include <stdexcept>

namespace {

std::runtime_error zmqError(const std::string& what) { return std::runtime_error(what + ": " + zmq_strerror(errno)); }

std::string hostName() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

// Frame 0 may have a payload of 2^28 bytes. The default limit of Cap'n Proto is lower.
capnp::ReaderOptions readerOptions() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = uint64_t(1) << 27;
    return options;
}

}  // namespace

Settings Settings::fromArguments(int count, char** arguments) {
    std::vector<std::string> given(arguments + 1, arguments + count);
    Settings settings;
    for (size_t i = 0; i < given.size(); ++i) {
        if (given[i] == "--name" && i + 1 < given.size()) {
            settings.name = given[++i];
        } else if (given[i] == "--keys" && i + 1 < given.size()) {
            settings.keys = given[++i];
        } else if (settings.address.empty() && given[i].rfind("--", 0) != 0) {
            settings.address = given[i];
        } else {
            throw std::runtime_error("unexpected argument " + given[i]);
        }
    }
    if (settings.address.empty()) {
        throw std::runtime_error("usage: ADDRESS [--name NAME] [--keys DIR]");
    }
    return settings;
}

Peer::Peer(const Settings& settings, Role role) : settings_(settings), role_(role), nextHeartbeat_(Clock::now()) {
    if (!settings.keys.empty()) keys_ = Keys::read(settings.keys, role == Role::CLIENT ? "client" : "worker");
    std::random_device device;
    std::uniform_int_distribution<uint64_t> below(1, (uint64_t(1) << 63) - 1);
    incarnation_ = below(device);
    context_ = zmq_ctx_new();
    socket_ = zmq_socket(context_, ZMQ_DEALER);
    auto set = [this](int option, const void* value, size_t size) {
        if (zmq_setsockopt(socket_, option, value, size) != 0) throw zmqError("socket option");
    };
    int unlimited = 0, linger = 1000;
    set(ZMQ_SNDHWM, &unlimited, sizeof unlimited);  // sending must never block
    set(ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    set(ZMQ_LINGER, &linger, sizeof linger);  // time for the goodbye
    if (keys_) keys_->use(socket_);
    handshakes_.emplace(context_, socket_, keys_);
    if (zmq_connect(socket_, settings.address.c_str()) != 0) throw zmqError(settings.address);
}

Peer::~Peer() {
    handshakes_.reset();
    zmq_close(socket_);
    zmq_ctx_term(context_);
}

void Peer::watch(int descriptor, std::function<void()> readable) {
    watched_.push_back({descriptor, std::move(readable)});
}

void Peer::unwatch(int descriptor) {
    watched_.erase(std::remove_if(watched_.begin(), watched_.end(),
                                  [descriptor](const Watched& each) { return each.descriptor == descriptor; }),
                   watched_.end());
}

void Peer::leave(std::string reason) {
    leaving_ = true;
    reason_ = std::move(reason);
}

void Peer::leaveOn(int descriptor) {
    watch(descriptor, [this] { leave("it was ended"); });
}

void Peer::run() {
    sendHello();
    while (!leaving_) {
        std::vector<zmq_pollitem_t> items{{socket_, 0, ZMQ_POLLIN, 0}, {handshakes_->events(), 0, ZMQ_POLLIN, 0}};
        for (const Watched& each : watched_) items.push_back({nullptr, each.descriptor, ZMQ_POLLIN, 0});
        Time until = std::min(nextHeartbeat_, deadline());
        auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        zmq_poll(items.data(), items.size(), std::max<long>(wait, 0));
        std::vector<std::function<void()>> readable;
        for (size_t i = 2; i < items.size(); ++i) {
            if (items[i].revents != 0) readable.push_back(watched_[i - 2].readable);
        }
        for (const auto& each : readable) each();
        if (items[1].revents != 0) checkHandshakes();
        if (items[0].revents != 0) receive();
        if (Clock::now() >= nextHeartbeat_) sendHeartbeat();
        tick();
    }
    capnp::MallocMessageBuilder goodbye;
    goodbye.initRoot<Message>().initGoodbye().setReason(reason_);
    send(goodbye);
}

void Peer::sendHello() {
    capnp::MallocMessageBuilder builder;
    Hello::Builder hello = builder.initRoot<Message>().initHello();
    hello.setProtocolVersion(PROTOCOL_VERSION);
    hello.setRole(role_);
    hello.setIncarnation(incarnation_);
    hello.setLanguage("c++");
    hello.setLanguageVersion(std::to_string(__cplusplus / 100 % 100));
    hello.setVersion("1");
    hello.setHost(hostName());
    hello.setPid(getpid());
    hello.setName(settings_.name);
    hello.setScheduler(scheduler_);
    describe(hello);
    send(builder);
    joined_ = heartbeatSinceHello_ = false;
}

void Peer::sendHeartbeat() {
    capnp::MallocMessageBuilder builder;
    builder.initRoot<Message>().initHeartbeat().setSequence(++sequence_);
    send(builder);
    heartbeatSinceHello_ = true;
    nextHeartbeat_ = Clock::now() + heartbeatInterval_;
}

void Peer::send(capnp::MessageBuilder& message, const std::vector<Frame>& frames) {
    kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
    auto bytes = words.asBytes();
    if (zmq_send(socket_, bytes.begin(), bytes.size(), frames.empty() ? 0 : ZMQ_SNDMORE) < 0) throw zmqError("send");
    for (size_t i = 0; i < frames.size(); ++i) {
        int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
        if (zmq_send(socket_, frames[i].data(), frames[i].size(), more) < 0) throw zmqError("send");
    }
}

void Peer::checkHandshakes() {
    std::string failure = handshakes_->failure();
    if (!failure.empty()) throw Refusal("no access to " + settings_.address + ": " + failure);
}

void Peer::receive() {
    while (true) {
        std::vector<Frame> frames;
        int more = 1;
        while (more) {
            zmq_msg_t part;
            zmq_msg_init(&part);
            if (zmq_msg_recv(&part, socket_, ZMQ_DONTWAIT) < 0) {
                zmq_msg_close(&part);
                return;  // cannot happen in the middle of a message: ZeroMQ delivers it whole
            }
            frames.emplace_back(static_cast<char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
            more = zmq_msg_more(&part);
            zmq_msg_close(&part);
        }
        // Cap'n Proto reads words in place, so they must be aligned.
        auto words = kj::heapArray<capnp::word>(frames[0].size() / sizeof(capnp::word));
        memcpy(words.begin(), frames[0].data(), words.asBytes().size());
        frames.erase(frames.begin());
        try {
            capnp::FlatArrayMessageReader reader(words, readerOptions());
            handle(reader.getRoot<Message>(), frames);
        } catch (const Refusal&) {
            throw;
        } catch (const kj::Exception& error) {
            std::cerr << "a message is passed over: " << error.getDescription().cStr() << std::endl;
        } catch (const std::exception& error) {
            std::cerr << "a message is passed over: " << error.what() << std::endl;
        }
    }
}

void Peer::handle(Message::Reader message, const std::vector<Frame>& frames) {
    switch (message.which()) {
        case Message::WELCOME:
            joined_ = true;
            scheduler_ = message.getWelcome().getIncarnation();
            heartbeatInterval_ = std::min(HEARTBEAT_INTERVAL, std::chrono::milliseconds(message.getWelcome().getLeaseMilliseconds() / 4));
            nextHeartbeat_ = std::min(nextHeartbeat_, Clock::now() + heartbeatInterval_);
            joined(message.getWelcome());
            break;
        case Message::HELLO_WANTED:
            // Comes once per lost message. One hello answers all, unless a heartbeat behind it shows that it was lost, too.
            if (joined_ || heartbeatSinceHello_) {
                forgotten();
                sendHello();
            }
            break;
        case Message::REFUSED:
            throw Refusal(std::string("refused: ") + message.getRefused().getText().cStr());
        case Message::GOODBYE:         // the next heartbeat finds another scheduler at this address
        case Message::HEARTBEAT_ECHO:
            break;
        case Message::ERROR:
            std::cerr << "the scheduler: " << message.getError().getText().cStr() << std::endl;
            break;
        default:
            if (joined_) handleMessage(message, frames);  // else it was sent before this peer joined
    }
}
