// What the Newton method knows of the groups that it has read.
//
// The unit of reading is the chunk: some groups that stay in a cache while their caps are found, cut by the shape of
// the problem alone. A read leaves a Record for each group that may be non-zero: a line (s, k) that bounds its cap from
// below, and a window (lo, hi] around the cap with all the magnitudes in it, so that the cap can move there without
// another read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "rounding.hpp"
#include "view.hpp"

namespace normball {

struct Record;

// Where theta is expected: within `spread` of `theta`. A spread of 0 says that nobody knows, and opens no windows.
struct Aim {
    double theta = 0.0;
    double spread = 0.0;
    double cap = 0.0;              // a typical cap, to start from
    const double* caps = nullptr;  // or one for each group

    bool reaches(double sum) const { return sum > std::max(theta - spread, 0.0) && std::isfinite(sum); }
    double start(const Record& r) const;
};

struct Record {
    std::int64_t group = 0;
    double sum = 0.0, peak = 0.0;       // of all its magnitudes
    double s = 0.0, k = 0.0;            // of those above the last threshold; k = 0 before the first
    double below = 0.0, above = -1.0;   // the line holds for every threshold in [below, above)
    double lo = 0.0, hi = -1.0;         // the window; empty when hi < lo
    double s_hi = 0.0, k_hi = 0.0;      // of the magnitudes above hi
    std::int64_t first = 0, count = 0;  // the candidates, in the chunk's buffer
    bool stale = true;                  // the threshold has left the window

    static Record unread(std::int64_t group, double sum, double peak) {
        Record r;
        r.group = group, r.sum = sum, r.peak = peak;
        return r;
    }

    double cap(double theta) const { return std::max((s - theta) / k, 0.0); }
    bool in_window(double t) const { return lo <= t && t <= hi; }
    bool in_gap(double t) const { return below <= t && t < above; }
    void close_window() { stale = false, below = 0.0, above = -1.0, lo = 0.0, hi = -1.0; }

    // One Newton step on the cap, from the threshold t at which (s, k) was found; true when the cap has settled. From
    // the left the steps only go up, and k only down; the first alone may come from the right.
    template <class T>
    bool step(double s_at_t, double k_at_t, std::int64_t members, const Aim& aim, bool first_step, double& t) {
        if (k_at_t == 0.0) {  // t was above the peak: restart from the best of the two cheapest lines, below the peak
            const double line = std::max((sum - aim.theta) / static_cast<double>(members), peak - aim.theta);
            t = std::clamp(line, 0.0, static_cast<double>(std::nextafter(static_cast<T>(peak), T(0))));
            k = 0.0;
            return false;
        }
        const bool same_line = !first_step && k_at_t == k;
        s = s_at_t, k = k_at_t;
        const double next = cap(aim.theta);
        const bool settled = same_line || (!first_step && next <= t) || std::fabs(next - t) * k < aim.spread / 4;
        t = next;
        return settled;
    }
};

inline double Aim::start(const Record& r) const {
    if (r.k > 0.0) return r.cap(theta);
    const double given = caps != nullptr ? caps[r.group] : cap;
    return given > 0.0 && std::isfinite(given) ? given : cap;
}

// Half the width of a window that holds the cap t for every theta within the spread, whatever T's rounding of t.
template <class T>
double half_window(double t, double k, double spread) {
    return std::max(spread / k, 8.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * t);
}

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
    std::vector<Record> records;
    Candidates<T> candidates;
    double reads = 0.0;  // elements fetched from memory

    // Moves the line of the record to the threshold t, which must lie in its window.
    void evaluate(Record& r, double t) const {
        std::int64_t k = 0;
        double s = 0.0;
        T below = static_cast<T>(r.lo), above = static_cast<T>(r.hi);
        kernels<T>().window(candidates.at(r.first), r.count, round_down<T>(t), &s, &k, &below, &above);
        r.s = r.s_hi + s, r.k = r.k_hi + static_cast<double>(k);
        r.below = static_cast<double>(below), r.above = static_cast<double>(above);
    }
};

}  // namespace normball
