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
// settle nearly all of them. An estimate that was off costs another read of the groups concerned, and nothing else:
// every line is valid wherever it was evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "rounding.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/search.hpp"

namespace normball {

enum class Outcome { projected, interior, out_of_range };

// Sums and peaks beyond these are rescaled by the caller: no sum overflows and no quotient is subnormal inside them.
// Kernels add a few floats in float, which must not overflow either.
inline constexpr double smallest_peak = 0x1p-800, largest_peak = 0x1p800, largest_float_peak = 0x1p120;

// Whether there is anything to solve, from the sums and peaks of all the groups.
inline Outcome classify(const std::vector<double>& sums, const std::vector<double>& peaks, double radius,
                        double largest = largest_peak) {
    const double top = largest_of(peaks);
    if (!std::isfinite(careful_sum(sums)) || top > largest || (top < smallest_peak && top > 0.0)) return Outcome::out_of_range;
    return careful_sum(peaks) <= radius ? Outcome::interior : Outcome::projected;
}

inline Solution interior_solution(std::vector<double> peaks) {
    Solution solution;
    solution.interior = true;
    solution.reads = 1.0;
    solution.clipped.assign(peaks.size(), 0);
    solution.mu = std::move(peaks);
    return solution;
}

// The line y = mean_y + slope * (x - mean_x) of least squares, rising, and the variance that is left.
struct Fit {
    double mean_x = 0.0, mean_y = 0.0, slope = 0.0, rest = 0.0;

    Fit(const std::vector<double>& x, const std::vector<double>& y) {
        const double n = static_cast<double>(x.size());
        double xx = 0.0, xy = 0.0, yy = 0.0;
        for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double dx = x[i] - mean_x, dy = y[i] - mean_y;
            xx += dx * dx / n, xy += dx * dy / n, yy += dy * dy / n;
        }
        slope = xx > 0.0 ? std::max(xy / xx, 0.0) : 0.0;
        rest = std::max(yy - slope * xy, 0.0);
    }
};

template <class Reader>
class Newton {
public:
    using T = typename Reader::T;

    Newton(const Reader& reader, double radius, Team& team) : reader_(reader), radius_(radius), team_(team) {}

    // Fills `solution` unless the outcome is `out_of_range`. The warm start, theta and a cap for each group, may hold any
    // numbers at all.
    Outcome solve(const Solution* warm_start, bool may_sample, Solution& solution) {
        solution = {};
        const auto groups = static_cast<std::size_t>(reader_.groups());
        std::vector<double> sums(groups), peaks(groups);
        [[maybe_unused]] auto picked = reader_.stats(team_, non_zero_before(warm_start), sums.data(), peaks.data());
        constexpr double largest = sizeof(T) == sizeof(float) ? largest_float_peak : largest_peak;
        const Outcome outcome = classify(sums, peaks, radius_, largest);
        if (outcome == Outcome::interior) solution = interior_solution(std::move(peaks));
        if (outcome != Outcome::projected) return outcome;

        double floor = two_line_bound<T>(sums, peaks, radius_, static_cast<double>(reader_.members()));
        const bool few = few_above(sums, floor);
        Aim aim = first_aim(warm_start, may_sample && !few, sums, peaks, floor);
        if constexpr (Reader::writes_from_copy) {
            if (picked && solve_picked(*picked, aim, sums, peaks, floor, solution)) return outcome;
            picked.reset();  // another copy may follow
        }
        const double guess = lowered * aim.theta;
        // Where the bound leaves too many groups for a copy, those above a guess may do: their theta is a better bound, and
        // the answer if it makes all the others zero.
        if (Reader::gathers && !few && guess > floor && few_above(sums, guess) &&
            peaks_above(guess, sums, peaks) > 1.001 * radius_) {
            solve_above(guess, aim, 0.0, sums, peaks, solution);
            if (solution.theta >= guess) return outcome;
            aim.theta = floor = std::max(floor, solution.theta);
        }
        solve_above(floor, aim, floor, sums, peaks, solution);
        return outcome;
    }

private:
    static constexpr double lowered = 0.97;  // an estimate of theta, so that it seldom leaves out a group that is not zero

    // The groups that a warm start has as non-zero, if they are worth a copy.
    std::vector<std::int64_t> non_zero_before(const Solution* warm_start) const {
        std::vector<std::int64_t> groups;
        if (!Reader::writes_from_copy || warm_start == nullptr) return groups;
        for (std::size_t g = 0; g < warm_start->mu.size(); ++g)
            if (warm_start->mu[g] > 0.0) groups.push_back(static_cast<std::int64_t>(g));
        if (4 * std::ssize(groups) > reader_.groups()) groups.clear();
        return groups;
    }

    // Where a search begins. Earlier caps tell more of theta than it was then: in training it may change a thousandfold from
    // one step to the next, while the caps hardly move. So these are looked at first, at a theta that leaves none out.
    static Aim begun(Aim aim, double floor) {
        if (aim.caps != nullptr) aim.theta = floor;
        return aim;
    }

    static std::int64_t count_above(const std::vector<double>& sums, double theta) {
        std::int64_t count = 0;
        for (const double sum : sums) count += sum > theta;
        return count;
    }

    // Whether so few groups are non-zero at theta that they are worth a copy.
    bool few_above(const std::vector<double>& sums, double theta) const {
        return 4 * count_above(sums, theta) <= reader_.groups();
    }

    static double peaks_above(double theta, const std::vector<double>& sums, const std::vector<double>& peaks) {
        double all = 0.0;
        for (std::size_t g = 0; g < sums.size(); ++g) all += sums[g] > theta ? peaks[g] : 0.0;
        return all;
    }

    // The solution for the groups that the first read has copied, and those few that turn out to be non-zero as well. A theta of
    // fewer groups is a lower bound. False where too many come up; aim and floor are then the better for it.
    template <class Picker>
    bool solve_picked(Picker& picker, Aim& aim, const std::vector<double>& sums, const std::vector<double>& peaks,
                      double& floor, Solution& solution) const {
        const std::vector<std::int64_t>& groups = picker.copy().groups;
        double all = 0.0;
        std::vector<char> known(sums.size());
        for (const std::int64_t g : groups) all += peaks[static_cast<std::size_t>(g)], known[static_cast<std::size_t>(g)] = 1;
        if (!(all > 1.001 * radius_)) return false;
        Lines<T> lines(sums, peaks, groups);
        lines.guess(aim, 0.0);
        const typename Reader::Gathered reader(picker.copy().view);
        for (double bound = 0.0;;) {
            const double theta = Search(reader, lines, true, radius_, team_).run(begun(aim, bound), bound);
            std::vector<std::int64_t> others = groups_above<T>(sums, std::max(theta, floor));
            std::erase_if(others, [&](std::int64_t g) { return known[static_cast<std::size_t>(g)]; });
            if (others.empty()) {
                solution.theta = theta;
                report(lines, solution);
                solution.reads = 1.0 + static_cast<double>(picker.copy().more.size()) / static_cast<double>(reader_.groups());
                solution.copy = picker.take();
                return true;
            }
            aim.theta = bound = theta;
            if (!picker.copy().more.empty() || std::ssize(others) > picker.room()) break;
            const std::int64_t place = picker.add(others);
            lines.add(sums, peaks, others, place);
            lines.guess(aim, theta, static_cast<std::size_t>(place));
            for (const std::int64_t g : others) known[static_cast<std::size_t>(g)] = 1;
        }
        aim.theta = floor = std::max(floor, aim.theta);
        return false;
    }

    // The solution for the groups that are non-zero at `from` alone, which are not all in the ball. `floor` is a lower bound
    // of their theta.
    void solve_above(double from, const Aim& aim, double floor, const std::vector<double>& sums,
                     const std::vector<double>& peaks, Solution& solution) const {
        solution.copy.reset();  // of an earlier attempt
        Lines<T> lines(sums, peaks, groups_above<T>(sums, from));
        const Aim start = begun(aim, floor);
        lines.guess(aim, start.theta);
        const double members = static_cast<double>(reader_.members()), groups = static_cast<double>(reader_.groups());
        double read = groups * members;
        const auto search = [&](const auto& reader, bool all) {
            Search found(reader, lines, all, radius_, team_);
            solution.theta = found.run(start, floor);
            return found.reads();
        };
        if (Reader::gathers && 4 * std::ssize(lines.group) <= reader_.groups()) {
            auto copy = reader_.copy(lines.group, team_);
            read += static_cast<double>(lines.group.size()) * members;
            search(typename Reader::Gathered(copy->view), true);
            if constexpr (Reader::writes_from_copy) solution.copy = std::move(copy);
        } else {
            read += search(reader_, false);
        }
        report(lines, solution);
        solution.reads += read / (groups * members) - (solution.reads > 0.0 ? 1.0 : 0.0);
    }

    static constexpr std::int64_t fewest_to_sample = 64;  // with fewer groups the estimate is not worth its read
    // Sums and peaks bound theta from both sides. Where they are so many times apart, a sample tells more, if the groups are
    // alike: the largest of the peaks is not so many times their mean. Else it takes bounds that are far apart; between others
    // theta is nearer to the lower one.
    static constexpr double near_bounds = 1.1, far_bounds = 16.0, alike_peaks = 4.0;

    // Where to begin: at theta of the last call if it can be true; else at an estimate, where many groups are left; else
    // at the bound.
    Aim first_aim(const Solution* warm_start, bool may_sample, const std::vector<double>& sums,
                  const std::vector<double>& peaks, double floor) const {
        Aim aim{floor};
        aim.share = 1.0 / static_cast<double>(reader_.members());
        aim.rough = warm_start == nullptr;
        if (warm_start != nullptr) aim.caps = warm_start->mu.data();
        if (warm_start != nullptr && warm_start->theta > floor && std::isfinite(warm_start->theta)) {
            aim.theta = warm_start->theta;
        } else if (may_sample && reader_.groups() >= fewest_to_sample) {
            const double ceiling = theta_ceiling<T>(sums, peaks, radius_, floor);
            const bool alike = largest_of(peaks) * static_cast<double>(peaks.size()) < alike_peaks * careful_sum(peaks);
            if (ceiling > (alike ? near_bounds : far_bounds) * floor)
                sample(sums, peaks, aim);
            else if (!alike && floor > 0.0)
                aim.theta = floor * std::pow(ceiling / floor, 0.22);
            aim.theta = std::min(aim.theta, ceiling);
            if (!alike) aim.lean = lean(sums, peaks, aim);
            if (aim.lean > 0.0) aim.cap = aim.slope = 0.0;
        }
        return aim;
    }

    // How far caps lie between their bounds, if all lie alike and sum to the radius. That helps where few groups are zero; else
    // theta would have to be better known.
    double lean(const std::vector<double>& sums, const std::vector<double>& peaks, const Aim& aim) const {
        const std::int64_t m = reader_.groups();
        if (4 * (m - count_above(sums, aim.theta)) > m) return 0.0;
        double lowest = 0.0, highest = 0.0, slope = 0.0;
        kernels<T>().two_lines(sums.data(), peaks.data(), m, aim.theta, aim.share, &lowest, &slope);
        kernels<T>().highest_caps(sums.data(), peaks.data(), m, aim.theta, &highest, &slope);
        return highest > lowest ? std::clamp((radius_ - lowest) / (highest - lowest), 0.0, 1.0) : 0.0;
    }

    // Solves for a spread-out sample of the groups, their share of the radius, and takes the result for an aim. The lines
    // k = n and k = 1 are known of all the groups, and caps go with them: what those of the sample exceed their share by, times
    // the slope of caps over lines in the sample, corrects its share of the radius. The standard error of theta is that of the
    // mean cap, as far as the lines do not explain it, over the mean slope of the caps.
    void sample(const std::vector<double>& sums, const std::vector<double>& peaks, Aim& aim) const {
        constexpr std::int64_t step = Reader::cluster;
        const std::int64_t m = reader_.groups(), clusters = (std::clamp<std::int64_t>(m / 32, 16, 64) + step - 1) / step;
        std::vector<std::int64_t> which;
        for (std::int64_t i = 0; i < clusters; ++i)
            for (std::int64_t g = reader_.cluster_at((2 * i + 1) * m / (2 * clusters)), j = 0; j < step; ++j)
                which.push_back(g + j);
        const std::int64_t count = std::ssize(which);
        Team alone(1);
        const auto copy = reader_.copy(which, alone);
        const typename Reader::Gathered gathered(copy->view);

        const double share = static_cast<double>(count) / static_cast<double>(m);
        Solution found;
        double goal = share * radius_;
        for (int corrections = 0;; ++corrections) {
            const Solution before = std::move(found);
            Newton<typename Reader::Gathered> newton(gathered, goal, alone);
            const Outcome outcome = newton.solve(corrections > 0 ? &before : nullptr, false, found);
            if (outcome != Outcome::projected) return;
            const double theta = std::max(found.theta, aim.theta);
            std::vector<double> lines;
            for (const std::int64_t place : which) {
                const auto g = static_cast<std::size_t>(place);
                lines.push_back(std::max({(sums[g] - theta) * aim.share, peaks[g] - theta, 0.0}));
            }
            const Fit fit(lines, found.mu);
            double all = 0.0, slope = 0.0;
            kernels<T>().two_lines(sums.data(), peaks.data(), m, theta, aim.share, &all, &slope);
            const double excess = fit.slope * (fit.mean_x * static_cast<double>(count) - share * all);
            const double wanted = share * radius_ + excess;
            if (corrections < most_corrections && std::fabs(wanted - goal) > 0.05 * goal && wanted > 0.0) {
                goal = wanted;
                continue;
            }
            if (found.theta <= aim.theta) return;
            double weight = 0.0;
            for (const std::int64_t k : found.clipped) weight += k > 0 ? 1.0 / static_cast<double>(k) : 0.0;
            aim.theta = found.theta, aim.cap = fit.mean_y - fit.slope * fit.mean_x, aim.slope = fit.slope;
            aim.spread = spread_errors * std::sqrt(fit.rest * static_cast<double>(count)) / weight;
            return;
        }
    }
    static constexpr double spread_errors = 3.0;
    static constexpr int most_corrections = 3;

    void report(const Lines<T>& lines, Solution& solution) const {
        const auto groups = static_cast<std::size_t>(reader_.groups());
        solution.mu.assign(groups, 0.0);
        solution.clipped.assign(groups, 0);
        solution.active.clear();
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines.sum[i] <= solution.theta) continue;
            const auto g = static_cast<std::size_t>(lines.group[i]);
            solution.active.push_back(g);
            solution.mu[g] = lines.cap(i, solution.theta);
            solution.clipped[g] = static_cast<std::int64_t>(1.0 / lines.weight[i] + 0.5);
        }
    }

    const Reader& reader_;
    double radius_;
    Team& team_;
};

}  // namespace normball
