// Finds caps at a given theta while their groups are in a cache, by Newton steps on many groups at once.
//
// Any threshold gives a valid line, so steps may be guesses; a line is exact when its own cap lies in its gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "l1inf/lines.hpp"

namespace normball {

// Where a decreasing convex f reaches `goal`, from f(t) and e(t) = f / -f', if e goes on as the line e + bend * (x - t):
// then f is a power of it, and the answer t + e * ((f / goal)^bend - 1) / bend. Newton's step is bend = -1; for the
// excess of a group over t, uniform tails have -1/2, exponential ones 0, heavy ones more. The steps of caps are
// kernels; this one is for theta.
class Extrapolation {
public:
    double step(double t, double f, double e, double goal) {
        double bend = f > goal ? -0.5 : 0.0;
        if (last_e_ > 0.0 && t != last_t_) bend = std::clamp((e - last_e_) / (t - last_t_), -1.0, 1.0);
        last_t_ = t, last_e_ = e;
        const double log_ratio = std::log(f / goal), x = bend * log_ratio;
        return t + e * (std::fabs(x) > 1e-6 ? std::expm1(x) / bend : log_ratio);
    }

private:
    double last_t_ = 0.0, last_e_ = 0.0;
};

// Groups that are read together, and the arrays that the kernels take. The reader reads whole units, a row or a register
// of neighbours: `at` tells it which, and each has so many lanes.
template <class T>
struct Batch {
    static constexpr std::size_t idle = SIZE_MAX;  // a lane that is read with its neighbours and not wanted

    std::int64_t unit, units = 0;
    std::vector<std::int64_t> at;
    std::vector<std::size_t> line;
    double *cap, *s, *last_t, *last_e, *weight, *open;
    T *t, *k, *below, *above, *top;

    Batch(std::int64_t lanes_of_unit, std::int64_t most_units)
        : unit(lanes_of_unit),
          at(static_cast<std::size_t>(most_units)),
          line(static_cast<std::size_t>(unit * most_units)),
          doubles_(6 * line.size()),
          elements_(5 * line.size()) {
        std::size_t i = 0, j = 0;
        for (double** array : {&cap, &s, &last_t, &last_e, &weight, &open}) *array = &doubles_[line.size() * i++];
        for (T** array : {&t, &k, &below, &above, &top}) *array = &elements_[line.size() * j++];
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    std::size_t lanes() const { return static_cast<std::size_t>(unit * units); }
    // Adds a unit of idle lanes and returns the number of its first.
    std::size_t add_unit(std::int64_t place) {
        const std::size_t first = lanes();
        std::fill_n(line.begin() + static_cast<std::ptrdiff_t>(first), unit, idle);
        at[static_cast<std::size_t>(units++)] = place;
        return first;
    }

    template <class Round>
    void set_thresholds(Round rounded) {
        const std::size_t n = lanes();
        for (std::size_t j = 0; j < n; ++j) {
            const T near = rounded(cap[j]);
            t[j] = near < top[j] ? near : top[j];
        }
        std::fill_n(s, n, 0.0), std::fill_n(k, n, T(0));
    }

    // Keeps the units that have a lane that is not idle.
    void drop_idle_units() {
        std::int64_t kept = 0;
        for (std::int64_t p = 0; p < units; ++p) {
            const auto from = static_cast<std::size_t>(p * unit), to = static_cast<std::size_t>(kept * unit);
            bool wanted = false;
            for (std::size_t j = 0; j < static_cast<std::size_t>(unit); ++j) wanted |= line[from + j] != idle;
            if (!wanted) continue;
            at[static_cast<std::size_t>(kept++)] = at[static_cast<std::size_t>(p)];
            for (std::size_t j = 0; from != to && j < static_cast<std::size_t>(unit); ++j) {
                line[to + j] = line[from + j], cap[to + j] = cap[from + j], top[to + j] = top[from + j];
                last_t[to + j] = last_t[from + j], last_e[to + j] = last_e[from + j];
            }
        }
        units = kept;
    }

private:
    std::vector<double> doubles_;
    std::vector<T> elements_;
};

// Where caps are a mere guess, a few steps make better ones, and lines that hold nowhere: as long as theta is no more
// than an estimate, exact ones would not hold either.
template <class T, class Above>
void settle_roughly(Lines<T>& lines, Batch<T>& batch, double theta, Above above) {
    constexpr int turns = 6;       // before theta is looked at again
    constexpr double close = 0.2;  // a step, as a part of the cap, after which the next lands well within a hundredth
    for (int turn = 0; turn < turns; ++turn) {
        batch.set_thresholds([](double x) { return static_cast<T>(x); });
        above(batch);
        kernels<T>().rough_step(static_cast<std::int64_t>(batch.lanes()), batch.t, batch.s, batch.k,
                                theta, turn == 0, close, batch.cap, batch.last_t,
                                batch.last_e, batch.weight, batch.open);
        bool open = false;
        for (std::size_t j = 0; j < batch.lanes(); ++j) {
            if (batch.line[j] == Batch<T>::idle) continue;
            lines.guess(batch.line[j], batch.cap[j], theta, batch.weight[j]);
            if (batch.open[j] == 0.0) batch.line[j] = Batch<T>::idle;
            open |= batch.open[j] != 0.0;
        }
        if (!open) return;
        batch.drop_idle_units();
    }
}

// Leaves new lines for the groups of the batch, and says whether any is news. `above` and `gap` have the kernels of
// these names evaluate the batch.
template <class T, class Above, class Gap>
bool settle(Lines<T>& lines, Batch<T>& batch, const Aim& aim, Above above, Gap gap) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (std::size_t j = 0; j < batch.lanes(); ++j) {
        const std::size_t i = batch.line[j];
        const bool idle = i == Batch<T>::idle;
        batch.cap[j] = idle ? infinity : lines.start(i, aim);
        batch.top[j] = idle ? infinity : lines.top[i];
    }
    if (aim.rough) return settle_roughly(lines, batch, aim.theta, above), true;

    batch.set_thresholds([](double x) { return round_down<T>(x); });
    std::fill_n(batch.below, batch.lanes(), T(0));
    std::fill_n(batch.above, batch.lanes(), infinity);
    gap(batch);
    bool news = false;
    for (std::size_t j = 0; j < batch.lanes(); ++j) {
        const std::size_t i = batch.line[j];
        if (i == Batch<T>::idle) continue;
        const bool unread = !lines.read(i);
        const double before = lines.cap(i, aim.theta);
        lines.set(i, batch.s[j], batch.k[j], batch.below[j], batch.above[j]);
        news |= unread || lines.moves(i, before, aim.theta);
    }
    return news;
}

}  // namespace normball
