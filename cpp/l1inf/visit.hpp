// Reads lines of a reader's groups, chunk by chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "l1inf/lines.hpp"

namespace normball {

// Whether a copy of so many groups spares reads of all in the course of a search: of a few, or it costs as much as these.
template <class Reader>
bool worth_copy(const Reader& reader, std::int64_t count) {
    constexpr std::int64_t most_bytes = std::int64_t(7) << 20;
    const std::int64_t bytes = count * reader.members() * static_cast<std::int64_t>(sizeof(typename Reader::T));
    return count > 0 && 4 * count <= reader.groups() && bytes <= most_bytes;
}

// What groups are read for: exact lines at their caps, or no more than a look; and the guesses with which it is to be kept, if
// any.
struct Visit {
    double theta;
    bool exact = true;
    const GuessArrays* guesses = nullptr;
};

// Lines that are read together.
template <class Reader>
std::vector<std::span<const std::size_t>> chunks_of(const Reader& reader, std::span<const std::int64_t> place,
                                                   std::span<const std::size_t> which) {
    std::vector<std::span<const std::size_t>> chunks;
    for (auto left = which; !left.empty(); left = left.subspan(chunks.back().size())) {
        const std::int64_t last = reader.chunk_end(place[left.front()]);
        const auto end = std::partition_point(left.begin(), left.end(), [=](std::size_t i) { return place[i] < last; });
        chunks.emplace_back(left.begin(), end);
    }
    return chunks;
}

// Reads the given lines, which lie at these places of the reader. Returns whether any is news.
template <class Reader>
bool visit(const Reader& reader, Lines<typename Reader::T>& lines, std::span<const std::int64_t> place,
           std::span<const std::size_t> which, const Visit& purpose, Team& team) {
    const auto jobs = chunks_of(reader, place, which);
    std::vector<char> news(jobs.size());
    team.run(std::ssize(jobs), [&](std::int64_t j) {
        const auto job = static_cast<std::size_t>(j);
        news[job] = reader.refresh(lines, place.data(), jobs[job], purpose);
    });
    return std::find(news.begin(), news.end(), true) != news.end();
}

}  // namespace normball
