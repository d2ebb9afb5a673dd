// What the Newton method knows of the groups that it has read.
//
// The unit of reading is the chunk: some groups that stay in a cache while their caps are found, cut by the shape of
// the problem alone. A read leaves, for each group that may be non-zero, a Line that bounds its cap from below, with the
// gap between two members in which the cap may move and the line still holds; and, for long groups, a Window around the
// cap with all the magnitudes in it, so that the cap can cross members there without another read. Short groups need no
// window: reading one again costs less than keeping candidates does.
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

// What caps are to be found for.
struct Aim {
    double theta = 0.0;
    double spread = 0.0;           // how far theta may still move; 0 when nobody knows
    double share = 0.0;            // one over the number of members
    double cap = 0.0;              // a typical cap, to start from; 0 when nobody knows
    const double* caps = nullptr;  // or one for each group, of an earlier call: any numbers at all

    // How far a cap that belongs to k members may move with theta.
    double room_for(double of_cap, double k) const { return spread > 0.0 ? spread / k : of_cap / 2; }
};

// For k members with sum s: mean = s / k and weight = 1 / k, so that the cap is mean - theta * weight.
struct Line {
    double sum;  // of all the members: the group is zero where theta reaches it
    double mean = 0.0, weight = 0.0;
    double below = 0.0, above = -1.0;  // the line holds while the cap stays in [below, above)

    bool read() const { return weight > 0.0; }
    double cap(double theta) const { return std::max(mean - theta * weight, 0.0); }
    bool holds(double cap) const { return below <= cap && cap < above; }
    // Whether this line says more than rounding about the cap that an earlier one gave.
    bool moves(double cap_before, double theta) const {
        return std::fabs(cap(theta) - cap_before) > 8.0 * std::numeric_limits<double>::epsilon() * mean;
    }
    void set(double s, double k) { weight = 1.0 / k, mean = s * weight; }
    // Above the second largest member there is only the peak, and no line beyond its own.
    void set_gap(double from, double to, double peak) {
        below = from, above = to < peak ? to : std::numeric_limits<double>::infinity();
    }
};

// The magnitudes in (lo, hi], in the chunk's buffer, and sum and number of those above hi. Empty where hi < lo.
struct Window {
    std::int64_t group;
    double peak;
    double lo = 0.0, hi = -1.0, s_hi = 0.0;
    std::int64_t k_hi = 0, first = 0, count = 0;

    bool holds(double cap) const { return lo <= cap && cap <= hi; }
    // What to compare the members with: the cap as T sees it, and below the peak, so that some member is always above.
    template <class T>
    T threshold(double cap) const {
        return std::min(round_down<T>(cap), just_below(static_cast<T>(peak)));
    }
};

// How far apart to keep rows of n: a power of two would have them compete for the same few places in the cache.
inline std::int64_t apart(std::int64_t n) { return (n + lane_limit - 1) / lane_limit * lane_limit + lane_limit; }

// Uninitialised elements for the time of a scope. Fresh memory costs more to map than the work done in it, so each
// thread keeps one piece of moderate size between calls.
template <class T>
class Scratch {
public:
    explicit Scratch(std::int64_t n) {
        if (n * static_cast<std::int64_t>(sizeof(T)) > kept_bytes || in_use) {
            own_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
            return;
        }
        if (!kept) kept = std::make_unique_for_overwrite<T[]>(kept_bytes / sizeof(T));
        in_use = keeps_ = true;
    }
    ~Scratch() {
        if (keeps_) in_use = false;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    T* get() const { return keeps_ ? kept.get() : own_.get(); }

private:
    static constexpr std::int64_t kept_bytes = std::int64_t(9) << 18;  // 2.25 MB
    static inline thread_local std::unique_ptr<T[]> kept;
    static inline thread_local bool in_use = false;
    std::unique_ptr<T[]> own_;
    bool keeps_ = false;
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
    std::int64_t move_down(std::int64_t from, std::int64_t n, std::int64_t to) {
        if (from != to) std::copy_n(data_.get() + from, n, data_.get() + to);
        return to;
    }
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
    std::vector<std::size_t> stale;  // lines that must be read again
    Candidates<T> candidates;
    double reads = 0.0;  // elements fetched from memory

    std::size_t add(std::int64_t group, double sum, double peak) {
        lines.push_back({sum});
        windows.push_back({group, peak});
        return lines.size() - 1;
    }

    // Where to start looking for a cap: where the line has it, or the earlier call, or the neighbour; or, where caps are
    // not known to be alike, the better of the two lines that sum and peak give.
    double start(std::size_t i, const Aim& aim, double neighbour) const {
        if (lines[i].read()) return lines[i].cap(aim.theta);
        const double given = aim.caps != nullptr ? aim.caps[windows[i].group] : 0.0;
        if (given > 0.0 && std::isfinite(given)) return given;
        if (aim.cap > 0.0) return neighbour;
        return std::max({(lines[i].sum - aim.theta) * aim.share, windows[i].peak - aim.theta, 0.0});
    }

    // Gives up the windows of the stale lines and closes the gaps that their candidates leave.
    void drop_stale_windows() {
        for (const std::size_t i : stale) windows[i].hi = -1.0;
        std::vector<Window*> kept;
        for (Window& w : windows)
            if (w.hi >= w.lo) kept.push_back(&w);
        std::sort(kept.begin(), kept.end(), [](const Window* a, const Window* b) { return a->first < b->first; });
        std::int64_t end = 0;
        for (Window* w : kept) w->first = candidates.move_down(w->first, w->count, end), end += w->count;
        candidates.drop_from(end);
    }

    // Moves a line to the cap, which must lie in its window.
    void evaluate(std::size_t i, double cap) {
        const Window& w = windows[i];
        double s = w.s_hi;
        std::int64_t k = w.k_hi;
        T below = static_cast<T>(w.lo), above = static_cast<T>(w.hi);
        kernels<T>().row_gap(candidates.at(w.first), w.count, w.threshold<T>(cap), &s, &k, &below, &above);
        lines[i].set(s, static_cast<double>(k));
        lines[i].set_gap(static_cast<double>(below), static_cast<double>(above), w.peak);
    }
};

}  // namespace normball
