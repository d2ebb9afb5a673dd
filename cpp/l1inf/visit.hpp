// Reads lines of a reader's groups, chunk by chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "l1inf/lines.hpp"

namespace normball {

// Whether a copy of so many groups spares reads of all in the course of a search: of a few, that need no fresh memory, which would
// cost more.
template <class Reader>
bool worth_copy(const Reader& reader, std::int64_t count) {
    const std::int64_t bytes = count * reader.members() * static_cast<std::int64_t>(sizeof(typename Reader::T));
    return count > 0 && 4 * count <= reader.groups() && bytes <= ScratchBytes::most_kept / 8 * 7;
}

// What groups are read for: exact lines at their caps, or no more than a look; and the guesses with which it is to be kept, if
// any.
struct Visit {
    double theta;
    bool exact = true;
    const GuessArrays* guesses = nullptr;
};

// Reads the given lines, which lie at these places of the reader. Returns whether any is news.
template <class Reader>
bool visit(const Reader& reader, Lines<typename Reader::T>& lines, std::span<const std::int64_t> place,
           std::span<const std::size_t> which, const Visit& purpose, Team& team) {
    std::vector<std::span<const std::size_t>> jobs;
    for (auto left = which; !left.empty(); left = left.subspan(jobs.back().size())) {
        const std::int64_t last = reader.chunk_end(place[left.front()]);
        const auto end = std::partition_point(left.begin(), left.end(), [=](std::size_t i) { return place[i] < last; });
        jobs.emplace_back(left.begin(), end);
    }
    std::vector<char> news(jobs.size());
    team.run(std::ssize(jobs), [&](std::int64_t j) {
        const auto job = static_cast<std::size_t>(j);
        news[job] = reader.refresh(lines, place.data(), jobs[job], purpose);
    });
    return std::find(news.begin(), news.end(), true) != news.end();
}

}  // namespace normball
