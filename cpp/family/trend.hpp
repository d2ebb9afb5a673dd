// Where the threshold of a group may be, from those of a few others.
//
// Groups of one matrix tend to be alike but for their scale: in units of the mean magnitude, the threshold falls with the
// share of its sum that a group may keep, and close to linearly in the logarithm of that share; exactly so for the
// exponential distribution. What is guessed here decides how much is read and never what comes out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace normball {

class Trend {
public:
    // A group of n members that add up to `sum`, of which `above` exceed its threshold `tau`.
    void learn(double radius, double sum, std::int64_t n, double tau, std::int64_t above) {
        if (!(radius > 0.0 && radius < sum && above > 0)) return;
        const double unit = static_cast<double>(n) / sum, count = static_cast<double>(above);
        const double slope = radius / count * unit;  // of the threshold, by the logarithm of the radius
        const double margin = errors * std::sqrt(2.0 / count);  // how much of the slope it may be wrong by
        const Point point{std::log(radius / sum), tau * unit, slope, margin * slope};
        most_above_ = std::max(most_above_, count * std::exp(margin));
        points_.insert(std::upper_bound(points_.begin(), points_.end(), point, before), point);
    }

    // How many members of a group are likely to be above what is guessed, at most; n where nothing is known.
    std::int64_t most_above(std::int64_t n) const {
        return points_.empty() ? n : std::min(n, static_cast<std::int64_t>(2.0 * most_above_));
    }

    // A number that is likely to be below the threshold, but not by much; -inf where nothing is known.
    double below(double radius, double sum, std::int64_t n) const {
        if (points_.empty() || !(radius > 0.0 && radius < sum)) return -std::numeric_limits<double>::infinity();
        const Point here{std::log(radius / sum), 0.0, 0.0, 0.0};
        const auto right = std::lower_bound(points_.begin(), points_.end(), here, before);
        const auto left = right == points_.begin() ? right : right - 1;
        const Point& near = right == points_.end() ? *left : *right;
        double tau = near.tau + near.slope * (near.share - here.share);
        if (right != points_.end() && left->share < near.share)  // between the two
            tau = near.tau + (left->tau - near.tau) * (near.share - here.share) / (near.share - left->share);
        const double guess = (tau - std::max(near.margin, left->margin)) * sum / static_cast<double>(n);
        return std::isfinite(guess) ? guess : -std::numeric_limits<double>::infinity();  // the share may have vanished
    }

private:
    static constexpr double errors = 2.5;  // standard errors below what is expected
    struct Point {
        double share, tau, slope, margin;
    };
    static bool before(const Point& a, const Point& b) { return a.share < b.share; }
    std::vector<Point> points_;  // in order of their shares
    double most_above_ = 0.0;
};

}  // namespace normball
