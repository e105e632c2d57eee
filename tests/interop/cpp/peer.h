// What every peer of a scheduler does, whatever its role: one DEALER socket, hello and welcome, heartbeats, and hello
// again when the scheduler no longer knows it (PROTOCOL.md, "Transport", "Join", "A connection is lost").
#pragma once

#include <capnp/message.h>
#include <scaler.capnp.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "columns.h"
#include "keys.h"

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

struct Settings {
    std::string address;
    std::string name = "c++";
    std::string keys;  // a folder of keys; empty: not encrypted

    // ADDRESS [--name NAME] [--keys DIR]; throws std::runtime_error.
    static Settings fromArguments(int count, char** arguments);
};

// The scheduler does not accept this peer, or not its key, and never will.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Peer {
public:
    Peer(const Settings& settings, Role role);
    virtual ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // Talks until `leave` was called, and then says goodbye. Throws Refusal.
    void run();
    void leave(std::string reason);
    // Leave as soon as this descriptor is readable.
    void leaveOn(int descriptor);

protected:
    // What the hello says beside what all say.
    virtual void describe(Hello::Builder hello) = 0;
    // The scheduler has accepted this peer. It knows nothing of what was said before.
    virtual void joined(Welcome::Reader welcome) = 0;
    // The scheduler does not know this peer any more: what was sent is lost, a new hello goes out behind this call.
    virtual void forgotten() {}
    // Any other message of the scheduler's, with the frames behind it.
    virtual void take(Message::Reader message, const std::vector<Frame>& frames) = 0;
    // When `tick` wants to be called at the latest; it is called after every event.
    virtual Time deadline() { return Time::max(); }
    virtual void tick() {}

    void watch(int descriptor, std::function<void()> readable);
    void unwatch(int descriptor);
    void send(capnp::MessageBuilder& message, const std::vector<Frame>& frames = {});
    bool isJoined() const { return joined_; }

private:
    struct Watched {
        int descriptor;
        std::function<void()> readable;
    };

    void sayHello();
    void beat();
    void lookAtHandshakes();
    void receive();
    void handle(Message::Reader message, const std::vector<Frame>& frames);

    Settings settings_;
    Role role_;
    uint64_t incarnation_;
    uint64_t scheduler_ = 0;  // who has welcomed this peer last
    std::optional<Keys> keys_;
    void* context_;
    void* socket_;
    std::optional<Handshakes> handshakes_;
    std::vector<Watched> watched_;
    bool joined_ = false;
    bool beatenSinceHello_ = false;
    bool leaving_ = false;
    std::string reason_;
    uint64_t sequence_ = 0;
    // A quarter of the lease would do for that; a scheduler that was started anew is noticed no sooner than by the next.
    static constexpr std::chrono::milliseconds OFTEN{1000};
    std::chrono::milliseconds beatInterval_ = OFTEN;
    Time nextBeat_;
};
