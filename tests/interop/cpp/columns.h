// Columns and payloads of batches. A column has one element per row, or one for all rows; payloads are concatenated
// (PROTOCOL.md, "Columns and payloads").
#pragma once

#include <capnp/common.h>
#include <capnp/list.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using Frame = std::string;

// Returns the element of a row. A column of one element holds for every row; an empty column means `otherwise`.
template <typename Column>
uint64_t at(Column column, uint32_t row, uint64_t otherwise = 0) {
    return column.size() == 0 ? otherwise : column[column.size() == 1 ? 0 : row];
}

// Returns the payload of each row of a batch and its further frames. Throws std::runtime_error if they contradict.
std::vector<std::string> payloads(uint32_t rows, capnp::List<uint32_t>::Reader sizes,
                                  capnp::List<uint32_t>::Reader large, capnp::Data::Reader payload,
                                  const std::vector<Frame>& frames);

// Collects the payloads of a batch. A payload of at least `LARGE` bytes travels in a frame of its own.
struct Payloads {
    static constexpr size_t LARGE = 64 * 1024;

    void add(std::string row);

    template <typename Batch>
    void write(Batch batch) const {
        auto into = batch.initSizes(sizes.size());
        for (size_t row = 0; row < sizes.size(); ++row) into.set(row, sizes[row]);
        auto rows = batch.initLarge(large.size());
        for (size_t k = 0; k < large.size(); ++k) rows.set(k, large[k]);
        batch.setPayload(capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(joined.data()), joined.size()));
    }

    std::vector<uint32_t> sizes, large;
    std::string joined;
    std::vector<Frame> frames;
};
