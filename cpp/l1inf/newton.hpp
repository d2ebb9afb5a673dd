// The default method: a monotone Newton iteration on theta, fed by at most one read of the matrix in the usual case.
//
// For any k members of a group with sum s, the line (s - theta) / k never exceeds the group's cap mu(theta); for the k
// members above the cap it equals it. So g(theta) = sum of the caps is convex, decreasing and piecewise linear, lines
// bound it from below, and the root of a sum of lines bounds the root theta* of g = radius from below. Newton's method
// re-evaluates the lines at the caps they give and solves again, until no line changes: exact, no sort, no tolerance.
//
// What makes it cheap: one read gives the sums and peaks of all the groups, and so two lines for each. The root of those
// already shows nearly all the groups that are zero, which are never read again. The others are read once more, and
// while a group is in the cache, its cap is found and the few members around the cap are kept; all further steps run on
// those. Where most groups are non-zero, the two lines say little of theta, and it is estimated first on a sample of the
// groups, with its standard error. An estimate that was off costs another read of the groups concerned, and nothing
// else: every line is valid wherever it was evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "rounding.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/records.hpp"
#include "l1inf/run_reader.hpp"

namespace normball {

enum class Outcome { projected, interior, out_of_range };

// Sums and peaks beyond these are rescaled by the caller: no sum overflows and no quotient is subnormal inside them.
// Kernels add a few floats in float, which must not overflow either.
inline constexpr double smallest_peak = 0x1p-800, largest_peak = 0x1p800, largest_float_peak = 0x1p120;

// Whether there is anything to solve, from the sums and peaks of all the groups.
inline Outcome classify(const std::vector<double>& sums, const std::vector<double>& peaks, double radius,
                        double largest = largest_peak) {
    double top = 0.0;
    bool finite = true;
    for (std::size_t g = 0; g < sums.size(); ++g) {
        finite &= std::isfinite(sums[g]);
        top = std::max(top, peaks[g]);
    }
    if (!finite || top > largest || (top < smallest_peak && top > 0.0)) return Outcome::out_of_range;
    return careful_sum(peaks) <= radius ? Outcome::interior : Outcome::projected;
}

template <class T>
inline constexpr double rounding_of = static_cast<double>(std::numeric_limits<T>::epsilon());

inline Solution interior_solution(std::vector<double> peaks) {
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

    Newton(const Reader& reader, double radius, Team& team)
        : reader_(reader), radius_(radius), team_(team), chunks_(static_cast<std::size_t>(reader.chunks())) {}

    // Fills `solution` unless the outcome is `out_of_range`. The warm start, theta and a cap for each group, may hold any
    // numbers at all.
    Outcome solve(const Solution* warm_start, bool may_sample, Solution& solution) {
        sums_.resize(static_cast<std::size_t>(reader_.groups()));
        peaks_.resize(static_cast<std::size_t>(reader_.groups()));
        team_.run(reader_.chunks(), [&](std::int64_t c) { reader_.stats(c, sums_.data(), peaks_.data()); });
        constexpr double largest = sizeof(T) == sizeof(float) ? largest_float_peak : largest_peak;
        const Outcome outcome = classify(sums_, peaks_, radius_, largest);
        if (outcome == Outcome::interior) solution = interior_solution(std::move(peaks_));
        if (outcome != Outcome::projected) return outcome;
        find_theta(first_aim(warm_start, may_sample));
        report(solution);
        return outcome;
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::int64_t fewest_to_sample = 64;  // with fewer groups the estimate is not worth its read

    // Where to begin: at theta of the last call if it can be true; else at an estimate, where the bound of the two lines
    // leaves many groups; else at that bound.
    Aim first_aim(const Solution* warm_start, bool may_sample) {
        floor_ = two_line_bound();
        Aim aim{floor_};
        aim.share = 1.0 / static_cast<double>(reader_.members());
        if (warm_start != nullptr) aim.caps = warm_start->mu.data();
        const auto active = std::count_if(sums_.begin(), sums_.end(), [this](double sum) { return sum > floor_; });
        if (warm_start != nullptr && warm_start->theta > floor_ && std::isfinite(warm_start->theta))
            aim.theta = warm_start->theta;
        else if (may_sample && reader_.groups() >= fewest_to_sample && 4 * active > reader_.groups())
            sample(aim);
        return aim;
    }

    // Solves for a spread-out sample of the groups, their share of the radius, and takes the result for an aim. The
    // standard error of theta is that of the mean cap over the mean slope.
    void sample(Aim& aim) {
        const std::int64_t m = reader_.groups(), n = reader_.members();
        const std::int64_t step = Reader::cluster;
        const std::int64_t clusters = (std::clamp<std::int64_t>(m / 32, 16, 64) + step - 1) / step;
        std::vector<std::int64_t> which;
        for (std::int64_t i = 0; i < clusters; ++i)
            for (std::int64_t g = (2 * i + 1) * m / (2 * clusters), j = 0; j < step && g + j < m; ++j)
                which.push_back(g + j);
        const auto count = static_cast<std::int64_t>(which.size());
        const Scratch<T> data(count * apart(n));
        reader_.copy(which, data.get(), apart(n));

        View view;
        view.in = data.get();
        view.group.push({count, {apart(n), 0, 0}});
        view.member.push({n, {1, 0, 0}});
        Team alone(1);
        const RunReader<T, false> rows(view);
        Newton<RunReader<T, false>> newton(rows, radius_ * static_cast<double>(count) / static_cast<double>(m), alone);
        Solution found;
        if (newton.solve(nullptr, false, found) != Outcome::projected || found.theta <= aim.theta) return;

        double mean = 0.0, square = 0.0, slope = 0.0, active = 0.0;
        for (std::size_t i = 0; i < which.size(); ++i) {
            if (found.clipped[i] == 0) continue;
            mean += found.mu[i], square += found.mu[i] * found.mu[i];
            slope += 1.0 / static_cast<double>(found.clipped[i]), active += 1.0;
        }
        const double size = static_cast<double>(count);
        const double variance = std::max(square / size - mean / size * (mean / size), 0.0);
        const double error = std::sqrt(variance * size) / slope;
        aim.theta = found.theta, aim.cap = mean / active;
        aim.spread = std::max(spread_errors * error, 1e-9 * aim.theta);
    }
    static constexpr double spread_errors = 3.0;

    void find_theta(const Aim& start) {
        // theta* is below the largest sum, however rounding has it: some group is never dropped.
        const double ceiling = std::nextafter(*std::max_element(sums_.begin(), sums_.end()), 0.0);
        Aim aim = start;
        aim.theta = std::min(aim.theta, ceiling);
        double covered = infinity;  // all sums above it have a line
        std::int64_t active = -1;   // the lines that theta is the root of
        // In exact arithmetic the lines only rise while theta stays. Rounding lets two lines of a group take turns.
        double highest = -infinity;
        int idle = 0;
        // A Newton step from anywhere lands left of theta*; only an estimate may lie right of it.
        for (bool bound = aim.theta <= floor_;; bound = true) {
            if (aim.theta < covered) {
                const double wanted = bound ? aim.theta : std::max(aim.theta - aim.spread, floor_);
                add_lines(wanted, covered);
                covered = wanted;
            }
            theta_ = aim.theta;
            Totals totals = move_lines();
            if (totals.stale) read_stale(aim, totals);
            if (!totals.changed && totals.active == active) return;  // theta is the root of these very lines
            active = totals.active;
            // A bound only rises, though the root of lines that are not yet those of their caps may lie below.
            const double root = totals.active > 0 ? (totals.mean - radius_) / totals.weight : 0.0;
            const double next = std::min(std::max(root, bound ? theta_ : floor_), ceiling);
            const double height = totals.mean - theta_ * totals.weight;
            if (next != theta_) {
                aim.spread = 2.0 * std::fabs(next - theta_);
                highest = -infinity, idle = 0;
            } else if (height > highest) {
                highest = height;
            } else if (++idle > 8) {
                return;
            }
            aim.theta = next;
        }
    }

    // Root of the lower bound that the lines k = n and k = 1 of every group give: Newton from the left, over the groups
    // that are still above. It begins at the root of the lines k = n alone.
    double two_line_bound() const {
        const double n = static_cast<double>(reader_.members()), share = 1.0 / n;
        std::vector<double> sums = sums_, peaks = peaks_;
        const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
        for (double theta = std::max((total - radius_ * n) / static_cast<double>(sums.size()), 0.0);;) {
            double value = -radius_, slope = 0.0;
            std::size_t left = 0;
            for (std::size_t g = 0; g < sums.size(); ++g) {
                const double whole = (sums[g] - theta) * share, top = peaks[g] - theta;
                value += std::max(std::max(whole, top), 0.0);
                slope += top > whole ? 1.0 : share;
                sums[left] = sums[g], peaks[left] = peaks[g];
                left += sums[g] > theta;
            }
            const double next = theta + value / slope;
            // Any bound will do, if it is one: the sums carry the rounding of their additions.
            if (!(next > theta * (1.0 + 1e-3))) return theta * (1.0 - 16.0 * rounding_of<T> - n * rounding_of<double>);
            theta = next;
            sums.resize(left), peaks.resize(left);
        }
    }

    void add_lines(double from, double to) {
        for (std::int64_t g = 0; g < reader_.groups(); ++g) {
            const auto u = static_cast<std::size_t>(g);
            if (sums_[u] > from && sums_[u] <= to) chunk_of(g).add(g, sums_[u], peaks_[u]);
        }
    }

    // Sums over the lines of the groups that are non-zero at theta.
    struct Totals {
        double mean = 0.0, weight = 0.0;
        std::int64_t active = 0;
        bool changed = false;  // some line is not the one it was
        bool stale = false;    // some line must be read again
    };

    // Brings every line to the current theta, from the window where there is one; lists those that must be read.
    Totals move_lines() {
        Totals all;
        for (Chunk<T>& chunk : chunks_) {
            const Totals part = move_lines(chunk);
            all.mean += part.mean, all.weight += part.weight, all.active += part.active;
            all.changed |= part.changed, all.stale |= part.stale;
        }
        return all;
    }

    Totals move_lines(Chunk<T>& chunk) {
        Totals totals;
        chunk.stale.clear();
        for (std::size_t i = 0; i < chunk.lines.size(); ++i) {
            Line& line = chunk.lines[i];
            if (line.sum <= theta_) continue;
            ++totals.active;
            const double cap = line.cap(theta_);
            if (!line.holds(cap)) {
                if (line.read() && chunk.windows[i].holds(cap)) {
                    chunk.evaluate(i, cap);
                    totals.changed |= line.moves(cap, theta_);
                } else {
                    chunk.stale.push_back(i);
                    continue;
                }
            }
            totals.mean += line.mean, totals.weight += line.weight;
        }
        totals.stale = !chunk.stale.empty();
        return totals;
    }

    void read_stale(const Aim& aim, Totals& totals) {
        std::vector<std::int64_t> todo;
        for (std::size_t c = 0; c < chunks_.size(); ++c)
            if (!chunks_[c].stale.empty()) todo.push_back(static_cast<std::int64_t>(c));
        std::vector<Totals> parts(todo.size());
        team_.run(static_cast<std::int64_t>(todo.size()), [&](std::int64_t t) {
            const std::int64_t c = todo[static_cast<std::size_t>(t)];
            Chunk<T>& chunk = chunks_[static_cast<std::size_t>(c)];
            Totals& part = parts[static_cast<std::size_t>(t)];
            const std::vector<std::size_t> stale = chunk.stale;  // the reader may sort its own
            std::vector<double> caps;
            for (const std::size_t i : stale) caps.push_back(chunk.lines[i].cap(theta_));
            chunk.drop_stale_windows();
            reader_.refresh(c, aim, chunk);
            for (std::size_t j = 0; j < stale.size(); ++j) {
                const Line& line = chunk.lines[stale[j]];
                part.mean += line.mean, part.weight += line.weight;
                part.changed |= line.moves(caps[j], theta_);
            }
        });
        for (const Totals& part : parts) {
            totals.mean += part.mean, totals.weight += part.weight;
            totals.changed |= part.changed;
        }
    }

    void report(Solution& solution) const {
        solution.theta = theta_;
        solution.mu.assign(sums_.size(), 0.0);
        solution.clipped.assign(sums_.size(), 0);
        double reads = static_cast<double>(reader_.groups() * reader_.members());
        for (const Chunk<T>& chunk : chunks_) {
            reads += chunk.reads;
            for (std::size_t i = 0; i < chunk.lines.size(); ++i) {
                const Line& line = chunk.lines[i];
                if (line.sum <= theta_) continue;
                const auto g = static_cast<std::size_t>(chunk.windows[i].group);
                solution.mu[g] = line.cap(theta_);
                solution.clipped[g] = std::llround(1.0 / line.weight);
            }
        }
        solution.reads = reads / static_cast<double>(reader_.groups() * reader_.members());
    }

    Chunk<T>& chunk_of(std::int64_t group) { return chunks_[static_cast<std::size_t>(reader_.chunk_of(group))]; }

    const Reader& reader_;
    double radius_;
    Team& team_;
    std::vector<Chunk<T>> chunks_;
    std::vector<double> sums_, peaks_;
    double theta_ = 0.0;
    double floor_ = 0.0;  // a lower bound of theta*, from the sums and peaks alone
};

}  // namespace normball
