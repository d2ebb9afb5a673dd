// What the Newton method knows of the groups that it has read.
//
// The unit of reading is the chunk: some groups that stay in a cache while their caps are found, cut by the shape of
// the problem alone. A read leaves, for each group that may be non-zero, a Line that bounds its cap from below, with the
// gap between two members in which the cap may move and the line still holds; and, for long groups, a Window around the
// cap with all the magnitudes in it, so that the cap can cross members there without another read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "rounding.hpp"

namespace normball {

// Where theta is expected: within `spread` of `theta`. A spread of 0 says that nobody knows, and opens no windows.
struct Aim {
    double theta = 0.0;
    double spread = 0.0;
    double cap = 0.0;              // a typical cap, to start from
    const double* caps = nullptr;  // or one for each group
    double active = 0.0;           // the share of groups that are expected to be non-zero

    bool reaches(double sum) const { return sum > std::max(theta - spread, 0.0) && std::isfinite(sum); }
    double start(std::int64_t group) const {
        const double given = caps != nullptr ? caps[group] : cap;
        return given > 0.0 && std::isfinite(given) ? given : cap;
    }
};

// For k members with sum s: mean = s / k and weight = 1 / k, so that the cap is mean - theta * weight.
struct Line {
    double sum;  // of all the members: the group is zero where theta reaches it
    double mean = 0.0, weight = 0.0;
    double below = 0.0, above = -1.0;  // the line holds while the cap stays in [below, above)

    bool read() const { return weight > 0.0; }
    double cap(double theta) const { return std::max(mean - theta * weight, 0.0); }
    bool holds(double cap) const { return below <= cap && cap < above; }
    void set(double s, double k) { mean = s / k, weight = 1.0 / k; }
};

// The magnitudes in (lo, hi], in the chunk's buffer, and sum and number of those above hi. Empty where hi < lo.
struct Window {
    std::int64_t group;
    double peak;
    double lo = 0.0, hi = -1.0, s_hi = 0.0;
    std::int64_t k_hi = 0, first = 0, count = 0;

    bool holds(double cap) const { return lo <= cap && cap <= hi; }
};

// Candidates may take a quarter of the matrix; a few are always allowed.
inline std::int64_t candidate_limit(std::int64_t elements) { return elements / 4 + 2048; }

// Uninitialised storage that grows, up to a limit.
template <class T>
class Candidates {
public:
    // Room for `more` behind what is held, or nullptr when that would pass `limit` elements in all.
    T* room(std::int64_t more, std::int64_t limit) {
        const std::int64_t needed = size_ + more;
        if (needed > limit) return nullptr;
        if (needed > capacity_) {
            const std::int64_t grown = std::min(limit, std::max(needed, 2 * capacity_));
            auto data = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(grown));
            std::copy_n(data_.get(), size_, data.get());
            data_ = std::move(data);
            capacity_ = grown;
        }
        return data_.get() + size_;
    }
    void keep(std::int64_t n) { size_ += n; }
    void drop_from(std::int64_t i) { size_ = i; }
    std::int64_t size() const { return size_; }
    const T* at(std::int64_t i) const { return data_.get() + i; }

private:
    std::unique_ptr<T[]> data_;
    std::int64_t size_ = 0, capacity_ = 0;
};

template <class T>
struct Chunk {
    std::vector<Line> lines;      // what every step of Newton's method looks at
    std::vector<Window> windows;  // and what it needs when a line no longer holds
    std::vector<std::int64_t> stale;  // lines that must be read again
    Candidates<T> candidates;
    double reads = 0.0;  // elements fetched from memory

    std::size_t add(std::int64_t group, double sum, double peak) {
        lines.push_back({sum});
        windows.push_back({group, peak});
        return lines.size() - 1;
    }

    // Moves a line to the cap, which must lie in its window.
    void evaluate(std::size_t i, double cap) {
        const Window& w = windows[i];
        double s = w.s_hi;
        std::int64_t k = w.k_hi;
        T below = static_cast<T>(w.lo), above = static_cast<T>(w.hi);
        kernels<T>().row_gap(candidates.at(w.first), w.count, round_down<T>(cap), &s, &k, &below, &above);
        lines[i].set(s, static_cast<double>(k));
        lines[i].below = static_cast<double>(below), lines[i].above = static_cast<double>(above);
    }
};

// Groups up to this length are their own windows: one more read of them costs less than keeping candidates does.
inline constexpr std::int64_t short_group = 256;
inline constexpr std::int64_t collect_piece = 1024;  // 8 KB at most: a quarter of the first cache

// Finds the cap of one group at aim.theta by Newton steps from the threshold `cap`, while the group is in the cache, and
// leaves its line and window. From the left the steps only go up, and k only down; the first alone may come from the
// right. `runs` calls its argument with every run of the group's members. Returns the cap.
template <class T, class Runs>
double settle(Chunk<T>& chunk, std::size_t i, const Aim& aim, double cap, std::int64_t members, std::int64_t limit,
              Runs runs) {
    const Kernels<T>& kernel = kernels<T>();
    Line& line = chunk.lines[i];
    Window& window = chunk.windows[i];
    const bool wide = members > short_group && aim.spread > 0.0;  // a window will follow
    window.hi = -1.0;
    line.above = -1.0;
    std::int64_t k = 0, k_before = 0;
    for (bool first = true, settled = false; !settled;) {
        double s = 0.0;
        k = 0;
        const T t = round_down<T>(cap);
        T below = T(0), above = static_cast<T>(window.peak);
        if (members > short_group)
            runs([&](const T* y, std::int64_t n) { kernel.row_above(y, n, t, &s, &k); });
        else
            runs([&](const T* y, std::int64_t n) { kernel.row_gap(y, n, t, &s, &k, &below, &above); });
        if (k == 0) {  // t was not below the peak: restart from the best of the two cheapest lines, just below it
            const double bound = std::max((line.sum - aim.theta) / static_cast<double>(members), window.peak - aim.theta);
            cap = std::clamp(bound, 0.0, static_cast<double>(std::nextafter(static_cast<T>(window.peak), T(0))));
            first = false;
            continue;
        }
        line.set(s, static_cast<double>(k));
        const double next = line.cap(aim.theta);
        if (members > short_group) {
            settled = k == k_before || (!first && next <= cap);
            settled = settled || (wide && std::fabs(next - cap) * static_cast<double>(k) < aim.spread / 4);
        } else {
            line.below = static_cast<double>(below), line.above = static_cast<double>(above);
            settled = line.holds(next) || (!first && next <= cap);
        }
        cap = next, k_before = k, first = false;
    }
    if (!wide) return cap;

    // The window holds the cap for every theta within the spread, and whatever T's rounding does to it.
    const double rounding = 8.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * cap;
    const double half = std::max(aim.spread / static_cast<double>(k), rounding);
    const T lo = round_down<T>(std::max(cap - half, 0.0)), hi = round_down<T>(cap + half);
    const std::int64_t first = chunk.candidates.size();
    double s_hi = 0.0;
    std::int64_t k_hi = 0;
    bool fits = true;
    runs([&](const T* y, std::int64_t n) {
        for (std::int64_t from = 0; fits && from < n; from += collect_piece) {
            const std::int64_t piece = std::min(collect_piece, n - from);
            T* found = chunk.candidates.room(piece + lane_limit, limit);
            fits = found != nullptr;
            if (fits) chunk.candidates.keep(kernel.row_collect(y + from, piece, lo, hi, found, &s_hi, &k_hi));
        }
    });
    if (!fits) return chunk.candidates.drop_from(first), cap;
    window = {window.group, window.peak, static_cast<double>(lo), static_cast<double>(hi), s_hi, k_hi,
              first,        chunk.candidates.size() - first};
    chunk.evaluate(i, cap);
    return cap;
}

}  // namespace normball
