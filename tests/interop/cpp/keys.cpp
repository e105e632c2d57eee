#include "keys.h"

#include <zmq.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace {

constexpr int FAILURES =
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
const char* const EVENTS_ADDRESS = "inproc://handshakes";

// The least number of cut handshakes, and the least time between them: a scheduler that ends cuts a few, too.
constexpr int MIN_CUT_HANDSHAKES = 5;
constexpr std::chrono::seconds MIN_CUT_TIME{2};

std::runtime_error zmqError(const std::string& what) { return std::runtime_error(what + ": " + zmq_strerror(errno)); }

const char* const DIGITS = "0123456789abcdef";

int digit(char character) {
    const char* found = character ? strchr(DIGITS, tolower(character)) : nullptr;
    return found ? int(found - DIGITS) : -1;
}

std::string hex(const Key& key) {
    std::string text;
    for (uint8_t byte : key) text += {DIGITS[byte >> 4], DIGITS[byte & 15]};
    return text;
}

// Reads the only line that is not a comment: 64 hex digits.
Key readKey(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read the key " + path + ": " + strerror(errno));
    std::string line, found;
    while (std::getline(file, line)) {
        if (line.empty() || line[0] == '#') continue;
        if (!found.empty()) throw std::runtime_error(path + " is no key: it has more than one line");
        found = line;
    }
    Key key;
    bool isKey = found.size() == 2 * key.size();
    for (size_t i = 0; isKey && i < key.size(); ++i) {
        int high = digit(found[2 * i]), low = digit(found[2 * i + 1]);
        isKey = high >= 0 && low >= 0;
        key[i] = uint8_t(high << 4 | low);
    }
    if (!isKey) throw std::runtime_error(path + " is not a key: it must have one line of 64 hex digits");
    return key;
}

}  // namespace

Keys Keys::read(const std::string& folder, const std::string& role) {
    Keys keys{folder, role, {}, {}, {}};
    keys.server = readKey(keys.file("server.key"));
    keys.own = readKey(keys.file(role + ".key"));
    keys.secret = readKey(keys.file(role + ".secret"));
    return keys;
}

void Keys::use(void* socket) const {
    auto set = [socket](int option, const Key& key) {
        if (zmq_setsockopt(socket, option, key.data(), key.size()) != 0) throw zmqError("CURVE");
    };
    set(ZMQ_CURVE_SERVERKEY, server);
    set(ZMQ_CURVE_PUBLICKEY, own);
    set(ZMQ_CURVE_SECRETKEY, secret);
}

Handshakes::Handshakes(void* context, void* socket, const std::optional<Keys>& keys) : socket_(socket), keys_(keys) {
    if (zmq_socket_monitor(socket, EVENTS_ADDRESS, FAILURES | ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0) {
        throw zmqError("socket monitor");
    }
    events_ = zmq_socket(context, ZMQ_PAIR);
    zmq_connect(events_, EVENTS_ADDRESS);
}

Handshakes::~Handshakes() {
    zmq_socket_monitor(socket_, nullptr, 0);
    zmq_close(events_);
}

std::string Handshakes::failure() {
    std::string failure;
    char message[6], address[256];  // number and value of the event; its endpoint, truncated
    while (zmq_recv(events_, message, sizeof message, ZMQ_DONTWAIT) >= 0) {
        zmq_recv(events_, address, sizeof address, 0);
        uint16_t event;
        int32_t value;
        memcpy(&event, message, sizeof event);
        memcpy(&value, message + sizeof event, sizeof value);
        if ((event & FAILURES) == 0) {
            hasSucceeded_ = true;
            cut_ = 0;
            failure.clear();
            continue;
        }
        if (cut_++ == 0) cutSince_ = std::chrono::steady_clock::now();
        bool isFinal = event != ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;  // ZeroMQ gives up
        bool isCut = cut_ >= MIN_CUT_HANDSHAKES && std::chrono::steady_clock::now() - cutSince_ >= MIN_CUT_TIME;
        if (isFinal || (isCut && !hasSucceeded_)) failure = meaning(event, value);
    }
    return failure;
}

std::string Handshakes::meaning(int event, int value) const {
    if (!keys_) return "the scheduler needs keys, and none were given (--keys DIR)";
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        return "the scheduler does not accept the key " + hex(keys_->own) + " of " + keys_->file(keys_->role + ".key");
    }
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL && value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
        return "the scheduler has no keys, but this side has those of " + keys_->folder;
    }
    return "the scheduler has another key than " + keys_->file("server.key") +
           ", or no key, or has reached its limit of connections";
}
