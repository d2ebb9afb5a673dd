// The only file that knows Python. Arguments have been checked by normball/_validate.py; here arrays become views.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "dispatch.hpp"
#include "family/aggregate.hpp"
#include "family/thresholds.hpp"
#include "family/weighted.hpp"
#include "l1inf/project.hpp"
#include "l1inf/tangent.hpp"
#include "view.hpp"
#include "write.hpp"

namespace nb = nanobind;
using namespace normball;

namespace {

// A buffer held for the length of a call; empty for None.
class Buffer {
public:
    Buffer(nb::handle array, bool writable) {
        if (array.is_none()) return;
        if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) != 0)
            nb::raise_python_error();
        held_ = true;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (held_) PyBuffer_Release(&buffer_);
    }
    explicit operator bool() const { return held_; }
    int ndim() const { return buffer_.ndim; }
    std::int64_t extent(int axis) const { return buffer_.shape[axis]; }
    std::int64_t stride(int axis) const { return held_ ? buffer_.strides[axis] / buffer_.itemsize : 0; }
    template <class T = void>
    T* data() const {
        return held_ ? static_cast<T*>(buffer_.buf) : nullptr;
    }
    // Calls f with the data of an array of float32 or float64, whichever it is.
    template <class F>
    void with_reals(F f) const {
        buffer_.itemsize == sizeof(float) ? f(data<float>()) : f(data<double>());
    }

private:
    Py_buffer buffer_{};
    bool held_ = false;
};

// Independent problems: the view of the first, and the batch axes that lead to the others.
class Problems {
public:
    // `axes` and `batch` are bit masks over the axes of the array. Groups and problems are numbered in C order.
    Problems(const Buffer& in, const Buffer& out, int dtype, std::uint64_t axes, std::uint64_t batch, bool blank = false) {
        first_.blank = blank;
        first_.dtype = static_cast<Dtype>(dtype);
        itemsize_ = with_type(first_.dtype, []<class T>(T*) { return static_cast<std::int64_t>(sizeof(T)); });
        std::int64_t info = 1;
        for (int axis = 0; axis < in.ndim(); ++axis) info *= axes >> axis & 1 ? 1 : in.extent(axis);
        for (int axis = 0; axis < in.ndim(); ++axis) {
            const bool is_member = axes >> axis & 1;
            info /= is_member ? 1 : in.extent(axis);
            const Axis a{in.extent(axis), {in.stride(axis), out.stride(axis), is_member ? 0 : info}};
            (is_member ? first_.member : batch >> axis & 1 ? batch_ : first_.group).push(a);
        }
        first_.in = in.data<const char>();
        first_.out = out.data<char>();
        Offset origin = first_.group.fuse();
        move(first_, origin += first_.member.fuse());
    }

    std::int64_t count() const { return batch_.count(); }
    std::int64_t size() const { return first_.size(); }
    std::int64_t elements() const { return count() * size(); }
    View at(std::int64_t index) const {
        View view = first_;
        move(view, batch_.at(index));
        return view;
    }

private:
    void move(View& view, Offset by) const {
        view.in = static_cast<const char*>(view.in) + by.in * itemsize_;
        if (view.out != nullptr) view.out = static_cast<char*>(view.out) + by.out * itemsize_;
        view.info += by.info;
    }

    View first_;
    Axes batch_;
    std::int64_t itemsize_ = 1;
};

constexpr std::int64_t worth_a_team = std::int64_t(1) << 20;  // below, starting threads costs more than it saves

int worth_threads(std::int64_t elements, int threads) { return elements < worth_a_team ? 1 : threads; }

// body(index, team) for every problem: small ones side by side, large ones one after another with the whole team.
template <class Body>
void each_problem(const Problems& problems, Team& team, Body body) {
    if (team.threads() > 1 && problems.size() < worth_a_team) {
        team.run(problems.count(), [&](std::int64_t i) {
            Team alone(1);
            body(i, alone);
        });
        return;
    }
    for (std::int64_t i = 0; i < problems.count(); ++i) body(i, team);
}

// An array in the user's order of groups, read or written in the view's own.
template <class T>
Array<double> in_view_order(const View& view, const T* values) {
    Array<double> ordered(static_cast<std::size_t>(view.groups()));
    view.each_group([&](std::int64_t g, std::int64_t place) { ordered[static_cast<std::size_t>(g)] = values[place]; });
    return ordered;
}
void in_user_order(const View& view, std::span<const double> ordered, double* values) {
    view.each_group([&](std::int64_t g, std::int64_t place) { values[place] = ordered[static_cast<std::size_t>(g)]; });
}

// What ProjectionInfo tells of all the problems together.
struct Tally {
    std::int64_t clipped = 0, kept = 0, order_steps = 0;
    double reads = 0.0;

    template <class T>
    void add(const View& view, const Solution& solution, T* mu) {
        std::int64_t nonzero = 0;
        view.each_group([&](std::int64_t g, std::int64_t place) {
            const double cap = solution.mu[static_cast<std::size_t>(g)];
            mu[place] = static_cast<T>(cap);
            nonzero += cap > 0.0;
            const std::int64_t k = solution.clipped[static_cast<std::size_t>(g)];
            clipped += k, kept += cap > 0.0 ? view.members() - k : 0;
        });
        // The write reads the non-zero groups once more, if they were not copied.
        reads += solution.reads;
        if (solution.copy == nullptr) reads += static_cast<double>(nonzero) / static_cast<double>(view.groups());
        order_steps += solution.order_steps;
    }
};

// Projects y into x, or only solves where x is None. Returns None where y is not finite and check_finite is on, and x is
// untouched then; otherwise (clipped, kept, reads, order_steps), all zero when `mu` is None. The arrays theta, radii and
// warm_theta are float64, mu and warm_mu float32 or float64.
nb::object project_l1inf(nb::handle y, nb::handle x, int dtype, std::uint64_t axes, std::uint64_t batch,
                         double radius, nb::handle radii_or_none, int method, bool check_finite, int threads, nb::handle theta,
                         nb::handle mu, nb::handle warm_theta, nb::handle warm_mu, bool blank) {
    const Buffer in(y, false), out(x, true), radii(radii_or_none, false), thetas(theta, true), caps(mu, true);
    const Buffer old_thetas(warm_theta, false), old_caps(warm_mu, false);
    const Problems problems(in, out, dtype, axes, batch, blank);
    std::vector<Solution> solutions(static_cast<std::size_t>(problems.count()));
    std::atomic<bool> finite = true;
    Tally tally;
    {
        nb::gil_scoped_release unlocked;
        Team team(worth_threads(problems.elements(), threads));
        each_problem(problems, team, [&](std::int64_t i, Team& helpers) {
            const View view = problems.at(i);
            Solution warm_start;
            if (old_caps) {
                warm_start.theta = old_thetas.data<double>()[i];
                old_caps.with_reals([&](const auto* old) { warm_start.mu = in_view_order(view, old); });
            }
            if (!project(view, radii ? radii.data<double>()[i] : radius, static_cast<Method>(method), old_caps ? &warm_start : nullptr,
                         helpers, solutions[static_cast<std::size_t>(i)]))
                finite = false;
            if (problems.count() > 1) solutions[static_cast<std::size_t>(i)].copy.reset();  // all of them are too many
        });
        if (finite || !check_finite) {
            each_problem(problems, team, [&](std::int64_t i, Team& helpers) {
                const View view = problems.at(i);
                const Solution& solution = solutions[static_cast<std::size_t>(i)];
                if (view.out == nullptr) return;
                if (!solution.interior)
                    apply(view, solution, helpers);
                else if (view.in != view.out)
                    apply(view, std::vector<double>(solution.mu.size(), std::numeric_limits<double>::infinity()).data(), helpers);
            });
            for (std::int64_t i = 0; caps && i < problems.count(); ++i) {
                const Solution& solution = solutions[static_cast<std::size_t>(i)];
                thetas.data<double>()[i] = solution.theta;
                caps.with_reals([&](auto* found) { tally.add(problems.at(i), solution, found); });
            }
        }
    }
    if (!finite && check_finite) return nb::none();
    return nb::make_tuple(tally.clipped, tally.kept, tally.reads / static_cast<double>(problems.count()),
                          tally.order_steps);
}

// Both norms of every problem: l1inf[i] the sum of the group maxima, linf1[i] the largest of the group sums.
void norms(nb::handle y, int dtype, std::uint64_t axes, std::uint64_t batch, int threads, nb::handle l1inf,
           nb::handle linf1) {
    const Buffer in(y, false), none(nb::none(), false), sum_of_peaks(l1inf, true), top_sum(linf1, true);
    const Problems problems(in, none, dtype, axes, batch);
    nb::gil_scoped_release unlocked;
    Team team(worth_threads(problems.elements(), threads));
    each_problem(problems, team, [&](std::int64_t i, Team& helpers) {
        Array<double> sums, peaks;
        read_stats(problems.at(i), 1.0, helpers, sums, peaks);
        double top = 0.0;
        for (std::size_t g = 0; g < sums.size(); ++g) {
            if (std::isnan(sums[g])) peaks[g] = sums[g];  // a maximum may pass over NaN, a sum does not
            top = std::isnan(top) || sums[g] <= top ? top : sums[g];
        }
        // The careful sum makes NaN of an infinity.
        const double all = std::accumulate(peaks.begin(), peaks.end(), 0.0);
        sum_of_peaks.data<double>()[i] = std::isfinite(all) ? careful_sum(peaks) : all;
        top_sum.data<double>()[i] = top;
    });
}

// ---- the family of operators: three steps that Python puts together ------------------------------------------------

// One number for each group: see family/aggregate.hpp. `values` is float64, of the shape of the groups, in C order.
void aggregate_groups(nb::handle y, int dtype, std::uint64_t axes, int kind, int threads, nb::handle values) {
    const Buffer in(y, false), none(nb::none(), false), found(values, true);
    const View view = Problems(in, none, dtype, axes, 0).at(0);
    nb::gil_scoped_release unlocked;
    Team team(worth_threads(view.size(), threads));
    std::vector<double> ordered(static_cast<std::size_t>(view.groups()));
    aggregate(view, static_cast<Aggregate>(kind), team, ordered.data());
    in_user_order(view, ordered, found.data<double>());
}

// The threshold of each group, and with x the write that follows: see family/thresholds.hpp. `sums` are those of the
// groups, where they are known. Returns whether all is finite, and the reads. Where it is not and check_finite is on, x is
// untouched.
nb::tuple threshold_groups(nb::handle y, nb::handle x, int dtype, std::uint64_t axes, int write_kind, bool with_sign,
                           bool tiny, bool check_finite, int threads, nb::handle radii, nb::handle taus, nb::handle sums,
                           bool blank) {
    const Buffer in(y, false), out(x, true), each_radius(radii, false), found(taus, true), known(sums, false);
    const View view = Problems(in, out, dtype, axes, 0, blank).at(0);
    ThresholdResult result;
    {
        nb::gil_scoped_release unlocked;
        Team team(worth_threads(view.size(), threads));
        const Array<double> ordered = in_view_order(view, each_radius.data<double>());
        const Array<double> totals = known ? in_view_order(view, known.data<double>()) : Array<double>();
        Array<double> solved(ordered.size());
        const WriteOrder order{static_cast<Write>(write_kind), tiny, !check_finite};
        const double* given = known ? totals.data() : nullptr;
        result = with_sign ? Thresholds<true>(view, ordered.data(), order, team, solved.data(), given).solve()
                           : Thresholds<false>(view, ordered.data(), order, team, solved.data(), given).solve();
        in_user_order(view, solved, found.data<double>());
    }
    return nb::make_tuple(result.finite, result.reads);
}

// Writes x from y and one number for each group: see write.hpp.
void write_groups(nb::handle y, nb::handle x, int dtype, std::uint64_t axes, int kind, bool tiny, int threads,
                  nb::handle parameters, bool blank) {
    const Buffer in(y, false), out(x, true), given(parameters, false);
    const View view = Problems(in, out, dtype, axes, 0, blank).at(0);
    nb::gil_scoped_release unlocked;
    Team team(worth_threads(view.size(), threads));
    write(view, static_cast<Write>(kind), in_view_order(view, given.data<double>()).data(), tiny, team);
}

// Weighted thresholds of the rows of contiguous matrices; `weights` is float64. Returns whether all is finite.
bool weighted_thresholds(nb::handle y, nb::handle x, nb::handle weights, int dtype, bool check_finite, nb::handle radii,
                         nb::handle taus) {
    const Buffer in(y, false), out(x, true), w(weights, false), each_radius(radii, false), found(taus, true);
    const std::int64_t m = in.extent(0), n = in.extent(1);
    View view, weight_view;
    view.dtype = static_cast<Dtype>(dtype);
    view.in = in.data<const void>(), weight_view.in = w.data<const void>(), view.out = out.data();
    for (View* each : {&view, &weight_view}) each->group.push({m, {n, n, 1}}), each->member.push({n, {1, 1, 0}});
    nb::gil_scoped_release unlocked;
    bool finite = true;
    for (std::int64_t g = 0; g < m; ++g) {
        double& tau = found.data<double>()[g];
        tau = weighted_threshold(view, weight_view, g, each_radius.data<double>()[g]);
        finite = finite && !std::isnan(tau);
    }
    if (finite || !check_finite) write_weighted(view, weight_view, found.data<double>());
    return finite;
}

// The derivative at y along v, which lies as x does: see l1inf/tangent.hpp. `theta` and `mu` are those of the projection,
// `change` takes how theta moves; all float64. False, and nothing is written, where the layout or the type is not for it.
bool tangent_l1inf(nb::handle y, nb::handle v, nb::handle x, int dtype, std::uint64_t axes, std::uint64_t batch,
                   int threads, nb::handle theta, nb::handle mu, nb::handle change) {
    const Buffer in(y, false), along(v, false), out(x, true), thetas(theta, false), caps(mu, false), changes(change, true);
    const Problems problems(in, out, dtype, axes, batch), directions(in, along, dtype, axes, batch);
    nb::gil_scoped_release unlocked;
    return with_type(static_cast<Dtype>(dtype), [&]<class T>(T*) {
        if constexpr (std::is_floating_point_v<T>) {
            if (!Tangent<T>::handles(problems.at(0))) return false;
            Team team(worth_threads(problems.elements(), threads));
            each_problem(problems, team, [&](std::int64_t i, Team& helpers) {
                const View view = problems.at(i);
                Array<double> ordered = in_view_order(view, caps.data<double>());
                // Inside the ball nothing is clipped, and every entry moves freely.
                if (thetas.data<double>()[i] == 0.0) std::fill(ordered.begin(), ordered.end(), HUGE_VAL);
                const auto* direction = static_cast<const T*>(directions.at(i).out);
                changes.data<double>()[i] = Tangent<T>(view, direction, ordered.data(), helpers).write();
            });
            return true;
        }
        return false;
    });
}

std::vector<std::string> available_instruction_sets() {
    std::vector<std::string> names;
    for (const char* const* name = instruction_sets(); *name != nullptr; ++name) names.emplace_back(*name);
    return names;
}

}  // namespace

NB_MODULE(_core, module) {
    instruction_set();  // chosen, or refused, when the module is loaded
    module.def("project_l1inf", &project_l1inf, nb::arg("y"), nb::arg("x").none(), nb::arg("dtype"), nb::arg("axes"),
               nb::arg("batch"), nb::arg("radius"), nb::arg("radii").none(), nb::arg("method"), nb::arg("check_finite"), nb::arg("threads"),
               nb::arg("theta").none(), nb::arg("mu").none(), nb::arg("warm_theta").none(), nb::arg("warm_mu").none(),
               nb::arg("blank"));
    module.def("tangent_l1inf", &tangent_l1inf, nb::arg("y"), nb::arg("v"), nb::arg("x"), nb::arg("dtype"),
               nb::arg("axes"), nb::arg("batch"), nb::arg("threads"), nb::arg("theta"), nb::arg("mu"), nb::arg("change"));
    module.def("norms", &norms, nb::arg("y"), nb::arg("dtype"), nb::arg("axes"), nb::arg("batch"), nb::arg("threads"),
               nb::arg("l1inf"), nb::arg("linf1"));
    module.def("aggregate", &aggregate_groups, nb::arg("y"), nb::arg("dtype"), nb::arg("axes"), nb::arg("kind"),
               nb::arg("threads"), nb::arg("values"));
    module.def("thresholds", &threshold_groups, nb::arg("y"), nb::arg("x").none(), nb::arg("dtype"), nb::arg("axes"),
               nb::arg("write"), nb::arg("with_sign"), nb::arg("tiny"), nb::arg("check_finite"), nb::arg("threads"),
               nb::arg("radii"), nb::arg("taus"), nb::arg("sums").none(), nb::arg("blank"));
    module.def("write", &write_groups, nb::arg("y"), nb::arg("x"), nb::arg("dtype"), nb::arg("axes"), nb::arg("kind"),
               nb::arg("tiny"), nb::arg("threads"), nb::arg("parameters"), nb::arg("blank"));
    module.def("weighted_thresholds", &weighted_thresholds, nb::arg("y"), nb::arg("x"), nb::arg("weights"),
               nb::arg("dtype"), nb::arg("check_finite"), nb::arg("radii"), nb::arg("taus"));
    module.def("instruction_set", [] { return std::string(instruction_set().name); });
    module.def("instruction_sets", &available_instruction_sets);
}
