// CURVE on a socket that connects (PROTOCOL.md, "Security"): keys from a folder, and the meaning of failed handshakes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

using Key = std::array<uint8_t, 32>;

struct Keys {
    std::string folder, role;
    Key server, own, secret;

    // Reads server.key, ROLE.key and ROLE.secret in the folder. Throws std::runtime_error, which names the file.
    static Keys read(const std::string& folder, const std::string& role);
    // Sets the keys of a socket before it connects. Throws std::runtime_error.
    void use(void* socket) const;
    std::string file(const std::string& name) const { return folder + "/" + name; }
};

// Watches the handshakes of a socket. The socket itself does not report them.
class Handshakes {
public:
    // Must be created before the socket connects.
    Handshakes(void* context, void* socket, const std::optional<Keys>& keys);
    ~Handshakes();
    Handshakes(const Handshakes&) = delete;
    Handshakes& operator=(const Handshakes&) = delete;

    // The socket to poll: readable when `failure` has events to read.
    void* events() const { return events_; }
    // Returns why no connection is possible; empty: one still is.
    std::string failure();

private:
    std::string meaning(int event, int value) const;

    void* socket_;
    void* events_;
    const std::optional<Keys>& keys_;
    bool hasSucceeded_ = false;
    int cut_ = 0;  // handshakes in a row that the other side has cut
    std::chrono::steady_clock::time_point cutSince_;
};
