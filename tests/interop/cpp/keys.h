// CURVE on a socket that connects (PROTOCOL.md, "Security"): keys from a folder, and what it means that there is no
// connection.
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

    // Of server.key, ROLE.key and ROLE.secret in the folder. Throws std::runtime_error, which names the file.
    static Keys read(const std::string& folder, const std::string& role);
    // Before the socket connects. Throws std::runtime_error.
    void use(void* socket) const;
    std::string file(const std::string& name) const { return folder + "/" + name; }
};

// What becomes of a socket's handshakes: ZeroMQ says nothing of them on the socket itself.
class Handshakes {
public:
    // Before the socket connects.
    Handshakes(void* context, void* socket, const std::optional<Keys>& keys);
    ~Handshakes();
    Handshakes(const Handshakes&) = delete;
    Handshakes& operator=(const Handshakes&) = delete;

    // To be polled: readable when there is something to take.
    void* events() const { return events_; }
    // Why there will never be a connection; empty as long as there may be.
    std::string take();

private:
    std::string meaning(int event, int value) const;

    void* socket_;
    void* events_;
    const std::optional<Keys>& keys_;
    bool hasSucceeded_ = false;
    int cut_ = 0;  // handshakes in a row that the other side has ended without a word
    std::chrono::steady_clock::time_point cutSince_;
};
