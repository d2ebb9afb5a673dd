// Finds theta by Newton's method, reading again only the groups whose lines do not hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "scratch.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/settle.hpp"

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

// Finds theta for the lines of a reader's groups, which are all that it has, in their order, or lie where their numbers say.
template <class Reader>
class Search {
public:
    using T = typename Reader::T;

    Search(const Reader& reader, Lines<T>& lines, bool all, double radius, Team& team)
        : reader_(reader), lines_(lines), all_(all), radius_(radius), team_(team) {
        if (all) place_.resize(lines.size()), std::iota(place_.begin(), place_.end(), 0);
    }

    // `floor` is a lower bound of theta*, which lies below the largest sum, however rounding has it: some group is never
    // dropped.
    double run(Aim aim, double floor) {
        const double ceiling = std::nextafter(largest_of(lines_.sum), 0.0);
        aim.theta = std::min(aim.theta, ceiling);
        double active = -1.0;  // the lines that theta is the root of
        // In exact arithmetic the lines only rise while theta stays. Rounding lets two lines of a group take turns.
        double highest = -infinity;
        int idle = 0, rough_rounds = 6;
        Extrapolation guide;
        // A Newton step on exact lines lands left of theta* from anywhere; an estimate, or a step on rough lines, may not.
        bool exact = false;
        for (bool bound = aim.theta <= floor;; bound = exact) {
            const double theta = aim.theta;
            const bool news = refresh(aim, bound ? theta : std::max(theta - aim.spread, floor));
            const auto totals = lines_.totals(theta);
            if (!news && exact && totals.active == active) return theta;  // the root of these very lines
            active = totals.active;
            const double height = totals.mean - theta * totals.weight;
            double root = totals.active > 0.0 ? (totals.mean - radius_) / totals.weight : 0.0;
            if (aim.rough && height > 0.0) root = guide.step(theta, height, height / totals.weight, radius_);
            // A bound only rises, though the root of lines that are not yet those of their caps may lie below.
            const double next = std::min(std::max(root, bound ? theta : floor), ceiling);
            if (next != theta || aim.rough) {
                highest = -infinity, idle = 0;
            } else if (height > highest) {
                highest = height;
            } else if (++idle > 8) {
                return theta;
            }
            exact = !aim.rough;
            // A step of theta is off by about its square, and the caps of k members leave their gaps where that is a k-th.
            const double near = std::clamp(std::sqrt(0.5 * totals.weight / totals.active), 0.02, 0.3);
            const bool far = std::fabs(next - theta) > near * next || std::fabs(height - radius_) > 2.0 * near * radius_;
            aim.rough = aim.rough && far && --rough_rounds > 0;
            aim.theta = next;
        }
    }

    double reads() const { return reads_; }  // elements fetched from memory

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    // Reads the lines that do not hold at aim.theta, and those not yet read of the groups non-zero at `from`. Returns
    // whether any is news.
    bool refresh(const Aim& aim, double from) {
        std::vector<std::size_t> stale = lines_.stale(aim.theta, from);
        if (Reader::gathers && !all_ && !aim.rough && copy_ == nullptr) copy_if_worth(stale);
        if (copy_ == nullptr) return read(reader_, all_ ? place_ : lines_.group, stale, aim);
        const auto others = std::stable_partition(stale.begin(), stale.end(), [&](std::size_t i) { return place_[i] >= 0; });
        const bool news = read(typename Reader::Gathered(copy_->view), place_, {stale.begin(), others}, aim);
        return read(reader_, lines_.group, {others, stale.end()}, aim) || news;
    }

    // Lines that have failed soon fail again. Where groups are read with their neighbours, or dearly, and some but not many
    // have failed, a copy of these spares reads of nearly all of the matrix. It must not need fresh memory, which costs more.
    void copy_if_worth(std::span<const std::size_t> stale) {
        const std::int64_t count = std::ssize(stale), bytes = count * reader_.members() * static_cast<std::int64_t>(sizeof(T));
        if (4 * count > reader_.groups() || 32 * count < reader_.groups() || bytes > ScratchBytes::most_kept / 8 * 7) return;
        std::vector<std::int64_t> groups;
        place_.assign(lines_.size(), -1);
        for (const std::size_t i : stale) place_[i] = std::ssize(groups), groups.push_back(lines_.group[i]);
        copy_ = reader_.copy(groups, team_);
    }

    template <class From>
    bool read(const From& from, const std::vector<std::int64_t>& place, std::span<const std::size_t> stale, const Aim& aim) {
        reads_ += static_cast<double>(stale.size()) * static_cast<double>(reader_.members());
        std::vector<std::span<const std::size_t>> jobs;
        for (std::size_t begin = 0, end; begin < stale.size(); begin = end) {
            const std::int64_t last = from.chunk_end(place[stale[begin]]);
            for (end = begin + 1; end < stale.size() && place[stale[end]] < last;) ++end;
            jobs.push_back(stale.subspan(begin, end - begin));
        }
        std::vector<char> news(jobs.size());
        team_.run(std::ssize(jobs), [&](std::int64_t j) {
            const auto job = static_cast<std::size_t>(j);
            news[job] = from.refresh(lines_, place.data(), jobs[job], aim);
        });
        return std::find(news.begin(), news.end(), true) != news.end();
    }

    const Reader& reader_;
    Lines<T>& lines_;
    bool all_;
    double radius_;
    Team& team_;
    double reads_ = 0.0;
    std::vector<std::int64_t> place_;  // of each line in the reader, or in the copy; -1: not there
    std::unique_ptr<GroupCopy> copy_;
};

}  // namespace normball
