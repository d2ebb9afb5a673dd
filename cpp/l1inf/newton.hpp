// The default method: a monotone Newton iteration on theta.
//
// For any k members of a group with sum s, the line (s - theta) / k never exceeds the group's cap mu(theta); for the k
// members above the cap it equals it. So g(theta) = sum of the caps is convex, decreasing and piecewise linear, lines
// bound it from below, and the root of a sum of lines bounds the root theta* of g = radius from below. Newton's method
// re-evaluates the lines at the caps they give and solves again, until no line changes: exact, no sort, no tolerance.
//
// What makes it cheap: one read gives the sums and peaks of all the groups, and so two lines for each. The root of those
// already shows nearly all the groups that are zero, which are never read again. Where most groups are non-zero, the two
// lines say little of theta, and it is estimated first on a sample of the groups. A line comes with the gap between two
// members in which it holds, so a group is read again only when its cap leaves the gap: after the estimate, two reads
// settle nearly all of them. Past the caches one read keeps all the members in doubt, and settles them for good. An estimate
// that was off costs another read of the groups concerned, and nothing else: every line is valid wherever it was evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "rounding.hpp"
#include "l1inf/forecast.hpp"
#include "l1inf/guesses.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/search.hpp"

namespace normball {

enum class Outcome { projected, interior, out_of_range };

// Sums and peaks beyond these are rescaled by the caller: no sum overflows and no quotient is subnormal inside them.
// Kernels add a few floats in float, which must not overflow either.
inline constexpr double smallest_peak = 0x1p-800, largest_peak = 0x1p800, largest_float_peak = 0x1p120;

// Whether there is anything to solve, from the sums and peaks of all the groups.
inline Outcome classify(std::span<const double> sums, std::span<const double> peaks, double radius,
                        double largest = largest_peak) {
    const double top = largest_of(peaks);
    if (!std::isfinite(careful_sum(sums)) || top > largest || (top < smallest_peak && top > 0.0)) return Outcome::out_of_range;
    return careful_sum(peaks) <= radius ? Outcome::interior : Outcome::projected;
}

inline Solution interior_solution(Array<double> peaks) {
    Solution solution;
    solution.interior = true;
    solution.reads = 1.0;
    solution.clipped.assign(peaks.size(), 0);
    solution.mu = std::move(peaks);
    return solution;
}

template <class Reader>
class Newton {
public:
    using T = typename Reader::T;

    Newton(const Reader& reader, double radius, Team& team) : reader_(reader), radius_(radius), team_(team) {}

    // Fills `solution` unless the outcome is `out_of_range`. The warm start, theta and a cap for each group, may hold any
    // numbers at all.
    Outcome solve(const Solution* warm_start, Solution& solution) {
        solution = {};
        const auto groups = static_cast<std::size_t>(reader_.groups());
        Array<double> peaks(groups);
        solution.sums.resize(groups);
        const std::span<double> sums = solution.sums;
        // One read for the sums and peaks, and with luck for a first look.
        const Forecast forecast(reader_, radius_);
        StatsLook<T> look{warm_start == nullptr ? forecast.usual_cap(solve_some) : T(0)};
        Array<T> above(look.t > T(0) ? groups : 0), counts(above.size());
        if (!above.empty()) look.s = above.data(), look.k = counts.data();
        [[maybe_unused]] auto picked = reader_.stats(team_, non_zero_before(warm_start), sums.data(), peaks.data(), look);
        constexpr double largest = sizeof(T) == sizeof(float) ? largest_float_peak : largest_peak;
        const Outcome outcome = classify(sums, peaks, radius_, largest);
        if (outcome == Outcome::interior) solution = interior_solution(std::move(peaks));
        if (outcome != Outcome::projected) return outcome;

        double floor = two_line_bound<T>(sums, peaks, radius_, static_cast<double>(reader_.members()));
        const bool few = few_above(sums, floor);
        FirstGuess<T> start = forecast.start(warm_start, !few && look.s == nullptr, sums, peaks, floor);
        start.look = look;
        if constexpr (Reader::writes_from_copy) {
            if (picked && solve_picked(*picked, start, sums, peaks, floor, solution)) return outcome;
            picked.reset();  // another copy may follow
        }
        // An estimate of theta is as uncertain as it is far from the bound. The lower it is taken, the more seldom it leaves out a
        // group that is not zero, which costs a second copy.
        double guess = start.theta;
        for (const double lowered : {0.97 * start.theta, 0.5 * (floor + start.theta)})
            if (few_above(sums, lowered)) guess = std::min(guess, lowered);
        // Where the bound leaves too many groups for a copy, those above a guess may do: their theta is a better bound, and
        // the answer if it makes all the others zero.
        if (Reader::gathers && !few && look.s == nullptr && guess > floor && few_above(sums, guess) &&
            peaks_above(guess, sums, peaks) > 1.001 * radius_) {
            solve_above(guess, start, 0.0, sums, peaks, solution);
            if (solution.theta >= guess) return outcome;
            start.theta = floor = std::max(floor, solution.theta), start.known = solution.mu.data();
        }
        solve_above(floor, start, floor, sums, peaks, solution);
        return outcome;
    }

private:
    static constexpr auto solve_some = []<class Some>(const Some& reader, double radius, Team& team, Solution& solution) {
        return Newton<Some>(reader, radius, team).solve(nullptr, solution) == Outcome::projected;
    };

    // The groups that a warm start has as non-zero, if they are worth a copy.
    std::vector<std::int64_t> non_zero_before(const Solution* warm_start) const {
        std::vector<std::int64_t> groups;
        if (!Reader::writes_from_copy || warm_start == nullptr) return groups;
        for (std::size_t g = 0; g < warm_start->mu.size(); ++g)
            if (warm_start->mu[g] > 0.0) groups.push_back(static_cast<std::int64_t>(g));
        if (4 * std::ssize(groups) > reader_.groups()) groups.clear();
        return groups;
    }

    static std::int64_t count_above(std::span<const double> sums, double theta) {
        std::int64_t count = 0;
        for (const double sum : sums) count += sum > theta;
        return count;
    }

    // Whether so few groups are non-zero at theta that they are worth a copy.
    bool few_above(std::span<const double> sums, double theta) const {
        return 4 * count_above(sums, theta) <= reader_.groups();
    }

    static double peaks_above(double theta, std::span<const double> sums, std::span<const double> peaks) {
        double all = 0.0;
        for (std::size_t g = 0; g < sums.size(); ++g) all += sums[g] > theta ? peaks[g] : 0.0;
        return all;
    }

    // The solution for the groups that the first read has copied, and those few that turn out to be non-zero as well. A theta of
    // fewer groups is a lower bound. False where too many come up; start and floor are then the better for it.
    template <class Picker>
    bool solve_picked(Picker& picker, FirstGuess<T>& start, std::span<const double> sums, std::span<const double> peaks,
                      double& floor, Solution& solution) const {
        const std::vector<std::int64_t>& groups = picker.copy().groups;
        double all = 0.0;
        std::vector<char> known(sums.size());
        for (const std::int64_t g : groups) all += peaks[static_cast<std::size_t>(g)], known[static_cast<std::size_t>(g)] = 1;
        if (!(all > 1.001 * radius_)) return false;
        Lines<T> lines(sums, peaks, groups);
        lines.guess(0.0, start.theta, share(), start.lean, start.caps);
        const typename Reader::Gathered reader(picker.copy().view);
        for (double bound = 0.0;;) {
            const double theta = Search(reader, lines, in_order(lines.size()), false, radius_, team_).run(bound, bound);
            Array<std::int64_t> others = groups_above<T>(sums, std::max(theta, floor));
            std::erase_if(others, [&](std::int64_t g) { return known[static_cast<std::size_t>(g)]; });
            if (others.empty()) {
                solution.theta = theta;
                report(lines, solution);
                solution.reads = 1.0 + static_cast<double>(picker.copy().more.size()) / static_cast<double>(reader_.groups());
                solution.copy = picker.take();
                return true;
            }
            start.theta = bound = theta;
            if (!picker.copy().more.empty() || std::ssize(others) > picker.room()) break;
            const std::int64_t place = picker.add(others);
            lines.add(sums, peaks, others, place);
            lines.guess(theta, theta, share(), start.lean, start.caps, static_cast<std::size_t>(place));
            for (const std::int64_t g : others) known[static_cast<std::size_t>(g)] = 1;
        }
        start.theta = floor = std::max(floor, start.theta);
        return false;
    }

    double share() const { return 1.0 / static_cast<double>(reader_.members()); }

    // The solution for the groups that are non-zero at `from` alone, which are not all in the ball. `floor` is a lower bound
    // of their theta.
    void solve_above(double from, const FirstGuess<T>& start, double floor, std::span<const double> sums,
                     std::span<const double> peaks, Solution& solution) const {
        solution.copy.reset();  // of an earlier attempt
        const double members = static_cast<double>(reader_.members()), groups = static_cast<double>(reader_.groups());
        // A line more is one that every step over lines must pass: so not before most groups are wanted.
        const bool most = static_cast<double>(count_above(sums, from)) >= std::max(reader_.all_from(), 0.75) * groups;
        Lines<T> lines(sums, peaks, groups_above<T>(sums, most ? 0.0 : from));
        double read = groups * members;
        Windows<T> windows;
        const auto search = [&](const auto& reader, std::span<const std::int64_t> place, bool may_copy, Windows<T>* kept) {
            Search found(reader, lines, place, may_copy, radius_, team_, kept);
            if (start.caps != nullptr || small(reader_)) {
                // Earlier caps tell more of theta than it was then: in training it may change a thousandfold from one step to
                // the next, while the caps hardly move. So these are looked at first, at a theta that leaves none out.
                lines.guess(floor, start.theta, share(), start.lean, start.caps);
                solution.theta = found.run(floor, floor);
                return found.reads();
            }
            double guess = 0.0, looks = 0.0;
            {
                Guesses guesses(reader, lines, place, radius_, floor, team_);
                guess = guesses.run(start, kept), looks = guesses.reads();
            }
            solution.theta = found.run(guess, floor);
            return found.reads() + looks;
        };
        if (Reader::gathers && 4 * std::ssize(lines.group) <= reader_.groups()) {
            auto copy = reader_.copy(lines.group, team_);
            read += static_cast<double>(lines.group.size()) * members;
            search(typename Reader::Gathered(copy->view), in_order(lines.size()), false, nullptr);
            if constexpr (Reader::writes_from_copy) solution.copy = std::move(copy);
        } else {
            read += search(reader_, lines.group, Reader::gathers, reader_.can_collect() ? &windows : nullptr);
        }
        report(lines, solution);
        solution.reads += read / (groups * members) - (solution.reads > 0.0 ? 1.0 : 0.0);
    }

    void report(const Lines<T>& lines, Solution& solution) const {
        const auto groups = static_cast<std::size_t>(reader_.groups());
        solution.mu.assign(groups, 0.0);
        solution.clipped.assign(groups, 0);
        solution.active.resize(lines.size());
        std::size_t active = 0;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines.sum[i] <= solution.theta) continue;
            const auto g = static_cast<std::size_t>(lines.group[i]);
            solution.active[active++] = g;
            solution.mu[g] = lines.cap(i, solution.theta);
            solution.clipped[g] = static_cast<std::int64_t>(1.0 / lines.weight[i] + 0.5);
        }
        solution.active.resize(active);
    }

    const Reader& reader_;
    double radius_;
    Team& team_;
};

}  // namespace normball
