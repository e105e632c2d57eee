// The part that all peers of a scheduler share: one DEALER socket, hello and welcome, heartbeats, and a new hello when
// the scheduler no longer knows the peer (PROTOCOL.md, "Transport", "Join", "A connection is lost").
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

// The scheduler refuses this peer or its key for good.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Peer {
public:
    Peer(const Settings& settings, Role role);
    virtual ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // Runs until `leave` is called, then sends a goodbye. Throws Refusal.
    void run();
    void leave(std::string reason);
    // Leaves when this descriptor becomes readable.
    void leaveOn(int descriptor);

protected:
    // Fills in the fields of the hello that depend on the role.
    virtual void describe(Hello::Builder hello) = 0;
    // Called when the scheduler has accepted this peer. It knows nothing of earlier messages.
    virtual void joined(Welcome::Reader welcome) = 0;
    // Called when the scheduler no longer knows this peer. Earlier messages are lost; a new hello follows this call.
    virtual void forgotten() {}
    // Called with every other message of the scheduler and its further frames.
    virtual void handleMessage(Message::Reader message, const std::vector<Frame>& frames) = 0;
    // The latest time for the next call of `tick`, which is called after every event, too.
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

    void sendHello();
    void sendHeartbeat();
    void checkHandshakes();
    void receive();
    void handle(Message::Reader message, const std::vector<Frame>& frames);

    Settings settings_;
    Role role_;
    uint64_t incarnation_;
    uint64_t scheduler_ = 0;  // the scheduler that accepted this peer last
    std::optional<Keys> keys_;
    void* context_;
    void* socket_;
    std::optional<Handshakes> handshakes_;
    std::vector<Watched> watched_;
    bool joined_ = false;
    bool heartbeatSinceHello_ = false;
    bool leaving_ = false;
    std::string reason_;
    uint64_t sequence_ = 0;
    // Shorter than the lease needs: only the next heartbeat notices a restarted scheduler.
    static constexpr std::chrono::milliseconds HEARTBEAT_INTERVAL{1000};
    std::chrono::milliseconds heartbeatInterval_ = HEARTBEAT_INTERVAL;
    Time nextHeartbeat_;
};
