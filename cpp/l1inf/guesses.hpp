// Guesses theta and the caps, from quick looks at the groups, before any line is exact.
//
// As long as theta is no more than an estimate, exact lines would not survive its next step. So each group is looked at once,
// at the cap it is thought to have, and what is found there is a model of its caps at every theta near by: theta and all the
// caps are then moved together, to where the models sum to the radius. Such a step is off by about its own square.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/visit.hpp"
#include "l1inf/windows.hpp"

namespace normball {

// Where to begin.
template <class T>
struct FirstGuess {
    double theta = 0.0;
    bool sure = false;  // near enough for exact lines
    // How far caps lie between the bounds that sums and peaks give: from 0, at the better of the lines k = n and k = 1, to 1, at
    // the highest cap that is possible.
    double lean = 0.0;
    bool fitted = false;
    CapFit fit = {};  // better: how caps go with sums and peaks
    double low = 0.0, high = 0.0;  // so many times the caps that it gives, at least and at most, if that is near; else 0
    const double* known = nullptr;  // caps at theta of some groups, one entry for each of all: 0 where nothing is known
    StatsLook<T> look = {};         // or what a look at every group has found, one entry for each of all the groups
    const double* caps = nullptr;   // or where they lay in an earlier call: one for each group, any numbers at all
};

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

// Where a decreasing function of theta reaches a goal: along its slope first, and then between what is known of it, as if it
// were a power.
class Secant {
public:
    explicit Secant(double goal) : goal_(goal) {}
    double step(double theta, double value, double slope) {
        const double x = std::log(theta), y = std::log(value / goal_);
        double next = slope > 0.0 ? x + y * value / (slope * theta) : x;
        if (known_ && y != last_y_ && x != last_x_) next = x - y * (x - last_x_) / (y - last_y_);
        // What was nearest on the other side is the better companion.
        if (!known_ || y * last_y_ < 0.0 || std::fabs(y) < std::fabs(last_y_)) last_x_ = x, last_y_ = y;
        known_ = true;
        return std::exp(std::clamp(next, x - 2.0, x + 2.0));
    }

private:
    double goal_, last_x_ = 0.0, last_y_ = 0.0;
    bool known_ = false;
};

template <class Reader>
class Guesses {
public:
    using T = typename Reader::T;

    Guesses(const Reader& reader, Lines<T>& lines, std::span<const std::int64_t> place, double radius, double floor,
            Team& team)
        : reader_(reader), lines_(lines), place_(place), radius_(radius), floor_(floor), team_(team),
          ceiling_(std::nextafter(largest_of(lines.sum), 0.0)), share_(1.0 / static_cast<double>(reader.members())),
          t_(lines.top), f_(lines.sum.size(), 0.0), e_(lines.sum.size(), -1.0), bend_(lines.sum.size(), 0.0) {}

    // Leaves lines, exact ones or through guessed caps, and returns the guess of theta, at which hardly any is still to be read.
    // With windows about the caps, if there is a place for them and they are narrow: then nothing is read any more.
    double run(const FirstGuess<T>& start, Windows<T>* windows) {
        double theta = start.theta;
        bool exact = false;
        if (start.look.s != nullptr) keep(start.look, theta);
        for (int looks = start.look.s != nullptr ? 1 : 0;; ++looks) {
            if (looks == 0 && start.fitted)
                kernels<T>().fitted_lines(lines_.arrays(), start.fit, theta, share_);
            else
                theta = solve(theta, start.lean);
            if (looks == 0 && start.known != nullptr) place_at(start.known, theta);
            const std::int64_t few = allowed(theta);
            Array<std::size_t> which = lines_.stale(theta);
            if (looks == most_looks || std::ssize(which) <= few) return theta;
            if (exact && Reader::neighbours && worth_copy(reader_, std::ssize(which))) return theta;
            const double low = looks > 0 ? 0.0 : start.low;
            if (windows != nullptr && (looks > 0 || low > 0.0) && collect(theta, low, start.high, *windows))
                return solve_within(*windows, theta);
            // Exact lines fail where a guess is doubtful. But where few members are clipped no model tells as much as a line.
            exact = (start.sure && !Reader::neighbours) || looks >= reader_.rough_looks();
            if (!exact && looks > 0) {
                Array<std::size_t> doubtful = doubtful_lines(theta);
                exact = std::ssize(doubtful) <= few;
                if (!exact && !Reader::neighbours) which.swap(doubtful);
            }
            if (static_cast<double>(which.size()) >= reader_.all_from() * static_cast<double>(lines_.size()))
                which.resize(lines_.size()), std::iota(which.begin(), which.end(), std::size_t(0));
            look(which, theta, exact);
        }
    }

    // The caps at a given theta, and their sum: after one more look where they are doubtful, or until they are exact.
    Array<double> caps_at(double theta, double lean, bool exactly, double& total) {
        double slope = 0.0;
        const auto guess = [&] { kernels<T>().guess_lines(lines_.arrays(), arrays(), theta, share_, lean, &total, &slope); };
        guess();
        for (int looks = 0; looks < (exactly ? most_looks : 1); ++looks) {
            const Array<std::size_t> which = exactly ? lines_.stale(theta) : doubtful_lines(theta);
            if (std::ssize(which) <= (exactly ? 0 : allowed(theta))) break;
            look(which, theta, exactly), guess();
        }
        Array<double> caps(lines_.size());
        for (std::size_t i = 0; i < caps.size(); ++i) caps[i] = lines_.sum[i] > theta ? lines_.cap(i, theta) : 0.0;
        return caps;
    }

    double reads() const { return reads_; }  // elements fetched from memory
    GuessArrays arrays() { return {t_.data(), f_.data(), e_.data(), bend_.data()}; }

private:
    static constexpr int most_looks = 8;
    static constexpr double most_lost = 0.05;  // of the groups

    // Reads windows about the caps at theta, unless they are too wide: see Kernels::window_lines.
    bool collect(double theta, double low, double high, Windows<T>& windows) {
        const double members = static_cast<double>(reader_.members());
        windows.lo.resize(lines_.size()), windows.hi.resize(lines_.size());
        double expected = 0.0, doubtful = 0.0;
        kernels<T>().window_lines(lines_.arrays(), arrays(), theta, members, low, high, windows.lo.data(), windows.hi.data(),
                                  &expected, &doubtful);
        const auto totals = lines_.totals(theta);
        if (low == 0.0) {
            if (expected > Reader::most_kept * members * totals.active) return false;
            if (doubtful < reader_.fewest_doubtful() * totals.active) return false;
        } else {
            // By so much theta is off, as far as the caps of the fit miss the radius; which must not take many from their windows.
            const double off = std::fabs(totals.mean - theta * totals.weight - radius_) / totals.weight, room = 0.5 * (1.0 - low);
            double lost = 0.0;
            for (std::size_t i = 0; i < lines_.size(); ++i)
                lost += lines_.sum[i] > theta && off * lines_.weight[i] > room * lines_.cap(i, theta) ? 1.0 : 0.0;
            if (lost > most_lost * totals.active) return false;
        }
        Array<std::size_t> which(lines_.size());
        std::size_t count = 0;
        for (std::size_t i = 0; i < which.size(); ++i)
            which[count] = i, count += windows.lo[i] < std::numeric_limits<T>::infinity() ? 1 : 0;
        which.resize(count);
        const auto jobs = chunks_of(reader_, place_, which);
        windows.expect(lines_.size(), jobs.size());
        team_.run(std::ssize(jobs), [&](std::int64_t job) {
            const auto j = static_cast<std::size_t>(job);
            reader_.collect(windows, lines_, place_.data(), jobs[j], j);
        });
        reads_ += static_cast<double>(count) * members;
        return true;
    }

    // Newton's method, as far as windows tell.
    double solve_within(const Windows<T>& windows, double theta) {
        for (int steps = 0; steps < most_looks; ++steps) {
            Array<std::size_t> stale = lines_.stale(theta);
            std::erase_if(stale, [&](std::size_t i) { return !windows.has(i, lines_.cap(i, theta)); });
            if (stale.empty()) break;
            visit(windows, lines_, windows.places(), stale, {theta}, team_);
            const auto totals = lines_.totals(theta);
            theta = within((totals.mean - radius_) / totals.weight, theta);
        }
        return theta;
    }

    // Where to look at groups whose caps are known.
    void place_at(const double* caps, double theta) {
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            const double cap = caps[lines_.group[i]];
            if (cap > 0.0) lines_.mean[i] = cap + theta * share_, lines_.weight[i] = share_;
        }
    }

    // Models from a look that is there already, of the groups of which it saw anything.
    void keep(const StatsLook<T>& seen, double theta) {
        const std::size_t n = lines_.size();
        Array<std::size_t> line(n);
        Array<double> s(n);
        Array<T> t(n, seen.t), k(n);
        std::int64_t found = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const auto g = static_cast<std::size_t>(lines_.group[i]), j = static_cast<std::size_t>(found);
            line[j] = i, s[j] = static_cast<double>(seen.s[g]), k[j] = seen.k[g];
            found += seen.k[g] > T(0) ? 1 : 0;
        }
        LaneArrays<T> lanes{};
        lanes.line = line.data(), lanes.s = s.data(), lanes.t = t.data(), lanes.k = k.data();
        kernels<T>().keep_looks(lines_.arrays(), arrays(), theta, lanes, found);
    }

    void look(std::span<const std::size_t> which, double theta, bool exact) {
        reads_ += static_cast<double>(which.size()) * static_cast<double>(reader_.members());
        const GuessArrays found = arrays();
        visit(reader_, lines_, place_, which, {theta, exact, &found}, team_);
    }

    // Moves theta to where the models sum to the radius: by Newton's method, or better, and the last step along straight lines,
    // which are left with their lines.
    double solve(double theta, double lean) {
        constexpr int most_steps = 4;
        // A straight step is right to its square, in parts of theta and of what is left of the groups.
        constexpr double near = 0.05, nearer = 0.005;
        Extrapolation guide;
        theta = within(theta, 0.0);
        for (int steps = 1;; ++steps) {
            double total = 0.0, slope = 0.0;
            kernels<T>().guess_lines(lines_.arrays(), arrays(), theta, share_, lean, &total, &slope);
            if (!(slope > 0.0)) return theta;
            const double step = (total - radius_) / slope;
            const bool straight = std::fabs(step) <= near * theta && std::fabs(total - radius_) <= nearer * radius_;
            if (straight || steps == most_steps) return within(theta + step, theta);
            theta = within(guide.step(theta, total, total / slope, radius_), theta);
        }
    }

    // No step falls far: theta must stay above 0, where models end.
    double within(double theta, double last) const {
        return std::min(std::max({theta, floor_, 0.125 * last, std::numeric_limits<double>::min()}), ceiling_);
    }

    Array<std::size_t> doubtful_lines(double theta) {
        Array<std::size_t> found(lines_.size());
        found.resize(static_cast<std::size_t>(kernels<T>().doubtful_lines(lines_.arrays(), arrays(), theta, found.data())));
        return found;
    }

    std::int64_t allowed(double theta) {
        return static_cast<std::int64_t>(Reader::doubtful_share * lines_.totals(theta).active);
    }

    const Reader& reader_;
    Lines<T>& lines_;
    std::span<const std::int64_t> place_;
    double radius_, floor_;
    Team& team_;
    double ceiling_, share_;
    Array<double> t_, f_, e_, bend_;
    double reads_ = 0.0;
};

}  // namespace normball
