// The three steps of the family, for the sanitizers: every dtype and layout, on buffers that end where the view does,
// against plain loops in long double.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "family/aggregate.hpp"
#include "family/thresholds.hpp"
#include "family/weighted.hpp"
#include "write.hpp"

namespace {

using namespace normball;

template <class T>
T element(double y) {
    if constexpr (std::is_same_v<T, Half>)
        return {static_cast<std::uint16_t>(round_down<Half>(std::fabs(y)).bits | (y < 0 ? Half::sign : 0))};
    else
        return T(static_cast<typename CapOf<T>::type>(y));
}

template <class T>
long double value(T y) {
    if constexpr (std::is_same_v<T, Half>)
        return y.bits & Half::sign ? -magnitude(y) : magnitude(y);
    else if constexpr (std::is_floating_point_v<T>)
        return y;
    else
        return y.real();
}

double epsilon(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-10 : dtype == Dtype::f32 || dtype == Dtype::c64 ? 0x1p-23 : 0x1p-52; }

// m groups of n members in a buffer of just the size that the strides span.
struct Layout {
    const char* name;
    std::int64_t group_stride, member_stride;
};
std::vector<Layout> layouts(std::int64_t m, std::int64_t n) {
    return {{"rows", n, 1}, {"strips", 1, m}, {"spaced", 2 * n + 1, 2}, {"rows apart", n + 3, 1}};
}

template <class T>
struct Problem {
    std::vector<T> in, out;
    View view;
    std::int64_t m, n, gs, ms;

    Problem(Dtype dtype, const Layout& layout, std::int64_t groups, std::int64_t members, const std::vector<double>& y)
        : m(groups), n(members), gs(layout.group_stride), ms(layout.member_stride) {
        in.resize(at((m - 1) * gs + (n - 1) * ms + 1)), out.resize(in.size());
        for (std::int64_t g = 0; g < m; ++g)
            for (std::int64_t i = 0; i < n; ++i) in[at(g * gs + i * ms)] = element<T>(y[at(g * n + i)]);
        view.dtype = dtype, view.in = in.data(), view.out = out.data();
        view.group.push({m, {gs, gs, 1}}), view.member.push({n, {ms, ms, 0}});
        view.group.fuse(), view.member.fuse();
    }
    long double y(std::int64_t g, std::int64_t i) const { return value(in[at(g * gs + i * ms)]); }
    long double x(std::int64_t g, std::int64_t i) const { return value(out[at(g * gs + i * ms)]); }
};

long double threshold(std::vector<long double> values, long double radius) {
    std::sort(values.begin(), values.end(), std::greater<>());
    long double sum = 0, best = -HUGE_VALL;
    for (std::size_t k = 0; k < values.size(); ++k) {
        sum += values[k];
        best = std::max(best, (sum - radius) / static_cast<long double>(k + 1));
    }
    return best;
}

template <class T>
void check_aggregates(Problem<T>& problem, Team& team) {
    for (const Aggregate kind : {Aggregate::sum, Aggregate::peak, Aggregate::norm2}) {
        std::vector<double> found(at(problem.m));
        aggregate(problem.view, kind, team, found.data());
        for (std::int64_t g = 0; g < problem.m; ++g) {
            long double sum = 0, peak = 0, square = 0;
            for (std::int64_t i = 0; i < problem.n; ++i) {
                const long double size = std::fabs(problem.y(g, i));
                sum += size, peak = std::max(peak, size), square += size * size;
            }
            const long double expected = kind == Aggregate::sum ? sum : kind == Aggregate::peak ? peak : std::sqrt(square);
            CHECK(std::fabs(found[at(g)] - expected) <= 4e-16L * expected);
        }
    }
}

template <bool Signed, class T>
void check_thresholds(Problem<T>& problem, double part, Team& team) {
    const double eps = epsilon(problem.view.dtype);
    std::vector<double> radii(at(problem.m)), taus(at(problem.m));
    std::vector<std::vector<long double>> groups;
    for (std::int64_t g = 0; g < problem.m; ++g) {
        std::vector<long double> values;
        long double sum = 0;
        for (std::int64_t i = 0; i < problem.n; ++i) {
            values.push_back(Signed ? problem.y(g, i) : std::fabs(problem.y(g, i)));
            sum += std::fabs(values.back());
        }
        radii[at(g)] = static_cast<double>(part * sum);
        groups.push_back(values);
    }
    const auto result = Thresholds<Signed>(problem.view, radii.data(), {Signed ? Write::shift : Write::shrink}, team, taus.data()).solve();
    CHECK(result.finite);
    for (std::int64_t g = 0; g < problem.m; ++g) {
        long double peak = 0, norm = 0, worst = 0;
        for (const long double v : groups[at(g)]) peak = std::max(peak, std::fabs(v));
        if (radii[at(g)] == 0.0) {
            for (std::int64_t i = 0; i < problem.n; ++i) CHECK(problem.x(g, i) == 0);
            continue;
        }
        long double tau = threshold(groups[at(g)], radii[at(g)]);
        if (!Signed) tau = std::max(tau, 0.0L);
        const long double scale = std::max<long double>(peak, radii[at(g)]);
        CHECK(std::fabs(taus[at(g)] - tau) <= 4e-15L * scale);
        for (std::int64_t i = 0; i < problem.n; ++i) {
            const long double y = problem.y(g, i);
            const long double x = Signed ? std::max(y - tau, 0.0L) : std::copysign(std::max(std::fabs(y) - tau, 0.0L), y);
            worst = std::max(worst, std::fabs(problem.x(g, i) - x)), norm += std::fabs(problem.x(g, i));
        }
        CHECK(worst <= (4 * eps + 4e-15L) * scale);
        CHECK(norm <= radii[at(g)] * (1 + 4 * static_cast<long double>(eps)));
    }
}

template <class T>
void check_writes(Problem<T>& problem, Team& team) {
    const double eps = epsilon(problem.view.dtype);
    std::vector<double> p(at(problem.m));
    for (const Write kind : {Write::shrink, Write::shift, Write::scale, Write::clip})
        for (const bool tiny : {false, true}) {
            if (kind == Write::shift && !std::is_floating_point_v<T>) continue;
            for (std::int64_t g = 0; g < problem.m; ++g) p[at(g)] = g % 3 == 0 ? 0.0 : g % 3 == 1 ? 0.37 : HUGE_VAL;
            if (kind == Write::scale) std::replace(p.begin(), p.end(), HUGE_VAL, 1.0);
            write(problem.view, kind, p.data(), tiny, team);
            for (std::int64_t g = 0; g < problem.m; ++g)
                for (std::int64_t i = 0; i < problem.n; ++i) {
                    const long double y = problem.y(g, i), q = p[at(g)], size = std::fabs(y);
                    const long double x = kind == Write::scale    ? y * q
                                          : kind == Write::shift  ? std::max(y - q, 0.0L)
                                          : kind == Write::shrink ? std::copysign(std::max(size - q, 0.0L), y)
                                                                  : std::copysign(std::min(size, q), y);
                    CHECK(std::fabs(problem.x(g, i) - x) <= 2 * eps * size);
                }
        }
}

template <class T>
void check(Dtype dtype, std::int64_t m, std::int64_t n, const std::vector<double>& y) {
    Team team(2);
    for (const Layout& layout : layouts(m, n)) {
        context = std::string(layout.name) + " " + std::to_string(m) + "x" + std::to_string(n) + " dtype " + std::to_string(static_cast<int>(dtype));
        Problem<T> problem(dtype, layout, m, n, y);
        check_aggregates(problem, team);
        for (const double part : {0.0, 1e-9, 0.1, 0.7, 2.0}) {
            check_thresholds<false>(problem, part, team);
            if constexpr (std::is_floating_point_v<T>) check_thresholds<true>(problem, part, team);
        }
        check_writes(problem, team);
    }
}

void check_weighted() {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    for (const std::size_t n : {1u, 2u, 9u, 100u}) {
        std::vector<Weighted> members;
        long double sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            members.push_back({std::fabs(normal(random)), i % 7 == 3 ? 0.0 : std::fabs(normal(random))});
            sum += members.back().size * members.back().weight;
        }
        for (const double part : {1e-6, 0.5, 0.99}) {
            auto copy = members;
            const double radius = static_cast<double>(part * sum), tau = weighted_root(copy, radius);
            long double excess = 0;
            for (const Weighted& y : members) excess += y.weight * std::max<long double>(y.size - tau * y.weight, 0);
            CHECK(std::fabs(excess - radius) <= 1e-13L * sum);
        }
    }
}

}  // namespace

int main() {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{1, 1}, {1, 7},   {7, 1},    {3, 17},  {17, 3}, {16, 16},
                                                                      {33, 65}, {65, 33}, {9, 300}, {300, 9}, {1, 70001}, {2060, 11}};
    for (const auto& [m, n] : sizes) {
        std::vector<double> y(at(m * n));
        for (double& v : y) v = normal(random);
        if (m > 2) std::fill_n(y.begin() + n, n, 0.5);  // a group of ties
        check<float>(Dtype::f32, m, n, y);
        check<double>(Dtype::f64, m, n, y);
        if (n > 1000 || m > 1000) continue;
        check<Half>(Dtype::f16, m, n, y);
        check<std::complex<float>>(Dtype::c64, m, n, y);
        check<std::complex<double>>(Dtype::c128, m, n, y);
    }
    context = "weighted";
    check_weighted();
    return verdict();
}
