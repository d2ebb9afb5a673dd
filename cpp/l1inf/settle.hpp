// Finds caps at a given theta while their groups are in the cache, by Newton steps, and leaves lines and windows.
//
// From the left the steps of a cap only go up, and k only down; the first step alone may come from the right, and lands
// left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "dispatch.hpp"
#include "l1inf/records.hpp"
#include "rounding.hpp"

namespace normball {

// Groups up to this length have no window.
inline constexpr std::int64_t short_group = 256;
inline constexpr std::int64_t collect_piece = 1024;  // 8 KB at most: a quarter of the first cache

// Lists the members in (lo, hi] and adds up those above. False where the candidates would pass the limit, which those
// of an empty window never do.
template <class T, class Runs>
bool collect(Chunk<T>& chunk, Window& window, double lo, double hi, std::int64_t limit, Runs runs) {
    const T from = std::min(round_down<T>(lo), window.template threshold<T>(hi)), to = window.template threshold<T>(hi);
    const std::int64_t first = chunk.candidates.size();
    double s = 0.0;
    std::int64_t k = 0;
    bool fits = true;
    runs([&](const T* y, std::int64_t n) {
        for (std::int64_t i = 0; fits && i < n; i += collect_piece) {
            const std::int64_t piece = std::min(collect_piece, n - i);
            T* found = from < to ? chunk.candidates.room(piece + lane_limit, limit) : nullptr;
            fits = found != nullptr || from == to;
            if (fits) chunk.candidates.keep(kernels<T>().row_collect(y + i, piece, from, to, found, &s, &k));
        }
    });
    if (!fits) return chunk.candidates.drop_from(first), false;
    window.lo = static_cast<double>(from), window.hi = static_cast<double>(to);
    window.s_hi = s, window.k_hi = k, window.first = first, window.count = chunk.candidates.size() - first;
    return true;
}

// One long group, from the threshold `cap`: its line and its window. `runs` calls its argument with every run of the
// group's members. Returns the cap.
template <class T, class Runs>
double settle(Chunk<T>& chunk, std::size_t i, const Aim& aim, double cap, std::int64_t limit, Runs runs) {
    Line& line = chunk.lines[i];
    Window& window = chunk.windows[i];
    window.hi = -1.0;
    line.above = -1.0;  // holds nowhere
    std::int64_t k = 0, k_before = 0;
    for (bool first = true, settled = false; !settled; first = false, k_before = k) {
        double s = 0.0;
        k = 0;
        const T t = window.template threshold<T>(cap);
        runs([&](const T* y, std::int64_t n) { kernels<T>().row_above(y, n, t, &s, &k); });
        line.set(s, static_cast<double>(k));
        const double next = line.cap(aim.theta);
        settled = k == k_before || (!first && next <= cap);
        settled = settled || std::fabs(next - cap) < aim.room_for(next, static_cast<double>(k)) / 4;  // a window will do
        // The sums that guide these steps carry T's rounding: a step within it would only wander.
        const bool stays = std::fabs(next - cap) <= 16.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * line.mean;
        settled = settled || stays;
        if (!stays) cap = next;
    }

    // The window leaves room for the moves of theta to come, and for T's rounding of the cap. Where it would hold too
    // many candidates, it is empty and only makes the line exact.
    const double rounding = 8.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * cap;
    const double half = std::max(aim.room_for(cap, static_cast<double>(k)), rounding);
    if (collect(chunk, window, std::max(cap - half, 0.0), cap + half, limit, runs)) {
        chunk.evaluate(i, cap);
    } else {
        collect(chunk, window, cap, cap, limit, runs);
        line.set(window.s_hi, static_cast<double>(window.k_hi));
        window.hi = -1.0;
    }
    return cap;
}

// One short group: its line, and the gap that the line holds for. Returns the cap.
template <class T, class Runs>
double settle_short(Chunk<T>& chunk, std::size_t i, const Aim& aim, double cap, Runs runs) {
    Line& line = chunk.lines[i];
    const Window& window = chunk.windows[i];
    for (bool first = true;; first = false) {
        double s = 0.0;
        std::int64_t k = 0;
        T below = T(0), above = static_cast<T>(window.peak);
        const T t = window.threshold<T>(cap);
        runs([&](const T* y, std::int64_t n) { kernels<T>().row_gap(y, n, t, &s, &k, &below, &above); });
        line.set(s, static_cast<double>(k));
        line.set_gap(static_cast<double>(below), static_cast<double>(above), window.peak);
        const double next = line.cap(aim.theta), before = cap;
        cap = next;
        if (line.holds(next) || (!first && next <= before)) return cap;
    }
}

// Many short groups at once, each in a lane of a register.
// Up to lane_limit lines of a chunk, each with the lane that holds its group and the cap to start from.
struct LaneBatch {
    std::int64_t size = 0;
    std::size_t line[lane_limit];
    std::int64_t lane[lane_limit];
    double cap[lane_limit];

    void add(std::size_t of_line, std::int64_t in_lane, double start) {
        line[size] = of_line, lane[size] = in_lane, cap[size++] = start;
    }
};

// Newton steps on all the caps of the batch at aim.theta, until each lies in the gap that its line holds for; leaves the
// caps in the batch. `gap(t, s, k, below, above)` evaluates all lanes at their thresholds.
template <class T, class Gap>
void settle_lanes(Chunk<T>& chunk, const Aim& aim, LaneBatch& batch, Gap gap) {
    T t[lane_limit], k[lane_limit], below[lane_limit], above[lane_limit];
    double s[lane_limit];
    bool open[lane_limit];
    std::fill_n(open, batch.size, true);
    std::fill_n(t, lane_limit, std::numeric_limits<T>::infinity());  // nothing is above it
    std::int64_t left = batch.size;
    for (bool first = true; left > 0; first = false) {
        std::fill_n(s, lane_limit, 0.0);
        std::fill_n(k, lane_limit, T(0));
        std::fill_n(below, lane_limit, T(0));
        std::fill_n(above, lane_limit, T(0));
        for (std::int64_t j = 0; j < batch.size; ++j) {
            const Window& window = chunk.windows[batch.line[j]];
            t[batch.lane[j]] = window.threshold<T>(batch.cap[j]);
            above[batch.lane[j]] = static_cast<T>(window.peak);
        }
        gap(t, s, k, below, above);
        for (std::int64_t j = 0; j < batch.size; ++j) {
            if (!open[j]) continue;
            const std::int64_t lane = batch.lane[j];
            Line& line = chunk.lines[batch.line[j]];
            line.set(s[lane], static_cast<double>(k[lane]));
            line.set_gap(static_cast<double>(below[lane]), static_cast<double>(above[lane]),
                         chunk.windows[batch.line[j]].peak);
            const double next = line.cap(aim.theta);
            if (line.holds(next) || (!first && next <= batch.cap[j])) open[j] = false, --left;
            batch.cap[j] = next;
        }
    }
}

}  // namespace normball
