// The textbook methods against an independent oracle and against the optimality conditions, over shapes, distributions
// and radii. The oracle sorts, bisects theta in long double, and solves once more on the supports found.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "l1inf/active_set.hpp"
#include "l1inf/inverse_total_order.hpp"
#include "l1inf/semismooth_newton.hpp"
#include "l1inf/total_order.hpp"

namespace {

using normball::Groups;
using normball::Solution;

// A matrix with its groups one after the other.
struct Matrix {
    std::int64_t m, n;
    std::vector<double> y;

    const double* group(std::int64_t j) const { return y.data() + j * n; }
};

class MatrixGroups : public Groups {
public:
    MatrixGroups(const Matrix& matrix, const std::vector<double>& sums, const std::vector<double>& peaks)
        : Groups(matrix.m, matrix.n, sums.data(), peaks.data()), matrix_(matrix) {}
    void load(std::int64_t group, double* magnitudes) const override {
        std::copy_n(matrix_.group(group), members(), magnitudes);
        ++loads_;
    }
    std::int64_t loads() const { return loads_; }

private:
    const Matrix& matrix_;
    mutable std::int64_t loads_ = 0;
};

// ---- the oracle ----

struct Oracle {
    long double theta;
    std::vector<long double> mu;
};

Oracle oracle(const Matrix& matrix, double radius) {
    std::vector<std::vector<long double>> z, s;
    long double high = 0.0L;
    for (std::int64_t j = 0; j < matrix.m; ++j) {
        z.emplace_back(matrix.group(j), matrix.group(j) + matrix.n);
        std::sort(z.back().begin(), z.back().end(), std::greater<>());
        s.emplace_back(at(matrix.n));
        std::partial_sum(z.back().begin(), z.back().end(), s.back().begin());
        high = std::max(high, s.back().back());
    }
    // The support of group j at theta: the largest k whose last member lies above the cap that the k members give.
    const auto support = [&](std::size_t j, long double theta) {
        std::size_t low = 1, end = z[j].size() + 1;
        while (end - low > 1) {
            const std::size_t k = low + (end - low) / 2;
            (s[j][k - 1] - static_cast<long double>(k) * z[j][k - 1] < theta ? low : end) = k;
        }
        return low;
    };
    const auto cap = [&](std::size_t j, long double theta) {
        if (s[j].back() <= theta) return 0.0L;
        const std::size_t k = support(j, theta);
        return (s[j][k - 1] - theta) / static_cast<long double>(k);
    };
    long double low = 0.0L;
    for (;;) {
        const long double theta = low + (high - low) / 2;
        if (theta <= low || theta >= high || high - low < 1e-30L * high) break;
        long double total = 0.0L;
        for (std::size_t j = 0; j < z.size(); ++j) total += cap(j, theta);
        (total > radius ? low : high) = theta;
    }
    long double heights = 0.0L, slopes = 0.0L;
    for (std::size_t j = 0; j < z.size(); ++j) {
        if (s[j].back() <= low) continue;
        const auto k = static_cast<long double>(support(j, low));
        heights += s[j][support(j, low) - 1] / k;
        slopes += 1.0L / k;
    }
    Oracle result{(heights - radius) / slopes, {}};
    for (std::size_t j = 0; j < z.size(); ++j) result.mu.push_back(cap(j, result.theta));
    return result;
}

// ---- the data ----

const char* const distributions[] = {"uniform", "normal", "lognormal",   "cauchy",       "ties",    "capped",
                                     "one-hot", "scales", "zero groups", "equal groups", "constant"};

Matrix draw(std::int64_t m, std::int64_t n, const std::string& distribution, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::normal_distribution<double> normal;
    std::cauchy_distribution<double> cauchy;
    Matrix matrix{m, n, std::vector<double>(at(m * n))};
    for (std::int64_t j = 0; j < m; ++j) {
        const auto hot = static_cast<std::int64_t>(uniform(random) * static_cast<double>(n));
        for (std::int64_t i = 0; i < n; ++i) {
            double& y = matrix.y[at(j * n + i)];
            if (distribution == "uniform") y = uniform(random);
            if (distribution == "normal") y = std::fabs(normal(random));
            if (distribution == "lognormal") y = std::exp(3.0 * normal(random));
            if (distribution == "cauchy") y = std::fabs(cauchy(random));
            if (distribution == "ties") y = std::floor(4.0 * uniform(random));
            if (distribution == "capped") y = std::min(std::fabs(normal(random)), 0.7);  // as after a projection
            if (distribution == "one-hot") y = i == hot ? 0.1 + uniform(random) : 0.0;
            if (distribution == "scales") y = std::ldexp(uniform(random), static_cast<int>(20 - 2 * (j % 20)));
            if (distribution == "zero groups") y = j % 3 == 1 ? 0.0 : std::max(0.0, normal(random));
            if (distribution == "equal groups") y = j == 0 ? uniform(random) : matrix.y[at(i)];
            if (distribution == "constant") y = 0.1;
        }
    }
    return matrix;
}

// ---- the checks ----

struct Method {
    const char* name;
    Solution (*solve)(const Groups&, double);
};
const Method methods[] = {{"inverse_total_order", normball::inverse_total_order},
                          {"total_order", normball::total_order},
                          {"active_set", normball::active_set},
                          {"semismooth_newton", normball::semismooth_newton}};

void check_solution(const Matrix& matrix, double radius, const Solution& solution, const Oracle& expected) {
    const double theta = solution.theta;
    const double largest = *std::max_element(matrix.y.begin(), matrix.y.end());
    CHECK(std::ssize(solution.mu) == matrix.m && std::ssize(solution.clipped) == matrix.m);
    bool caps_in_range = true, counts_right = true, active_right = true, zero_right = true, as_expected = true;
    std::int64_t active = 0;
    long double total = 0.0L;
    for (std::int64_t j = 0; j < matrix.m; ++j) {
        const double* const y = matrix.group(j);
        const double mu = solution.mu[at(j)];
        long double sum = 0.0L, above = 0.0L;
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < matrix.n; ++i) {
            sum += y[i];
            if (y[i] > mu) above += static_cast<long double>(y[i]) - mu;
            count += y[i] > mu;
        }
        total += mu;
        caps_in_range = caps_in_range && mu >= 0.0 && mu <= *std::max_element(y, y + matrix.n);
        counts_right = counts_right && solution.clipped[at(j)] == (mu > 0.0 ? count : 0);
        as_expected = as_expected && std::fabs(mu - expected.mu[at(j)]) <= 1e-13L * largest;
        if (mu > 0.0) {
            ++active;
            active_right = active_right && std::fabs(above - theta) <= 1e-13L * (sum + theta);
        } else {
            zero_right = zero_right && sum <= theta * (1.0L + 1e-13L);
        }
    }
    CHECK(theta >= 0.0 && active > 0);
    CHECK(caps_in_range);
    CHECK(counts_right);
    CHECK(active_right);
    CHECK(zero_right);
    CHECK(as_expected);
    CHECK(std::fabs(total - radius) <= 1e-14L * radius);
    const long double scale = expected.theta + static_cast<long double>(matrix.n) * largest;
    CHECK(std::fabs(theta - expected.theta) <= 1e-13L * scale);
}

void check_methods(const Matrix& matrix, double radius) {
    std::vector<double> sums, peaks;
    for (std::int64_t j = 0; j < matrix.m; ++j) {
        sums.push_back(std::accumulate(matrix.group(j), matrix.group(j) + matrix.n, 0.0));
        peaks.push_back(*std::max_element(matrix.group(j), matrix.group(j) + matrix.n));
    }
    if (!(std::accumulate(peaks.begin(), peaks.end(), 0.0) > radius) || !(radius > 0.0)) return;
    const Oracle expected = oracle(matrix, radius);
    const std::string outer = context;
    for (const Method& method : methods) {
        context = outer + ", radius " + std::to_string(radius) + ", " + method.name;
        const MatrixGroups groups(matrix, sums, peaks);
        const Solution solution = method.solve(groups, radius);
        check_solution(matrix, radius, solution, expected);
        const bool walks = method.solve == normball::inverse_total_order;
        CHECK(walks ? solution.order_steps >= 1 && solution.order_steps <= matrix.m * matrix.n
                    : solution.order_steps == Solution{}.order_steps);
        CHECK(solution.reads == static_cast<double>(groups.loads()) / static_cast<double>(matrix.m));
    }
    context = outer;
}

double norm(const Matrix& matrix) {
    double total = 0.0;
    for (std::int64_t j = 0; j < matrix.m; ++j) {
        total += *std::max_element(matrix.group(j), matrix.group(j) + matrix.n);
    }
    return total;
}

void check_shapes_and_distributions() {
    const std::int64_t sizes[] = {1, 2, 3, 7, 16, 33, 100};
    const double fractions[] = {1e-300, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-15};
    for (const std::int64_t m : sizes) {
        for (const std::int64_t n : sizes) {
            for (const char* distribution : distributions) {
                for (std::uint64_t seed = 1; seed <= (m * n > 1000 ? 1U : 4U); ++seed) {
                    const Matrix matrix = draw(m, n, distribution, seed);
                    context = std::to_string(m) + " x " + std::to_string(n) + " " + distribution + " " +
                              std::to_string(seed);
                    for (const double fraction : fractions) check_methods(matrix, fraction * norm(matrix));
                }
            }
        }
    }
}

// Long walks: the errors of some 10^5 updates must not add up, and sums of many members not spoil what the few largest
// decide.
void check_long_walks() {
    const std::int64_t shapes[][2] = {{2, 100000}, {50000, 3}, {400, 300}};
    for (const auto& [m, n] : shapes) {
        for (const char* distribution : {"uniform", "lognormal", "ties"}) {
            const Matrix matrix = draw(m, n, distribution, 1);
            context = std::to_string(m) + " x " + std::to_string(n) + " " + distribution;
            for (const double fraction : {1e-9, 1e-5, 0.01, 0.5, 0.999, 0.999999}) {
                check_methods(matrix, fraction * norm(matrix));
            }
        }
    }
    // Two peaks 1e-10 apart above many members, theta a few times that.
    Matrix matrix = draw(2, 100000, "uniform", 1);
    for (double& y : matrix.y) y *= 0.9;
    matrix.y[10] = matrix.y[100010] = 1.0;
    matrix.y[20] = 1.0 - 1e-10;
    context = "near peaks";
    for (const double theta : {1.5e-10, 2e-10, 5e-10}) check_methods(matrix, 2.0 - 1.5 * theta - 0.5e-10);
}

// By hand: the groups (3, 1) and (2, 2) have theta = 4/3 and caps 5/3 and 4/3 at radius 3, theta = 3 and caps 1/2 each
// at radius 1. At radius 1 the second group, made (1, 1), is zero, and theta is 2.
void check_by_hand() {
    const auto check = [](const Matrix& matrix, double radius, double theta, std::vector<double> mu,
                          const normball::Array<std::int64_t>& clipped) {
        const std::vector<double> sums{matrix.y[0] + matrix.y[1], matrix.y[2] + matrix.y[3]};
        const std::vector<double> peaks{matrix.y[0], matrix.y[2]};
        const MatrixGroups groups(matrix, sums, peaks);
        for (const Method& method : methods) {
            context = std::string("by hand, ") + method.name;
            const Solution solution = method.solve(groups, radius);
            CHECK(std::fabs(solution.theta - theta) <= 1e-15);
            CHECK(std::fabs(solution.mu[0] - mu[0]) <= 1e-15 && std::fabs(solution.mu[1] - mu[1]) <= 1e-15);
            CHECK(solution.clipped == clipped);
        }
    };
    check({2, 2, {3.0, 1.0, 2.0, 2.0}}, 3.0, 4.0 / 3.0, {5.0 / 3.0, 4.0 / 3.0}, {1, 2});
    check({2, 2, {3.0, 1.0, 2.0, 2.0}}, 1.0, 3.0, {0.5, 0.5}, {2, 2});
    check({2, 2, {3.0, 1.0, 1.0, 1.0}}, 1.0, 2.0, {1.0, 0.0}, {1, 0});
}

}  // namespace

int main() {
    check_by_hand();
    check_shapes_and_distributions();
    check_long_walks();
    return verdict();
}
