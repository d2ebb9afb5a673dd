// The core as its callers see it, views in and caps out, for the sanitizers: every dtype, memory layout and method, on
// buffers that end where the view does. Caps are held against an oracle (sort, bisection in long double) or, for large
// problems, against the optimality conditions; entries against sign(y) * min(|y|, cap). With the argument `threads` only
// the part that uses several threads runs.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "l1inf/project.hpp"
#include "write.hpp"

namespace {

using namespace normball;

void say(const char* text) {
    if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) _exit(1);
}

// A hang is a failure. Nothing but system calls is safe in a signal handler.
void give_up(int) {
    say("hangs: ");
    say(context.c_str());
    say("\n0 passed, 1 failed\n");
    _exit(1);
}

const char* const dtype_names[] = {"f16", "f32", "f64", "c64", "c128"};
const Dtype dtypes[] = {Dtype::f16, Dtype::f32, Dtype::f64, Dtype::c64, Dtype::c128};
const char* const method_names[] = {"newton", "inverse_total_order", "total_order", "active_set", "semismooth_newton"};
constexpr int method_count = 5;

// ---- layouts ----

// One axis of the user's array; strides count elements and may be negative.
struct AxisSpec {
    std::int64_t extent;
    bool member;
    std::int64_t in, out;
};
using Layout = std::vector<AxisSpec>;

// The lowest offset that the axes reach, and how many elements lie between it and the highest.
std::pair<std::int64_t, std::int64_t> span(const Layout& layout, std::int64_t AxisSpec::*stride) {
    std::int64_t low = 0, high = 0;
    for (const AxisSpec& axis : layout) {
        const std::int64_t reach = (axis.extent - 1) * axis.*stride;
        (reach < 0 ? low : high) += reach;
    }
    return {low, high - low + 1};
}

std::int64_t count(const Layout& layout, bool member) {
    std::int64_t product = 1;
    for (const AxisSpec& axis : layout) product *= axis.member == member ? axis.extent : 1;
    return product;
}

// Offset of the index-th group, or member, in C order.
std::int64_t offset(const Layout& layout, bool member, std::int64_t index, std::int64_t AxisSpec::*stride) {
    std::int64_t sum = 0;
    for (auto axis = layout.rbegin(); axis != layout.rend(); ++axis) {
        if (axis->member != member) continue;
        sum += index % axis->extent * ((*axis).*stride);
        index /= axis->extent;
    }
    return sum;
}

Layout rows(std::int64_t m, std::int64_t n) { return {{m, false, n, n}, {n, true, 1, 1}}; }
Layout strips(std::int64_t m, std::int64_t n) { return {{n, true, m, m}, {m, false, 1, 1}}; }

// ---- elements ----

template <class T>
T element(std::complex<double> y) {
    if constexpr (std::is_same_v<T, Half>) {
        const std::uint16_t size = round_down<Half>(std::fabs(y.real())).bits;
        return {static_cast<std::uint16_t>(size | (std::signbit(y.real()) ? Half::sign : 0))};
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(y.real());
    } else {
        return T(y);
    }
}

std::complex<long double> value(Half y) {
    const int exponent = y.bits >> 10 & 31, fraction = y.bits & 1023;
    const long double size = exponent == 0 ? std::ldexp(1.0L * fraction, -24) : std::ldexp(1024.0L + fraction, exponent - 25);
    return {y.bits & Half::sign ? -size : size, 0.0L};
}
std::complex<long double> value(float y) { return {y, 0.0L}; }
std::complex<long double> value(double y) { return {y, 0.0L}; }
template <class R>
std::complex<long double> value(std::complex<R> y) {
    return {y.real(), y.imag()};
}

long double epsilon_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::f16: return 0x1p-10L;
        case Dtype::f32:
        case Dtype::c64: return 0x1p-23L;
        default: return 0x1p-52L;
    }
}
// The distance between neighbours below the normal range.
long double smallest_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::f16: return 0x1p-24L;
        case Dtype::f32:
        case Dtype::c64: return 0x1p-149L;
        default: return 0x1p-1074L;
    }
}

// ---- one problem: a matrix in a buffer that holds no more than the view reaches ----

using Values = std::vector<std::complex<double>>;  // group after group

template <class T>
class Problem {
public:
    Problem(Dtype dtype, Layout layout, const Values& y) : dtype_(dtype), layout_(std::move(layout)) {
        m_ = count(layout_, false), n_ = count(layout_, true);
        in_.assign(at(span(layout_, &AxisSpec::in).second), filler());
        for (std::int64_t g = 0; g < m_; ++g)
            for (std::int64_t i = 0; i < n_; ++i) in(g, i) = element<T>(y[at(g * n_ + i)]);
        refill();
    }

    std::int64_t m() const { return m_; }
    std::int64_t n() const { return n_; }
    T& in(std::int64_t g, std::int64_t i) { return in_[place(g, i, &AxisSpec::in)]; }
    const T& in(std::int64_t g, std::int64_t i) const { return in_[place(g, i, &AxisSpec::in)]; }
    const T& out(std::int64_t g, std::int64_t i) const { return out_[place(g, i, &AxisSpec::out)]; }
    void refill() { out_.assign(at(span(layout_, &AxisSpec::out).second), filler()); }

    // Elements of the output that the view must not have written.
    bool gaps_untouched() const {
        std::vector<bool> used(out_.size());
        for (std::int64_t g = 0; g < m_; ++g)
            for (std::int64_t i = 0; i < n_; ++i) used[place(g, i, &AxisSpec::out)] = true;
        const T fill = filler();
        for (std::size_t j = 0; j < out_.size(); ++j)
            if (!used[j] && std::memcmp(&out_[j], &fill, sizeof(T)) != 0) return false;
        return true;
    }

    View view() { return view_of(in_.data(), out_.data(), &AxisSpec::out); }
    View in_place() { return view_of(in_.data(), in_.data(), &AxisSpec::in); }

    std::vector<long double> magnitudes() const {
        std::vector<long double> all;
        all.reserve(at(m_ * n_));
        for (std::int64_t g = 0; g < m_; ++g)
            for (std::int64_t i = 0; i < n_; ++i) {
                const std::complex<long double> y = value(in(g, i));
                all.push_back(y.imag() == 0.0L ? std::fabs(y.real()) : std::hypot(y.real(), y.imag()));
            }
        return all;
    }
    // The caps of a solution stand in the view's order; this is the way from the user's.
    static std::vector<std::int64_t> order(const View& view) {
        std::vector<std::int64_t> of(at(view.groups()));
        for (std::int64_t g = 0; g < view.groups(); ++g) of[at(view.info + view.group.at(g).info)] = g;
        return of;
    }

private:
    static T filler() { return element<T>({-77.0, 77.0}); }
    std::size_t place(std::int64_t g, std::int64_t i, std::int64_t AxisSpec::*stride) const {
        return at(offset(layout_, false, g, stride) + offset(layout_, true, i, stride) - span(layout_, stride).first);
    }

    View view_of(const T* in, T* out, std::int64_t AxisSpec::*out_stride) const {
        View view;
        view.dtype = dtype_;
        std::int64_t info = m_;
        for (const AxisSpec& axis : layout_) {
            info /= axis.member ? 1 : axis.extent;
            (axis.member ? view.member : view.group)
                .push({axis.extent, {axis.in, axis.*out_stride, axis.member ? 0 : info}});
        }
        Offset origin = view.group.fuse();
        origin += view.member.fuse();
        view.in = in - span(layout_, &AxisSpec::in).first + origin.in;
        view.out = out - span(layout_, out_stride).first + origin.out;
        view.info = origin.info;
        return view;
    }

    Dtype dtype_;
    Layout layout_;
    std::int64_t m_ = 1, n_ = 1;
    std::vector<T> in_, out_;
};

// ---- the oracle ----

// Caps from theta bisected between 0 and the largest sum.
std::vector<long double> oracle(const std::vector<long double>& y, std::int64_t m, std::int64_t n, long double radius) {
    std::vector<long double> z = y, s(y.size());
    long double low = 0.0L, high = 0.0L;
    for (std::int64_t g = 0; g < m; ++g) {
        std::sort(z.begin() + g * n, z.begin() + (g + 1) * n, std::greater<>());
        std::partial_sum(z.begin() + g * n, z.begin() + (g + 1) * n, s.begin() + g * n);
        high = std::max(high, s[at((g + 1) * n - 1)]);
    }
    const auto cap = [&](std::int64_t g, long double theta) {
        const long double *zg = z.data() + g * n, *sg = s.data() + g * n;
        if (sg[n - 1] <= theta) return 0.0L;
        std::int64_t k = 1;  // the largest k whose last member lies above the cap that the k members give
        for (std::int64_t end = n + 1; end - k > 1;) {
            const std::int64_t middle = k + (end - k) / 2;
            (sg[middle - 1] - static_cast<long double>(middle) * zg[middle - 1] < theta ? k : end) = middle;
        }
        return (sg[k - 1] - theta) / static_cast<long double>(k);
    };
    for (int step = 0; step < 90 && high - low > 1e-19L * high; ++step) {
        const long double theta = low + (high - low) / 2;
        long double total = 0.0L;
        for (std::int64_t g = 0; g < m; ++g) total += cap(g, theta);
        (total > radius ? low : high) = theta;
    }
    std::vector<long double> caps;
    for (std::int64_t g = 0; g < m; ++g) caps.push_back(cap(g, high));
    return caps;
}

// ---- the checks ----

template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}
bool same_bits(const Array<double>& a, const Array<double>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return same_bits(x, y); });
}
bool same_bits(const Solution& a, const Solution& b) {
    return same_bits(a.theta, b.theta) && same_bits(a.mu, b.mu) && a.clipped == b.clipped && a.interior == b.interior;
}

// How far caps may be off, next to the largest magnitude: sums of float are rounded to float, the rest is double.
long double tolerance_of(Dtype dtype) { return dtype == Dtype::f32 ? 4e-6L : 1e-12L; }

// Magnitudes, norm and largest magnitude of a problem, computed once for all its radii and methods.
struct Facts {
    std::vector<long double> y;
    long double norm = 0.0L, largest = 0.0L;

    Facts(std::vector<long double> magnitudes, std::int64_t n) : y(std::move(magnitudes)) {
        for (std::size_t from = 0; from < y.size(); from += at(n)) {
            const long double peak = *std::max_element(y.begin() + static_cast<std::ptrdiff_t>(from),
                                                       y.begin() + static_cast<std::ptrdiff_t>(from) + n);
            norm += peak, largest = std::max(largest, peak);
        }
    }
};

// Caps against what they must be. `expected` may be empty: then the optimality conditions decide.
template <class T>
void check_solution(Problem<T>& problem, Dtype dtype, const Facts& facts, double radius, const Solution& solution,
                    const std::vector<long double>& expected) {
    const View view = problem.view();
    const std::vector<std::int64_t> order = Problem<T>::order(view);
    const std::int64_t m = problem.m(), n = problem.n();
    CHECK(std::ssize(solution.mu) == m && std::ssize(solution.clipped) == m && solution.theta >= 0.0);
    const long double slack = tolerance_of(dtype) * facts.largest + smallest_of(dtype);
    bool near = true, in_range = true, counts = true, optimal = true;
    long double total = 0.0L, rounding = 0.0L;
    for (std::int64_t g = 0; g < m; ++g) {
        const long double* y = facts.y.data() + g * n;
        const long double mu = solution.mu[at(order[at(g)])];
        const std::int64_t clipped = solution.clipped[at(order[at(g)])];
        const long double peak = *std::max_element(y, y + n), ulp = epsilon_of(dtype) * mu + smallest_of(dtype);
        total += mu, rounding += ulp;
        in_range = in_range && mu >= 0.0L && mu <= peak + slack;
        if (!expected.empty()) near = near && std::fabs(mu - expected[at(g)]) <= slack + ulp;
        long double above = 0.0L, sum = 0.0L;
        std::int64_t k = 0, fewest = 0, most = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            sum += y[i], k += y[i] > mu, above += std::max(y[i] - mu, 0.0L);
            fewest += y[i] > mu + slack + ulp, most += y[i] >= mu - slack - ulp;
        }
        if (solution.interior) {
            counts = counts && clipped == 0;
        } else if (mu > 0.0L) {
            counts = counts && fewest <= clipped && clipped <= most;
            const long double per_cap = static_cast<long double>(std::max<std::int64_t>(most, 1));
            optimal = optimal && std::fabs(above - solution.theta) <= per_cap * (slack + ulp);
        } else {
            counts = counts && clipped == 0;
            optimal = optimal && sum <= solution.theta + static_cast<long double>(n) * (slack + smallest_of(dtype));
        }
    }
    CHECK(near);
    CHECK(in_range);
    CHECK(counts);
    CHECK(optimal);
    if (solution.interior) {
        CHECK(facts.norm <= radius * (1.0L + 0x1p-50L));
        CHECK(solution.theta == 0.0);
    } else {
        CHECK(total <= radius * (1.0L + 0x1p-51L));
        CHECK(total >= radius * (1.0L - 1e-12L) - rounding);
    }
}

// What `apply` wrote, entry by entry.
template <class T, class Out>
bool clipped_right(const Problem<T>& before, const Solution& solution, const std::vector<std::int64_t>& order, Out out) {
    for (std::int64_t g = 0; g < before.m(); ++g) {
        const double cap = solution.mu[at(order[at(g)])];
        for (std::int64_t i = 0; i < before.n(); ++i) {
            const std::complex<long double> y = value(before.in(g, i)), x = value(out(g, i));
            if constexpr (std::is_same_v<T, Half> || std::is_floating_point_v<T>) {
                const long double size = std::min(std::fabs(y.real()), static_cast<long double>(cap));
                if (x.real() != (y.real() < 0.0L ? -size : size)) return false;
            } else {
                using R = typename T::value_type;
                const long double modulus = std::hypot(y.real(), y.imag());
                const long double ulp = 4.0L * std::numeric_limits<R>::epsilon(), least = std::numeric_limits<R>::denorm_min();
                const std::complex<long double> wanted = modulus <= cap ? y : y * (cap / modulus);
                if (std::abs(x - wanted) > ulp * cap + 2.0L * least) return false;
                if (modulus < cap * (1.0L - ulp) && !same_bits(before.in(g, i), out(g, i))) return false;
            }
        }
    }
    return true;
}

// From the matrix, and from the copy of its groups where the method has made one.
template <class T>
void check_apply(Problem<T>& problem, const Solution& solution, Team& team) {
    for (const bool from_copy : {false, true}) {
        const auto write = [&](const View& view) {
            from_copy ? apply(view, solution, team) : apply(view, solution.mu.data(), team);
        };
        const View view = problem.view();
        problem.refill();
        write(view);
        const auto order = Problem<T>::order(view);
        CHECK(clipped_right(problem, solution, order, [&](std::int64_t g, std::int64_t i) { return problem.out(g, i); }));
        CHECK(problem.gaps_untouched());
        Problem<T> changed = problem;
        write(changed.in_place());
        CHECK(clipped_right(problem, solution, order, [&](std::int64_t g, std::int64_t i) { return changed.in(g, i); }));
    }
}

constexpr int newton_only = 1;
constexpr std::int64_t oracle_limit = 250000;  // elements

// All of it for one matrix, layout and list of radii, which are fractions of the norm.
template <class T>
void check_typed(Dtype dtype, const Layout& layout, const Values& y, const std::vector<double>& fractions, int methods) {
    Problem<T> problem(dtype, layout, y);
    const Facts facts(problem.magnitudes(), problem.n());
    const std::string outer = context + ", " + dtype_names[static_cast<int>(dtype)];
    Team alone(1), four(4);
    for (const double fraction : fractions) {
        const double radius = static_cast<double>(fraction * facts.norm);
        std::vector<long double> expected;
        if (problem.m() * problem.n() <= oracle_limit && radius > 0.0) {
            if (facts.norm > radius) expected = oracle(facts.y, problem.m(), problem.n(), radius);
        }
        for (int method = 0; method < methods; ++method) {
            context = outer + ", " + std::to_string(fraction) + " of the norm, " + method_names[method];
            Solution solution;
            CHECK(project(problem.view(), radius, static_cast<Method>(method), nullptr, alone, solution));
            if (radius == 0.0) {
                CHECK(std::all_of(solution.mu.begin(), solution.mu.end(), [](double cap) { return cap == 0.0; }));
            } else {
                check_solution(problem, dtype, facts, radius, solution, expected);
            }
            if (method > 0) continue;
            check_apply(problem, solution, alone);
            Solution again;
            CHECK(project(problem.view(), radius, static_cast<Method>(method), nullptr, four, again));
            CHECK(same_bits(solution, again));
            check_apply(problem, again, four);
        }
    }
    context = outer;
}

void check(Dtype dtype, const Layout& layout, const Values& y, const std::vector<double>& fractions,
           int methods = method_count) {
    const std::string outer = context;
    switch (dtype) {
        case Dtype::f16: check_typed<Half>(dtype, layout, y, fractions, methods); break;
        case Dtype::f32: check_typed<float>(dtype, layout, y, fractions, methods); break;
        case Dtype::f64: check_typed<double>(dtype, layout, y, fractions, methods); break;
        case Dtype::c64: check_typed<std::complex<float>>(dtype, layout, y, fractions, methods); break;
        case Dtype::c128: check_typed<std::complex<double>>(dtype, layout, y, fractions, methods); break;
    }
    context = outer;
}

// ---- the data ----

const char* const distributions[] = {"normal", "cauchy", "ties", "sparse", "equal groups", "constant", "near ties", "scales"};

Values draw(std::int64_t m, std::int64_t n, const std::string& distribution, std::uint64_t seed, double scale = 1.0) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::normal_distribution<double> normal;
    std::cauchy_distribution<double> cauchy;
    Values y(at(m * n));
    for (std::int64_t g = 0; g < m; ++g)
        for (std::int64_t i = 0; i < n; ++i) {
            double size = 0.0;
            if (distribution == "normal") size = normal(random);
            if (distribution == "cauchy") size = std::clamp(cauchy(random), -60000.0, 60000.0);
            if (distribution == "ties") size = std::floor(4.0 * uniform(random));
            if (distribution == "sparse") size = uniform(random) < 0.05 ? normal(random) : 0.0;
            if (distribution == "equal groups") size = g == 0 ? normal(random) : y[at(i)].real() / scale;
            if (distribution == "constant") size = 0.1;
            if (distribution == "near ties") size = 1.0 + 0x1p-22 * std::floor(4.0 * uniform(random));
            if (distribution == "scales") size = std::ldexp(normal(random), static_cast<int>(10 - 2 * (g % 10)));
            if (uniform(random) < 0.5) size = -size;
            y[at(g * n + i)] = {size * scale, distribution == "normal" || distribution == "cauchy" ? scale * normal(random) : 0.0};
        }
    return y;
}

// ---- the cases ----

// Sizes around the widths of registers, of blocks of registers and of short groups.
void check_sizes() {
    const std::int64_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 255, 256, 257, 300};
    const std::int64_t others[] = {1, 3, 8, 17, 33, 70};
    std::uint64_t seed = 1;
    for (const std::int64_t size : sizes)
        for (const std::int64_t other : others)
            for (const bool members : {false, true}) {
                const std::int64_t m = members ? other : size, n = members ? size : other;
                const char* distribution = distributions[seed % std::size(distributions)];
                const Values y = draw(m, n, distribution, ++seed);
                const double fraction = std::vector<double>{0.9, 0.5, 0.1, 0.01}[seed % 4];
                for (const bool side_by_side : {false, true}) {
                    context = std::to_string(m) + " x " + std::to_string(n) + " " + distribution +
                              (side_by_side ? ", strips" : ", rows");
                    const Layout layout = side_by_side ? strips(m, n) : rows(m, n);
                    const int methods = seed % 3 == 0 ? method_count : newton_only;
                    check(Dtype::f32, layout, y, {fraction}, methods);
                    check(Dtype::f64, layout, y, {fraction}, methods);
                }
            }
}

std::vector<std::pair<const char*, Layout>> layouts(std::int64_t m, std::int64_t n) {
    return {
        {"rows", rows(m, n)},
        {"strips", strips(m, n)},
        {"rows apart", {{m, false, n + 3, n + 5}, {n, true, 1, 1}}},
        {"strips apart", {{n, true, m + 3, m + 5}, {m, false, 1, 1}}},
        {"steps of 3 and 5", {{m, false, 3 * n, 5 * n}, {n, true, 3, 5}}},
        {"side by side, steps of 3 and 5", {{n, true, 3 * m, 5 * m}, {m, false, 3, 5}}},
        {"members backwards", {{m, false, n, n}, {n, true, -1, -1}}},
        {"groups backwards", {{m, false, -n, -n}, {n, true, 1, 1}}},
        {"all backwards, side by side", {{n, true, -m, -m}, {m, false, -1, -1}}},
        {"backwards in, forwards out", {{m, false, -n, n}, {n, true, -1, 1}}},
        {"forwards in, backwards out", {{m, false, n, -n}, {n, true, 1, -1}}},
        {"rows in, strips out", {{m, false, n, 1}, {n, true, 1, m}}},
        {"strips in, rows out", {{m, false, 1, n}, {n, true, m, 1}}},
        // Two member axes and two group axes, in C order, with the inner pair exchanged, and with room between.
        {"g m m", {{m, false, 6 * n, 6 * n}, {6, true, n, n}, {n, true, 1, 1}}},
        {"m g m", {{6, true, m * n, m * n}, {m, false, n, n}, {n, true, 1, 1}}},
        {"m m g", {{6, true, m * n, m * n}, {n, true, m, m}, {m, false, 1, 1}}},
        {"m g m g", {{2, true, 3 * m * n, 3 * m * n}, {3, false, m * n, m * n}, {n, true, m, m}, {m, false, 1, 1}}},
        {"g m g m", {{3, false, 2 * m * n, 2 * m * n}, {2, true, m * n, m * n}, {m, false, n, n}, {n, true, 1, 1}}},
        {"m g m g, apart", {{2, true, 3 * (m + 1) * n, 1}, {3, false, (m + 1) * n, 2 * m * n}, {n, true, m + 1, 2 * m}, {m, false, 1, 2}}},
    };
}

void check_layouts() {
    std::uint64_t seed = 100;
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{5, 11}, {19, 37}, {70, 9}, {8, 300}, {1, 40}, {40, 1}})
        for (const auto& [name, layout] : layouts(m, n))
            for (const Dtype dtype : dtypes) {
                context = std::string(name) + ", " + std::to_string(m) + " x " + std::to_string(n);
                const char* distribution = ++seed % 2 == 0 ? "normal" : "ties";
                const Values y = draw(count(layout, false), count(layout, true), distribution, seed);
                check(dtype, layout, y, {seed % 3 == 0 ? 0.05 : 0.6}, seed % 5 == 0 ? method_count : newton_only);
            }
}

void check_radii() {
    const std::vector<double> fractions = {0.0,  1e-300, 1e-30, 1e-15, 1e-9, 1e-6, 1e-3,      0.03,           0.2,
                                           0.45, 0.7,    0.9,   0.99,  0.999999, 1.0 - 1e-12, 1.0 - 0x1p-53, 1.0, 2.0};
    std::uint64_t seed = 200;
    for (const char* distribution : distributions)
        for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{13, 21}, {3, 270}, {90, 7}, {1, 1}})
            for (const bool side_by_side : {false, true})
                for (const Dtype dtype : dtypes) {
                    if (m != 13 && dtype != Dtype::f32 && dtype != Dtype::f64) continue;
                    context = std::string(distribution) + ", " + std::to_string(m) + " x " + std::to_string(n);
                    check(dtype, side_by_side ? strips(m, n) : rows(m, n), draw(m, n, distribution, ++seed), fractions);
                }
}

// Near the ends of the range of the dtype, where sums overflow or quotients are subnormal.
void check_magnitudes() {
    const auto both = [](Dtype dtype, std::int64_t m, std::int64_t n, double scale) {
        const Values y = draw(m, n, "normal", 300, scale);
        context = "normal times " + std::to_string(std::log2(scale)) + " binary orders, " + std::to_string(m) + " x " +
                  std::to_string(n);
        check(dtype, rows(m, n), y, {1e-3, 0.4, 0.95, 1.5});
        check(dtype, strips(m, n), y, {1e-3, 0.4, 0.95, 1.5});
    };
    for (const double scale : {1e300, 1e250, 1e-250, 1e-300, 1e-308, 1e-318}) {
        both(Dtype::f64, 10, 12, scale), both(Dtype::f64, 70, 300, scale), both(Dtype::c128, 10, 12, scale);
    }
    for (const double scale : {5e37, 2e37, 5e36, 1e-36, 1e-41}) {
        both(Dtype::f32, 10, 12, scale), both(Dtype::f32, 70, 700, scale), both(Dtype::c64, 10, 12, scale);
    }
    both(Dtype::f16, 10, 12, 1e4), both(Dtype::f16, 10, 12, 1e-6);
    context = "the largest and the smallest number";
    const double big = std::numeric_limits<double>::max(), small = std::numeric_limits<double>::denorm_min();
    check(Dtype::f64, rows(2, 2), {big, -big, small, big}, {0.5, 0.9});
    check(Dtype::f64, rows(2, 2), {small, -small, 0.0, 3 * small}, {2.0});
    const double big_float = static_cast<double>(std::numeric_limits<float>::max());
    check(Dtype::f32, rows(2, 2), {big_float, -big_float, 1.0, big_float}, {0.5, 0.9});
    context = "zeros";
    check(Dtype::f64, rows(20, 30), Values(600), {1.0});
    Solution solution;
    Team alone(1);
    Problem<float> zeros(Dtype::f32, strips(20, 30), Values(600));
    CHECK(project(zeros.view(), 1.0, Method::newton, nullptr, alone, solution) && solution.interior);
}

void check_not_finite() {
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const auto refused = []<class T>(Problem<T>&& problem) {
        Team alone(1);
        for (int method = 0; method < method_count; ++method)
            for (const double radius : {0.0, 1.0, 1e300}) {
                Solution solution;
                CHECK(!project(problem.view(), radius, static_cast<Method>(method), nullptr, alone, solution));
                CHECK(std::isnan(solution.theta) && std::ssize(solution.mu) == problem.m() && std::isnan(solution.mu[0]));
                problem.refill();
                apply(problem.view(), solution.mu.data(), alone);
                CHECK(std::isnan(problem.out(0, 0)));
            }
    };
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 9}, {80, 20}, {70, 300}})
        for (const double bad : {infinity, -infinity, nan})
            for (const bool side_by_side : {false, true})
                for (const std::int64_t where : {std::int64_t(0), m * n / 2, m * n - 1}) {
                    context = std::to_string(m) + " x " + std::to_string(n) + " with " + std::to_string(bad);
                    Values y = draw(m, n, "normal", 400);
                    y[at(where)] = bad;
                    const Layout layout = side_by_side ? strips(m, n) : rows(m, n);
                    refused(Problem<float>(Dtype::f32, layout, y));
                    refused(Problem<double>(Dtype::f64, layout, y));
                }
}

// Warm starts may hold anything, and change nothing that matters.
void check_warm_starts() {
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const auto warm = [&]<class T>(Problem<T>&& problem, Dtype dtype) {
        const Facts facts(problem.magnitudes(), problem.n());
        Team alone(1), four(4);
        for (const double fraction : {0.02, 0.5, 0.97}) {
            const double radius = static_cast<double>(fraction * facts.norm);
            const auto expected = oracle(facts.y, problem.m(), problem.n(), radius);
            Solution cold;
            CHECK(project(problem.view(), radius, Method::newton, nullptr, alone, cold));
            for (const double cap : {nan, infinity, -infinity, -1.0, 0.0, 1e-320, 1e-3, 1.0, 1e300})
                for (const double theta : {nan, infinity, -5.0, 0.0, cold.theta, 1.01 * cold.theta, 1e300}) {
                    Solution start = cold, one, other;
                    start.theta = theta;
                    for (std::size_t g = 0; g < start.mu.size(); ++g)
                        if (g % 7 != 0) start.mu[g] = cap;
                    CHECK(project(problem.view(), radius, Method::newton, &start, alone, one));
                    check_solution(problem, dtype, facts, radius, one, expected);
                    CHECK(project(problem.view(), radius, Method::newton, &start, four, other));
                    CHECK(same_bits(one, other));
                }
        }
    };
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{70, 20}, {66, 270}})
        for (const bool side_by_side : {false, true}) {
            context = "warm, " + std::to_string(m) + " x " + std::to_string(n);
            const Layout layout = side_by_side ? strips(m, n) : rows(m, n);
            const Values y = draw(m, n, "normal", 500);
            warm(Problem<float>(Dtype::f32, layout, y), Dtype::f32);
            if (n == 20) warm(Problem<double>(Dtype::f64, layout, y), Dtype::f64);
        }
}

// Large enough for samples, windows, strips of several widths and several chunks.
void check_large() {
    std::uint64_t seed = 600;
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{300, 700}, {40, 3000}, {3000, 70}})
        for (const char* distribution : {"normal", "cauchy", "ties", "near ties"})
            for (const bool side_by_side : {false, true}) {
                context = std::to_string(m) + " x " + std::to_string(n) + " " + distribution + (side_by_side ? ", strips" : ", rows");
                const Values y = draw(m, n, distribution, ++seed);
                const Layout layout = side_by_side ? strips(m, n) : rows(m, n);
                check(seed % 4 < 2 ? Dtype::f32 : Dtype::f64, layout, y, {seed % 3 == 0 ? 0.9 : 0.02}, newton_only);
            }
    context = "300 x 700, strided";
    const Values y = draw(300, 700, "normal", ++seed);
    check(Dtype::f64, {{300, false, 1403, 701}, {700, true, 2, 1}}, y, {0.03}, newton_only);
    check(Dtype::c64, rows(300, 700), y, {0.03}, newton_only);
}

// Past the size from which stores go round the cache, and windows are kept of the groups; the optimality conditions alone, for
// time. Values that are a few numbers again and again crowd into windows.
float spread(const std::string& values, float u) {
    if (values == "heavy") return 1.0F / (u + 1e-3F);
    if (values == "crowded") return std::floor(u * 50.0F) + (u > 0.9F ? u : 0.0F);
    return u;
}

void check_huge(const std::string& values, std::int64_t m, std::int64_t n, bool side_by_side) {
    context = std::to_string(m) + " x " + std::to_string(n) + " " + values + (side_by_side ? ", strips" : ", rows");
    std::vector<float> y(at(m * n)), x(at(m * n));
    std::uint64_t state = 7;
    double norm = 0.0;
    const std::int64_t over_groups = side_by_side ? 1 : n, over_members = side_by_side ? m : 1;
    for (std::int64_t g = 0; g < m; ++g) {
        float peak = 0.0F;
        for (std::int64_t i = 0; i < n; ++i) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const float size = spread(values, static_cast<float>(state >> 40) * 0x1p-24F);
            y[at(g * over_groups + i * over_members)] = state & 1U << 20 ? -size : size;
            peak = std::max(peak, size);
        }
        norm += static_cast<double>(peak);
    }
    View view;
    view.dtype = Dtype::f32;
    view.in = y.data(), view.out = x.data();
    view.group.push({m, {over_groups, over_groups, 1}}), view.member.push({n, {over_members, over_members, 0}});
    for (const double part : {0.01, 0.3, 0.9}) {
        Team four(4), alone(1);
        Solution solution, same;
        const double radius = part * norm;
        CHECK(project(view, radius, Method::newton, nullptr, four, solution));
        CHECK(project(view, radius, Method::newton, nullptr, alone, same) && same.mu == solution.mu);
        apply(view, solution, four);
        double total = 0.0;
        bool optimal = true, entries = true;
        for (std::int64_t g = 0; g < m; ++g) {
            const double mu = solution.mu[at(g)];
            double above = 0.0, sum = 0.0;
            for (std::int64_t i = 0; i < n; ++i) {
                const auto place = at(g * over_groups + i * over_members);
                const double size = std::fabs(static_cast<double>(y[place]));
                sum += size, above += std::max(size - mu, 0.0);
                const auto clipped = static_cast<float>(std::min(size, mu));
                entries = entries && x[place] == (y[place] < 0.0F ? -clipped : clipped);
            }
            total += mu;
            optimal = optimal && (mu > 0.0 ? std::fabs(above - solution.theta) <= 1e-6 * sum : sum <= solution.theta * (1.0 + 1e-6));
        }
        CHECK(optimal);
        CHECK(entries);
        CHECK(total <= radius * (1.0 + 1e-12) && total >= radius * (1.0 - 1e-6));
    }
}

// Inputs on which Newton's method once wandered between two lines, or float sums overflowed.
void check_hard() {
    std::uint64_t seed = 700;
    for (const double width : {1.0, 3.0, 8.0})
        for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{64, 300}, {8, 400}, {20, 256}, {70, 700}})
            for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
                const double epsilon = static_cast<double>(epsilon_of(dtype));
                std::mt19937_64 random(++seed);
                std::uniform_int_distribution<int> ulps(-static_cast<int>(width), static_cast<int>(width));
                Values y(at(m * n));
                for (auto& entry : y) entry = 1.3 * (1.0 + epsilon * ulps(random));
                Values peaked = y;
                for (std::int64_t g = 0; g < m; ++g) peaked[at(g * n)] *= 1000.0;
                Values halving(at(m * n));
                for (std::size_t i = 0; i < halving.size(); ++i) halving[i] = std::ldexp(1.0, -static_cast<int>(i % at(n) % 120));
                for (const bool side_by_side : {false, true}) {
                    const Layout layout = side_by_side ? strips(m, n) : rows(m, n);
                    context = "within " + std::to_string(width) + " ulps, " + std::to_string(m) + " x " + std::to_string(n);
                    check(dtype, layout, y, {1.0 - 0.5 * epsilon, 1.0 - epsilon, 1.0 - 3.0 * epsilon, 0.999}, newton_only);
                    context += ", with peaks";
                    check(dtype, layout, peaked, {6e-4, 1e-3, 2e-3, 0.02}, newton_only);
                    context = "halving";
                    if (width == 1.0) check(dtype, layout, halving, {1e-300, 1e-14, 1e-12}, newton_only);
                }
            }
}

// Teams so short and so large that many workers come late, or when their team is gone.
void check_team() {
    for (int round = 0; round < 300; ++round) {
        context = "team " + std::to_string(round);
        Team team(1 + round % 17);
        for (const std::int64_t count : {std::int64_t(0), std::int64_t(1), std::int64_t(2), std::int64_t(100)}) {
            std::vector<int> done(at(count));
            team.run(count, [&](std::int64_t i) { ++done[at(i)]; });
            CHECK(std::count(done.begin(), done.end(), 1) == count);
        }
        bool thrown = false;
        try {
            team.run(50, [](std::int64_t i) {
                if (i == 7) throw std::runtime_error("seven");
            });
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        CHECK(thrown);
        std::atomic<int> after = 0;
        team.run(3, [&](std::int64_t) { ++after; });
        CHECK(after == 3);
    }
}

}  // namespace

int main(int arguments, char** argument) {
    std::signal(SIGALRM, give_up);
    alarm(600);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const bool threads_only = arguments > 1 && std::strcmp(argument[1], "threads") == 0;
    if (!threads_only) {
        check_sizes();
        check_layouts();
        check_radii();
        check_magnitudes();
        check_not_finite();
        check_hard();
    }
    check_team();
    check_warm_starts();
    check_large();
    for (const char* values : {"even", "heavy", "crowded"})
        for (const bool side_by_side : {false, true}) check_huge(values, 600, 7000, side_by_side);
    for (const bool side_by_side : {false, true})
        check_huge("crowded", 8400, 501, side_by_side), check_huge("even", 90000, 47, side_by_side);
    return verdict();
}
