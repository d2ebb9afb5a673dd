// The default method: a monotone Newton iteration on theta, fed by at most one read of the matrix in the usual case.
//
// For any k members of a group with sum s, the line (s - theta) / k never exceeds the group's cap mu(theta); for the k
// members above the cap it equals it. So g(theta) = sum of the caps is convex, decreasing and piecewise linear, lines
// bound it from below, and the root of a sum of lines bounds the root theta* of g = radius from below. Newton's method
// re-evaluates the lines at the caps they give and solves again, until no line changes: exact, no sort, no tolerance.
//
// What makes it cost one read: theta is first estimated on a sample of the groups, with its standard error. While a
// group is in the cache, its cap at the estimate is found, and the few members within the error around the cap are
// kept. All further steps run on those. An estimate that was off costs another read of the groups concerned, and
// nothing else: every line is valid wherever it was evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "parallel.hpp"
#include "rounding.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/records.hpp"
#include "l1inf/run_reader.hpp"

namespace normball {

enum class Outcome { projected, interior, out_of_range };

// Sums and peaks beyond these are rescaled by the caller: no sum overflows and no quotient is subnormal inside them.
inline constexpr double smallest_peak = 0x1p-800, largest_peak = 0x1p800;

// Whether there is anything to solve, from the sums and peaks of all the groups.
inline Outcome classify(const std::vector<double>& sums, const std::vector<double>& peaks, double radius) {
    double top = 0.0;
    bool finite = true;
    CarefulSum norm;
    for (std::size_t g = 0; g < sums.size(); ++g) {
        finite = finite && std::isfinite(sums[g]);
        top = std::max(top, peaks[g]);
        norm.add(peaks[g]);
    }
    if (!finite || top > largest_peak || (top < smallest_peak && top > 0.0)) return Outcome::out_of_range;
    return norm.value() <= radius ? Outcome::interior : Outcome::projected;
}

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

    // Fills `solution` unless the outcome is `out_of_range`. The warm start, theta and a cap for each group, may hold
    // anything that is finite and not negative.
    Outcome solve(const Solution* warm_start, bool may_sample, Solution& solution) {
        const std::optional<Aim> aim = may_sample ? sampled_aim(warm_start) : std::nullopt;
        sums_.resize(static_cast<std::size_t>(reader_.groups()));
        peaks_.resize(static_cast<std::size_t>(reader_.groups()));
        team_.run(reader_.chunks(), [&](std::int64_t c) {
            reader_.first_read(c, aim ? &*aim : nullptr, sums_.data(), peaks_.data(), chunks_[static_cast<std::size_t>(c)]);
        });
        const Outcome outcome = classify(sums_, peaks_, radius_);
        if (outcome == Outcome::interior) solution = interior_solution(std::move(peaks_));
        if (outcome != Outcome::projected) return outcome;
        find_theta(aim);
        report(solution);
        return outcome;
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::int64_t fewest_to_sample = 64;  // with fewer groups the estimate is not worth its read

    // Solves for a spread-out sample of the groups, their share of the radius, and turns the result into an aim. The
    // standard error of theta is that of the mean cap over the mean slope.
    std::optional<Aim> sampled_aim(const Solution* warm_start) const {
        const std::int64_t m = reader_.groups(), n = reader_.members();
        if (m < fewest_to_sample) return std::nullopt;
        const std::int64_t step = Reader::cluster;
        const std::int64_t clusters = std::clamp<std::int64_t>(m / 32, 16, 512) / step + 1;
        std::vector<std::int64_t> which;
        for (std::int64_t i = 0; i < clusters; ++i)
            for (std::int64_t g = (2 * i + 1) * m / (2 * clusters), j = 0; j < step && g + j < m; ++j)
                which.push_back(g + j);
        const auto count = static_cast<std::int64_t>(which.size());
        const auto data = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count * n));
        reader_.copy(which, data.get());

        View view;
        view.in = data.get();
        view.group.push({count, {n, 0, 0}});
        view.member.push({n, {1, 0, 0}});
        Team alone(1);
        const RunReader<T, false> sample(view);
        Newton<RunReader<T, false>> newton(sample, radius_ * static_cast<double>(count) / static_cast<double>(m), alone);
        Solution found;
        if (newton.solve(nullptr, false, found) != Outcome::projected) return std::nullopt;

        double mean = 0.0, square = 0.0, slope = 0.0, active = 0.0;
        for (std::size_t i = 0; i < which.size(); ++i) {
            if (found.clipped[i] == 0) continue;
            mean += found.mu[i], square += found.mu[i] * found.mu[i];
            slope += 1.0 / static_cast<double>(found.clipped[i]), active += 1.0;
        }
        const double size = static_cast<double>(count);
        const double variance = std::max(square / size - mean / size * (mean / size), 0.0);
        const double error = std::sqrt(variance * size) / slope;
        Aim aim{found.theta, spread_errors * error, mean / active, nullptr};
        if (warm_start != nullptr) {
            aim.caps = warm_start->mu.data();
            if (std::fabs(warm_start->theta - aim.theta) <= aim.spread) aim.theta = warm_start->theta, aim.spread /= 4.0;
        }
        aim.spread = std::max(aim.spread, 1e-9 * aim.theta);
        return aim;
    }
    static constexpr double spread_errors = 3.0;

    void find_theta(const std::optional<Aim>& aim) {
        // theta* is below the largest sum, however rounding has it: some group is never dropped.
        const double ceiling = std::nextafter(*std::max_element(sums_.begin(), sums_.end()), 0.0);
        theta_ = std::min(aim ? aim->theta : two_line_bound(), ceiling);
        double spread = aim ? aim->spread : 0.0;
        double covered = aim ? std::max(aim->theta - aim->spread, 0.0) : infinity;  // all sums above it have a record
        // A Newton step from anywhere lands left of theta*; only the estimate may lie right of it.
        bool bound = !aim;
        for (;;) {
            if (theta_ < covered) {
                const double wanted = std::max(theta_ - spread, 0.0);
                add_records(wanted, covered);
                covered = wanted;
            }
            bool changed = move_lines();
            changed = read_stale({theta_, spread, aim ? aim->cap : 0.0, nullptr}) || changed;
            if (!changed) return;
            const double next = std::min(solve_lines(), ceiling);
            if (bound && next <= theta_) {  // theta has arrived up to rounding; let each group arrive too
                polish();
                return;
            }
            spread = 2.0 * std::fabs(next - theta_);
            theta_ = std::max(next, 0.0);
            bound = true;
        }
    }

    // Root of the lower bound that the lines k = n and k = 1 of every group give: Newton from the left.
    double two_line_bound() const {
        const double n = static_cast<double>(reader_.members());
        for (double theta = 0.0;;) {
            double value = -radius_, slope = 0.0;
            for (std::size_t g = 0; g < sums_.size(); ++g) {
                const double whole = (sums_[g] - theta) / n, top = peaks_[g] - theta;
                value += std::max(std::max(whole, top), 0.0);
                slope += top > whole && top > 0.0 ? 1.0 : whole > 0.0 ? 1.0 / n : 0.0;
            }
            const double next = slope > 0.0 ? theta + value / slope : theta;
            if (!(next > theta * (1.0 + 1e-3))) return theta;  // any bound will do
            theta = next;
        }
    }

    void add_records(double from, double to) {
        for (std::int64_t g = 0; g < reader_.groups(); ++g) {
            const auto u = static_cast<std::size_t>(g);
            if (!(sums_[u] > from && sums_[u] <= to)) continue;
            chunk_of(g).records.push_back(Record::unread(g, sums_[u], peaks_[u]));
        }
    }

    // Brings every line to the current theta, from the window where there is one; marks the records that must be read.
    bool move_lines() {
        bool changed = false;
        for (Chunk<T>& chunk : chunks_)
            for (Record& r : chunk.records) {
                if (r.sum <= theta_ || r.k == 0.0) continue;
                const double cap = r.cap(theta_);
                if (r.in_gap(cap)) continue;
                r.stale = !r.in_window(cap);
                if (r.stale) continue;
                const double k = r.k;
                chunk.evaluate(r, cap);
                changed = changed || r.k != k;
            }
        return changed;
    }

    bool read_stale(const Aim& aim) {
        std::vector<std::int64_t> stale;
        for (std::size_t c = 0; c < chunks_.size(); ++c) {
            bool any = false;
            for (Record& r : chunks_[c].records) {
                r.stale = (r.stale || r.k == 0.0) && r.sum > theta_;
                any = any || r.stale;
            }
            if (any) stale.push_back(static_cast<std::int64_t>(c));
        }
        std::vector<char> changed(stale.size());
        team_.run(static_cast<std::int64_t>(stale.size()), [&](std::int64_t i) {
            const std::int64_t c = stale[static_cast<std::size_t>(i)];
            Chunk<T>& chunk = chunks_[static_cast<std::size_t>(c)];
            std::vector<double> k;
            for (const Record& r : chunk.records) k.push_back(r.k);
            reader_.refresh(c, aim, chunk);
            for (std::size_t j = 0; j < k.size(); ++j)
                if (chunk.records[j].k != k[j]) changed[static_cast<std::size_t>(i)] = 1;
        });
        return std::find(changed.begin(), changed.end(), 1) != changed.end();
    }

    double solve_lines() const {
        double value = -radius_, slope = 0.0;
        for (const Chunk<T>& chunk : chunks_) {
            double s = 0.0, w = 0.0;
            for (const Record& r : chunk.records)
                if (r.sum > theta_) s += r.s / r.k, w += 1.0 / r.k;
            value += s, slope += w;
        }
        return value / slope;
    }

    // Newton steps on each cap alone, theta fixed: the caps only go up and k only down, so it ends.
    void polish() {
        for (bool moved = true; moved;) {
            moved = false;
            for (Chunk<T>& chunk : chunks_)
                for (Record& r : chunk.records) {
                    const double cap = r.sum > theta_ ? r.cap(theta_) : 0.0;
                    if (r.sum <= theta_ || r.in_gap(cap) || !r.in_window(cap)) continue;
                    const double k = r.k;
                    chunk.evaluate(r, cap);
                    moved = moved || r.k < k;
                }
        }
    }

    void report(Solution& solution) const {
        solution.theta = theta_;
        solution.mu.assign(sums_.size(), 0.0);
        solution.clipped.assign(sums_.size(), 0);
        double reads = 0.0;
        for (const Chunk<T>& chunk : chunks_) {
            reads += chunk.reads;
            for (const Record& r : chunk.records) {
                if (!(r.sum > theta_)) continue;
                solution.mu[static_cast<std::size_t>(r.group)] = r.cap(theta_);
                solution.clipped[static_cast<std::size_t>(r.group)] = static_cast<std::int64_t>(r.k);
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
};

}  // namespace normball
