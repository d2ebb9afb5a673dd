// What a few groups tell of all, before these are read or solved for.
//
// Nothing here decides anything but the time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "l1inf/cap_fit.hpp"
#include "l1inf/guesses.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/problem.hpp"

namespace normball {

// Whether reads cost less than guesses.
template <class Reader>
bool small(const Reader& reader) {
    return reader.groups() * reader.members() <= 1024;
}

template <class Reader>
class Forecast {
public:
    using T = typename Reader::T;
    using Gathered = typename Reader::Gathered;

    Forecast(const Reader& reader, double radius) : reader_(reader), radius_(radius) {}

    // A cap from which a look tells those of all the groups, or 0. A few groups, projected alone, say whether there is one: it
    // must be the cap of any group, but for what a model makes good, and some members must lie above it. What a few members say
    // of tails and scale spares most matrices for which there is none even that. `solve` projects what a reader reads onto the ball
    // of a radius, and returns whether there was anything to solve.
    template <class Solve>
    T usual_cap(Solve solve) const {
        constexpr std::int64_t fewest_groups = 512, few = 32;
        constexpr double fewest_clipped = 6.0, most_off = 6.0;  // squares of what chance does to caps
        const std::int64_t m = reader_.groups();
        if (!reader_.can_look() || m < fewest_groups) return 0;
        const auto [mean, square] = reader_.rough_moments();
        const double usual = radius_ / static_cast<double>(m);
        if (!(square < 3.0 * mean * mean && usual > 0.1 * mean && usual * usual < 6.0 * square)) return 0;
        const std::vector<std::int64_t> which = spread_out(few);
        Team alone(1);
        const auto copy = reader_.copy(which, alone);
        const Gathered gathered(copy->view);
        Solution some;
        if (!solve(gathered, usual * static_cast<double>(which.size()), alone, some)) return 0;
        std::size_t apt = 0;
        for (std::size_t i = 0; i < which.size(); ++i) {
            const double k = static_cast<double>(some.clipped[i]), excess = some.theta / k, off = (some.mu[i] - usual) / excess;
            apt += k >= fewest_clipped && k * off * off < most_off ? 1 : 0;
        }
        return 4 * apt >= 3 * which.size() ? static_cast<T>(usual) : T(0);
    }

    // Where to begin: at the caps of the last call; else at an estimate of theta, and how far caps lie between their bounds.
    FirstGuess<T> start(const Solution* warm_start, bool may_sample, std::span<const double> sums,
                        std::span<const double> peaks, double floor) const {
        FirstGuess<T> start{floor};
        if (warm_start != nullptr) {
            start.caps = warm_start->mu.data();
            if (warm_start->theta > floor && std::isfinite(warm_start->theta)) start.theta = warm_start->theta;
            return start;
        }
        if (small(reader_)) return start;
        const double ceiling = theta_ceiling<T>(sums, peaks, radius_, floor);
        start.sure = !(ceiling > near_bounds * floor);
        if (start.sure) return start;
        const double part = ceiling > far_bounds * floor ? middle : nearer;
        start.theta = floor > 0.0 ? floor * std::pow(ceiling / floor, part) : part * ceiling;
        const Bounds all = bounds(sums, peaks, start.theta);
        if (all.highest > all.lowest) start.lean = std::clamp((radius_ - all.lowest) / (all.highest - all.lowest), 0.0, 1.0);
        if (may_sample && reader_.groups() >= fewest_to_sample()) sample(sums, peaks, floor, ceiling, start);
        return start;
    }

private:
    // About so many groups from all over the matrix, in rising order, in clusters that cost no more to read than one of theirs.
    std::vector<std::int64_t> spread_out(std::int64_t count) const {
        constexpr std::int64_t step = Reader::cluster;
        const std::int64_t m = reader_.groups(), clusters = (count + step - 1) / step;
        std::vector<std::int64_t> which;
        for (std::int64_t i = 0; i < clusters; ++i)
            for (std::int64_t g = reader_.cluster_at((2 * i + 1) * m / (2 * clusters)), end = g + step; g < end; ++g) which.push_back(g);
        return which;
    }

    // Sums over the groups of the least and the greatest caps that their sums and peaks allow at theta.
    struct Bounds {
        double lowest = 0.0, lowest_slope = 0.0, highest = 0.0, highest_slope = 0.0;
    };
    Bounds bounds(std::span<const double> sums, std::span<const double> peaks, double theta) const {
        Bounds all;
        const auto count = std::ssize(sums);
        kernels<T>().two_lines(sums.data(), peaks.data(), count, theta, share(), &all.lowest, &all.lowest_slope);
        kernels<T>().highest_caps(sums.data(), peaks.data(), count, theta, &all.highest, &all.highest_slope);
        return all;
    }

    // Finds the caps of a spread-out sample of the groups. How far these lie between the bounds that sums and peaks give, which
    // are known of all the groups, tells theta for all, and so at which theta the caps of the sample are wanted. How they go
    // with sums and peaks tells where to look for those of the others.
    void sample(std::span<const double> sums, std::span<const double> peaks, double floor, double ceiling,
                FirstGuess<T>& start) const {
        const std::int64_t m = reader_.groups(), least = std::min<std::int64_t>(m / 8 + 1, 16);
        const std::vector<std::int64_t> which = spread_out(std::clamp<std::int64_t>(m / 32, least, 64));
        std::vector<double> some_sums, some_peaks;
        for (const std::int64_t g : which) {
            some_sums.push_back(sums[static_cast<std::size_t>(g)]);
            some_peaks.push_back(peaks[static_cast<std::size_t>(g)]);
        }
        Team alone(1);
        const auto copy = reader_.copy(which, alone);
        const Gathered gathered(copy->view);
        const Array<std::int64_t> place = in_order(which.size());
        Lines<T> lines(some_sums, some_peaks, place);
        Guesses guesses(gathered, lines, place, radius_, 0.0, alone);
        Secant secant(radius_);
        bool exactly = false;  // in the end: caps that are off by a member or two make a poor fit
        for (int corrections = 0; corrections < most_corrections; ++corrections) {
            const double theta = start.theta;
            double total = 0.0;
            const Array<double> caps = guesses.caps_at(theta, start.lean, exactly, total);
            const Bounds some = bounds(some_sums, some_peaks, theta), all = bounds(sums, peaks, theta);
            if (!(some.highest > some.lowest)) return;
            start.lean = std::clamp((total - some.lowest) / (some.highest - some.lowest), 0.0, 1.0);
            start.fitted = fit_caps(some_sums, some_peaks, caps, theta, start.fit);
            const double estimate = all.lowest + start.lean * (all.highest - all.lowest);
            const double estimated_slope = all.lowest_slope + start.lean * (all.highest_slope - all.lowest_slope);
            if (!(estimate > 0.0)) return;
            start.theta = std::clamp(secant.step(theta, estimate, estimated_slope), floor, ceiling);
            if (exactly) return start.fitted ? set_windows(lines, guesses, caps, theta, start) : void();
            exactly = std::fabs(start.theta - theta) < 0.05 * theta && std::fabs(estimate - radius_) < 0.1 * radius_;
        }
    }

    // How far the caps of the sample lie from what the fit gives, and somewhat further, if windows so wide are narrow enough.
    void set_windows(Lines<T>& lines, Guesses<Gathered>& guesses, const Array<double>& caps, double theta,
                     FirstGuess<T>& start) const {
        kernels<T>().fitted_lines(lines.arrays(), start.fit, theta, share());
        double low = 1.0, high = 1.0, groups = 0.0;
        for (std::size_t i = 0; i < caps.size(); ++i) {
            const double fitted = lines.cap(i, theta);
            if (!(caps[i] > 0.0 && fitted > 0.0)) continue;
            low = std::min(low, caps[i] / fitted), high = std::max(high, caps[i] / fitted), groups += 1.0;
        }
        Array<T> lo(caps.size()), hi(caps.size());
        for (const double further : {3.0, 2.0, 1.4})
            for (const double upper : {std::numeric_limits<double>::infinity(), std::pow(high, further)}) {
                double expected = 0.0, doubtful = 0.0;
                kernels<T>().window_lines(lines.arrays(), guesses.arrays(), theta, 1.0 / share(), std::pow(low, further), upper,
                                          lo.data(), hi.data(), &expected, &doubtful);
                if (!(expected * share() <= most_found * groups)) continue;
                start.low = std::pow(low, further), start.high = upper;
                return;
            }
    }

    static constexpr double most_found = 0.02;
    static constexpr int most_corrections = 8;

    double share() const { return 1.0 / static_cast<double>(reader_.members()); }

    // With fewer groups the estimate is not worth its read: a few of the matrix, or of those that lie side by side a cluster.
    std::int64_t fewest_to_sample() const { return reader_.can_collect() && Reader::cluster == 1 ? 8 : 64; }
    // Sums and peaks bound theta from both sides. Where they are so many times apart, a sample tells more; else theta is nearer
    // to the lower one.
    static constexpr double near_bounds = 1.1, nearer = 0.22, far_bounds = 16.0, middle = 0.5;

    const Reader& reader_;
    double radius_;
};

}  // namespace normball
