// The threshold of a group: tau with sum_i max(|y_i| - tau, 0) = radius; or the same with y_i, where tau may be negative.
//
// The left side, the excess, is convex, decreasing and piecewise linear in tau. From a point left of the root Newton's
// method moves right, never past it, and a member that it leaves behind is never needed again: so each step runs on what
// the last has kept, and when none is lost the root is exact. (Michelot 1986; Condat 2016, Fast projection onto the
// simplex and the l1 ball; Perez, Barlaud, Fillatre, Regin 2020.) Excesses are sums of positive terms, in double, so
// that nothing cancels: a threshold is right to its own last bits, however small the radius.
//
// A long group is read once. A sample of it tells where the root may be; that read keeps the few members there, and adds
// up those above. An estimate that was off costs another read, and nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "family/aggregate.hpp"
#include "family/runs.hpp"
#include "parallel.hpp"
#include "rounding.hpp"
#include "view.hpp"

namespace normball {

// Norms are known to rounding. What exceeds its radius by no more than this is inside, and comes back bit for bit.
inline constexpr double inside = 1.0 + 2.0 * std::numeric_limits<double>::epsilon();

// Members that may be above the root; and, of those above all of these, their number and by how much they exceed `hi`.
template <class T, bool Signed>
struct Survivors {
    T* list;
    std::int64_t size;
    double hi = 0.0, excess = 0.0;
    std::int64_t above = 0;

    struct Line {
        double excess;
        std::int64_t count;
    };
    // Excess over t and number of the members above it. Forgets those that are not.
    Line keep_above(double t) {
        const T low = floor_to<T>(t);
        double sum = 0.0;
        size = family_kernels<T>().row_filter[Signed](list, size, low, list, &sum);
        sum -= static_cast<double>(size) * (t - static_cast<double>(low));
        if (above > 0) sum += excess + static_cast<double>(above) * (hi - t);
        return {sum, size + above};
    }
};

// The root, from t to its left, where the line is known. The result is such that the excess over it, as it comes out when
// rounded, is at most the radius. `members` are then those above it.
template <class T, bool Signed>
double root_from(Survivors<T, Signed>& members, double radius, double t, typename Survivors<T, Signed>::Line line) {
    for (std::int64_t before = -1;;) {
        const auto [excess, count] = line;
        if (count == 0) return t;
        const double next = t + (excess - radius) / static_cast<double>(count);
        const bool last = count == before || next <= t;
        if (!(next <= t)) t = next, line = members.keep_above(t);
        if (last) break;
        before = count;
    }
    while (line.count > 0 && line.excess > radius) {
        t = std::max(t + (line.excess - radius) / static_cast<double>(line.count),
                     std::nextafter(t, std::numeric_limits<double>::infinity()));
        line = members.keep_above(t);
    }
    // Members within rounding of the threshold are zero. Looked for where results are few enough to be looked at.
    std::int64_t left = line.count;
    for (double up = t; left <= 64 && left > 1 && up <= t + 4.0 * std::numeric_limits<double>::epsilon() * std::fabs(t);) {
        up = std::nextafter(up, std::numeric_limits<double>::infinity());
        const auto [excess, count] = members.keep_above(up);
        if (excess < radius * (1.0 - 2.0 * std::numeric_limits<double>::epsilon())) break;
        if (count < left) t = up, left = count;
    }
    return t;
}

// Where to look for the threshold of a group of n members, whose magnitudes add up to `sum`, but for rounding: from a point
// to its left, and, if that is further right, from a guess, which may be wrong.
template <bool Signed>
struct Start {
    double left, first;

    Start(double radius, double sum, std::int64_t n, double guess = -HUGE_VAL) {
        const auto count = static_cast<double>(n);
        // The root of the line through all the members. Their sum is not known with its signs: then, a point below them all.
        left = Signed ? -2.0 * (sum + radius / count) : std::max(((sum - radius) - units * sum) / count, 0.0);
        first = std::max(left, guess);
    }
    static constexpr double units = 8.0 * std::numeric_limits<double>::epsilon();
};

// The threshold of a group whose sum is above the radius. `list(t)` gives the members above t, perhaps in the same place as
// before; it is called with start.first, and once more if that was right of the root.
template <class T, bool Signed, class List>
double threshold_from(const Start<Signed>& start, std::int64_t n, double radius, List list, std::int64_t* above = nullptr) {
    constexpr double units = Start<Signed>::units;
    double t = start.first;
    Survivors<T, Signed> members = list(t);
    auto line = members.keep_above(t);
    if (t > start.left && line.excess < radius) {
        double back = start.left;
        if (line.count > 0) {  // a step from the right of the root lands on its left
            const double step = (line.excess - radius) / static_cast<double>(line.count);
            back = std::max(back, t + step - units * (std::fabs(t) - step));
        }
        members = list(t = back);
        line = members.keep_above(t);
    }
    if (Signed && t == start.left) {  // now the sum is known
        t += (line.excess - radius) / static_cast<double>(n) + 2.0 * units * start.left;
        line = members.keep_above(t);
    }
    const double root = root_from<T, Signed>(members, radius, t, line);
    if (above != nullptr) *above = members.size;
    return root;
}

// Lists the members of a group in `scratch`, which takes all of them and lane_limit more; `each` calls its argument with
// every run of them.
template <class T, bool Signed, class Each>
auto lister(Each each, T* scratch) {
    return [each, scratch](double t) {
        Survivors<T, Signed> members{scratch, 0};
        each([&](const T* y, std::int64_t k) {
            members.size += family_kernels<T>().row_keep[Signed](y, k, floor_to<T>(t), scratch + members.size);
        });
        return members;
    };
}

// The threshold of members in a row; 0 where their sum is not above the radius.
template <class T, bool Signed>
double threshold_of_row(const T* row, T* scratch, std::int64_t n, double radius, double sum) {
    if (!Signed && sum <= radius * inside) return 0.0;
    return threshold_from<T, Signed>(Start<Signed>(radius, sum, n), n, radius,
                                     lister<T, Signed>([&](auto f) { f(row, n); }, scratch));
}

// Far from 1 the sums of a group might overflow and its quotients vanish.
inline bool in_range(double sum, bool single) {
    return sum == 0.0 || (sum >= 0x1p-800 && sum <= (single ? 0x1p120 : 0x1p800));
}

// A group that is out of range, from a scaled copy; NaN where it is not finite.
template <bool Signed>
double scaled_threshold(const View& view, std::int64_t group, double radius) {
    const std::int64_t n = view.members();
    std::vector<double> row(static_cast<std::size_t>(n)), scratch(static_cast<std::size_t>(n + lane_limit));
    const auto load = [&](double scale) {
        if constexpr (Signed)
            load_values(view, group, 0, n, scale, row.data());
        else
            load_magnitudes(view, group, 0, n, scale, row.data());
    };
    load(0.25);
    double peak = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
        if (!std::isfinite(row[static_cast<std::size_t>(i)])) return NAN;
        peak = std::max(peak, std::fabs(row[static_cast<std::size_t>(i)]));
    }
    if (radius == 0.0) return HUGE_VAL;
    if (peak == 0.0 && !Signed) return 0.0;
    const int exponent = std::ilogb(std::max(peak, Signed ? 0.25 * radius : 0.0));
    const double scale = std::ldexp(1.0, -std::clamp(exponent, -1000, 1000));
    load(scale);
    const double sum = family_kernels<double>().row_total[0](row.data(), n);
    const double tau = threshold_of_row<double, Signed>(row.data(), scratch.data(), n, radius * scale, sum);
    // Dividing by a power of two is exact unless the result is subnormal; then it must not round down.
    const double back = tau / scale;
    return back * scale < tau ? std::nextafter(back, HUGE_VAL) : back;
}

// ---- one long group ----------------------------------------------------------------------------------------------

// Where the root may be. `lower` and `upper` are bounds; the excess over `anchor` is known where a read has told it.
struct Bracket {
    double lower, upper, anchor = 0.0, excess = -1.0;
};

template <class R>
class LongGroup {
public:
    using T = typename R::T;

    LongGroup(const R& runs, std::int64_t group, double radius, Team& team)
        : runs_(runs), group_(group), n_(runs.members()), radius_(radius), team_(team) {}

    // False where the group must be scaled first. Counts its reads.
    bool solve(double& tau, double& reads) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        Bracket root{R::is_signed ? -infinity : 0.0, infinity};
        take_sample();
        aim(root);
        for (int round = 1;; ++round) {
            read();
            reads += 1.0;
            if (!in_range(total_, sizeof(T) == sizeof(float))) return false;
            if (radius_ == 0.0) return tau = infinity, true;
            if (total_ == 0.0 && !R::is_signed) return tau = 0.0, true;
            const double lo = static_cast<double>(lo_), hi = static_cast<double>(hi_);
            const auto at_lo = survivors().keep_above(lo);  // all that was found is above it
            if (!R::is_signed && lo_ == T(0) && at_lo.excess <= radius_ * inside) return tau = 0.0, true;
            // Bounds are right to rounding. Where they contradict each other, rounding is all that is left.
            if (at_lo.excess < radius_) {  // the root is further left; a step from its right lands on its left
                if (lo <= root.lower) return tau = lo, true;
                const double step = at_lo.count > 0 ? (at_lo.excess - radius_) / static_cast<double>(at_lo.count) : -infinity;
                const double least = R::is_signed ? -total_ - radius_ : 0.0;
                root.lower = std::max({std::min(lo + step, std::nextafter(lo, -infinity)), root.lower, least});
                root.upper = root.anchor = lo, root.excess = at_lo.excess;
            } else if (above_ > 0 && excess_ > radius_) {  // further right
                root.lower = hi + (excess_ - radius_) / static_cast<double>(above_);
                if (hi >= root.upper) return tau = root.lower, true;
                root.anchor = hi, root.excess = excess_;
            } else {
                auto members = survivors();
                tau = root_from<T, R::is_signed>(members, radius_, lo, at_lo);
                return true;
            }
            if (!R::is_signed && root.lower <= 0.0) {
                lo_ = hi_ = T(0);  // a point of the ball, perhaps: only add up
            } else if (round < most_aims) {
                aim(root);
            } else {
                lo_ = floor_to<T>(root.lower);
                hi_ = std::numeric_limits<T>::max();
            }
        }
    }

private:
    static constexpr std::int64_t clusters = 512, cluster = 64, sampled = clusters * cluster;
    static constexpr double errors = 3.5;  // standard errors on either side of an estimate
    static constexpr int most_aims = 4;    // then all that may be above the root is kept

    static T round_down_or_max(double x) {
        return x < static_cast<double>(std::numeric_limits<T>::max()) ? floor_to<T>(x) : std::numeric_limits<T>::max();
    }

    Survivors<T, R::is_signed> survivors() {
        return {found_.data(), std::ssize(found_) - lane_limit, static_cast<double>(hi_), excess_, above_};
    }

    // Members spread over the group.
    void take_sample() {
        sample_.reserve(sampled + lane_limit);
        for (std::int64_t c = 0; c < clusters; ++c)
            runs_.each(group_, c * (n_ - cluster) / (clusters - 1), cluster,
                       [&](const T* y, std::int64_t n) { sample_.insert(sample_.end(), y, y + n); });
        if (!R::is_signed)
            for (T& y : sample_) y = std::fabs(y);
        double rough = 0.0;
        kernels<T>().row_stats(sample_.data(), sampled, sampled, 1, 0, &rough, &sample_peak_, {});
        const double sum = sample_sum_ = family_kernels<T>().row_total[0](sample_.data(), sampled);
        usable_ = radius_ > 0.0 && sum > 0.0 && in_range(sum, sizeof(T) == sizeof(float));
        sample_.resize(sampled + lane_limit);
    }

    // Excess of the sample over t.
    double sample_excess(double t) {
        scratch_ = sample_;
        return Survivors<T, R::is_signed>{scratch_.data(), sampled}.keep_above(t).excess;
    }

    // Lists those of the sample that are above t, in scratch_.
    std::int64_t sampled_above(T t) {
        scratch_.resize(sample_.size());
        return family_kernels<T>().row_keep[R::is_signed](sample_.data(), sampled, t, scratch_.data());
    }

    // Chooses the window of the next read. The sample is given its share of the radius; or, where the excess over some
    // anchor is known, of what is missing from there, which few large members cannot spoil.
    void aim(const Bracket& root) {
        lo_ = hi_ = T(0);  // adds up, keeps none
        if (!usable_) {
            if (root.excess >= 0.0) lo_ = floor_to<T>(root.lower), hi_ = round_down_or_max(root.upper);
            return;
        }
        const double part = static_cast<double>(sampled) / static_cast<double>(n_);
        const bool anchored = root.excess >= 0.0;
        const double share = anchored ? sample_excess(root.anchor) + (radius_ - root.excess) * part : radius_ * part;
        double tau = sample_peak_;  // all of the sample lies left of the root
        if (share > 0.0) {
            scratch_.resize(sample_.size());
            tau = threshold_of_row<T, R::is_signed>(sample_.data(), scratch_.data(), sampled, share, sample_sum_);
            if (tau == 0.0 && !R::is_signed && !anchored) return;  // a point of the ball, it seems
        }
        tau = std::clamp(tau, root.lower, root.upper);
        // The standard error: that of the mean over the slope.
        const double from = anchored ? std::min(root.anchor, tau) : tau;
        const double to = anchored ? std::max(root.anchor, tau) : std::numeric_limits<double>::infinity();
        double count = 0.0, sum = 0.0, square = 0.0;
        for (std::int64_t i = sampled_above(floor_to<T>(from)); i-- > 0;) {
            const double y = static_cast<double>(scratch_[static_cast<std::size_t>(i)]);
            const double z = std::max(std::min(y, to) - from, 0.0);
            count += y > tau, sum += z, square += z * z;
        }
        const double spread = std::sqrt(std::max(square - sum * sum / static_cast<double>(sampled), 0.0));
        double error = errors * spread / std::max(count, 1.0) + 1e-9 * std::fabs(tau);
        // A window that would hold much of the group is not worth filling: then a narrow one, and a better aim after it.
        for (std::int64_t most = sampled / 16;; most = sampled / 128, error *= 0.125) {
            lo_ = floor_to<T>(std::max(tau - error, root.lower));
            hi_ = round_down_or_max(std::min(tau + error, root.upper));
            if (sampled_above(lo_) - sampled_above(hi_) <= most || error < 1e-7 * std::fabs(tau)) break;
        }
        // Where few are above, all of them are kept, and no root is too far right.
        if (sampled_above(lo_) <= sampled / 32) {
            if (sampled_above(lo_) < sampled / 256) {
                scratch_ = sample_;
                scratch_.resize(sampled);
                const auto few = scratch_.begin() + sampled / 256;
                std::nth_element(scratch_.begin(), few, scratch_.end(), std::greater<T>());
                lo_ = std::max(std::min(lo_, *few), floor_to<T>(root.lower));
            }
            hi_ = round_down_or_max(root.upper);
        }
        if (hi_ <= lo_) hi_ = std::nextafter(lo_, std::numeric_limits<T>::max());
    }

    // Reads the group: what lies in the window, and sums over what lies above.
    void read() {
        const std::int64_t pieces = (n_ + piece_elements - 1) / piece_elements;
        struct Piece {
            std::vector<T> found;
            std::vector<double> excess;
            double total = 0.0;
            std::int64_t above = 0;
        };
        std::vector<Piece> parts(static_cast<std::size_t>(pieces));
        team_.run(pieces, [&](std::int64_t p) {
            Piece& part = parts[static_cast<std::size_t>(p)];
            const std::int64_t first = p * piece_elements;
            alignas(64) T block[block_elements + lane_limit];
            runs_.each(group_, first, std::min(piece_elements, n_ - first), [&](const T* y, std::int64_t n) {
                for (std::int64_t i = 0; i < n; i += block_elements) {
                    const std::int64_t found = family_kernels<T>().row_window[R::is_signed](
                        y + i, std::min(block_elements, n - i), lo_, hi_, block, &part.excess.emplace_back(0.0),
                        &part.above, &part.total);
                    part.found.insert(part.found.end(), block, block + found);
                }
            });
        });
        std::vector<double> excess;
        std::size_t size = 0;
        above_ = 0, total_ = 0.0;
        for (const Piece& part : parts) {
            excess.insert(excess.end(), part.excess.begin(), part.excess.end());
            above_ += part.above, total_ += part.total;
            size += part.found.size();
        }
        excess_ = careful_sum(excess);
        found_.clear();
        found_.reserve(size + lane_limit);
        for (const Piece& part : parts) found_.insert(found_.end(), part.found.begin(), part.found.end());
        found_.resize(size + lane_limit);  // room for the kernels
    }
    static constexpr std::int64_t block_elements = 2048;

    const R& runs_;
    std::int64_t group_, n_;
    double radius_;
    Team& team_;
    std::vector<T> sample_, scratch_;
    double sample_sum_ = 0.0, sample_peak_ = 0.0;
    bool usable_ = false;
    T lo_ = T(0), hi_ = T(0);
    std::vector<T> found_;
    double excess_ = 0.0, total_ = 0.0;
    std::int64_t above_ = 0;
};

}  // namespace normball
