#include "columns.h"

#include <stdexcept>

std::vector<std::string> payloads(uint32_t rows, capnp::List<uint32_t>::Reader sizes,
                                  capnp::List<uint32_t>::Reader large, capnp::Data::Reader payload,
                                  const std::vector<Frame>& frames) {
    if (large.size() != frames.size()) throw std::runtime_error("other frames than `large` announces");
    std::vector<std::string> found(rows);
    size_t position = 0;
    for (uint32_t row = 0; row < rows; ++row) {
        size_t size = at(sizes, row);
        if (size > payload.size() - position) throw std::runtime_error("`sizes` reach beyond `payload`");
        found[row].assign(reinterpret_cast<const char*>(payload.begin()) + position, size);
        position += size;
    }
    if (position != payload.size()) throw std::runtime_error("`payload` is longer than `sizes` say");
    for (uint32_t k = 0; k < large.size(); ++k) {
        if (large[k] >= rows) throw std::runtime_error("`large` names a row that is not there");
        found[large[k]] = frames[k];
    }
    return found;
}

void Payloads::add(std::string row) {
    if (row.size() >= LARGE) {
        large.push_back(sizes.size());
        sizes.push_back(0);
        frames.push_back(std::move(row));
    } else {
        sizes.push_back(row.size());
        joined += row;
    }
}
