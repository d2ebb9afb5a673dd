// Passes over groups that lie side by side. Strips keep the accumulators of a register of columns over a block of rows, because a
// load and a store of each accumulator for each element would cost more than the element.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels_rows.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

// Rows for which the accumulators of a register of columns are held. More would be more streams than the hardware follows. It
// follows none that jumps from row to row, nor any at all between the stores of the accumulators: every line of the next block
// is asked for, in the order in which they lie in memory, one for each that is read. Where the matrix lies in a cache, asking
// costs more than waiting, and more rows at once are better.
inline constexpr Index strip_rows = 8, near_strip_rows = 16;

// How many elements come before the first address at which a register lies in one cache line, in every row alike.
template <class T>
Index strip_alignment(const T* y, Index stride, Index width) {
    return stride % Lanes<T>::width == 0 && width > Lanes<T>::width ? to_alignment(y, width) : 0;
}

// The lines of a block of rows, one after another: those of a list of registers, or of all where there is no list.
template <class T>
class Ahead {
public:
    Ahead(const T* rows, Index stride, const Index* at, Index count) : row_(rows), stride_(stride), at_(at), count_(count) {
        whole_ = at == nullptr || at[count - 1] - at[0] == (count - 1) * width;
        begin();
    }
    void ask() {
        ask_for(next_);
        next_ += width;
        if (next_ >= end_) begin();
    }

private:
    static constexpr Index width = Lanes<T>::width;

    // The next run of registers that follow one another.
    void begin() {
        if (p_ == count_) p_ = 0, row_ += stride_;
        next_ = row_ + (at_ != nullptr ? at_[p_] : 0);
        end_ = next_ + width;
        if (whole_)
            end_ += (count_ - 1) * width, p_ = count_;
        else
            while (++p_ < count_ && row_ + at_[p_] == end_) end_ += width;
    }

    const T *next_, *end_, *row_;
    Index stride_;
    const Index* at_;
    Index count_, p_ = 0;
    bool whole_;
};

// Calls body.template operator()<R>(first row) for blocks of R rows; R is a constant, so that loops over it are unrolled.
template <Index R, class T, class Body>
[[gnu::always_inline]] inline void over_rows(const T* y, Index stride, Index rows, Body body) {
    for (; rows >= R; rows -= R, y += R * stride) body.template operator()<R>(y);
    if constexpr (R > 4)
        over_rows<4>(y, stride, rows, body);
    else if constexpr (R > 1)
        over_rows<1>(y, stride, rows, body);
}

template <class T, int V, bool Partial, bool Near, bool Looks, Index R>
[[gnu::always_inline]] inline void strip_stats_block(const T* y, Index stride, Ahead<T>& ahead, Index last, double* sums, T* peaks,
                                                     const StatsLook<T>& look) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto threshold = L::all(look.t), one = L::all(1);
    typename L::Reg sum[V], peak[V], above[V], number[V];
    for (int v = 0; v < V; ++v) sum[v] = above[v] = number[v] = L::all(0), peak[v] = L::load(peaks + v * W);
#pragma GCC unroll 16
    for (Index i = 0; i < R; ++i, y += stride)
        for (int v = 0; v < V; ++v) {
            if (!Near) ahead.ask();
            const auto x = L::magnitude(Partial ? L::load_first(y + v * W, last) : L::load(y + v * W));
            sum[v] = L::add(sum[v], x);
            peak[v] = L::max(x, peak[v]);
            if (!Looks) continue;
            const auto m = L::above(x, threshold);
            above[v] = L::add_where(m, above[v], x);
            number[v] = L::add_where(m, number[v], one);
        }
    for (int v = 0; v < V; ++v) {
        auto total = Sum<T>::load(sums + v * W);
        total.add(sum[v]);
        total.store(sums + v * W);
        L::store(peaks + v * W, peak[v]);
        if (!Looks) continue;
        L::store(look.s + v * W, L::add(L::load(look.s + v * W), above[v]));
        L::store(look.k + v * W, L::add(L::load(look.k + v * W), number[v]));
    }
}

template <class T, bool Near, bool Looks>
void strip_stats_of(const T* y, Index stride, Index n, Index width, double* sums, T* peaks, const StatsLook<T>& look) {
    constexpr Index W = Lanes<T>::width, V = 2, block = Near ? near_strip_rows : strip_rows;
    const Index head = strip_alignment(y, stride, width);
    const auto look_from = [&](Index c) -> StatsLook<T> {
        return Looks ? StatsLook<T>{look.t, look.s + c, look.k + c} : StatsLook<T>{};
    };
    Index left = n;
    over_rows<block>(y, stride, n, [&]<Index R>(const T* rows) __attribute__((always_inline)) {
        left -= R;
        Ahead<T> ahead(rows + (left >= R ? R * stride : 0), stride, nullptr, (width + W - 1) / W);
        const auto some = [&]<int Registers, bool Partial>(Index c, Index last) __attribute__((always_inline)) {
            strip_stats_block<T, Registers, Partial, Near, Looks, R>(rows + c, stride, ahead, last, sums + c, peaks + c, look_from(c));
        };
        if (head > 0) some.template operator()<1, true>(0, head);
        Index c = head;
        for (; c + V * W <= width; c += V * W) some.template operator()<V, false>(c, W);
        for (; c + W <= width; c += W) some.template operator()<1, false>(c, W);
        if (c < width) some.template operator()<1, true>(c, width - c);
    });
}

template <class T>
void strip_stats(const T* y, Index stride, Index n, Index width, double* sums, T* peaks, const StatsLook<T>& look, bool near) {
    const auto by = look.s == nullptr ? (near ? strip_stats_of<T, true, false> : strip_stats_of<T, false, false>)
                                      : (near ? strip_stats_of<T, true, true> : strip_stats_of<T, false, true>);
    by(y, stride, n, width, sums, peaks, look);
}

// Calls body.template operator()<R>(first row of a block of R, which register, what to ask for) for a list of registers. The rows
// of a panel follow one another: there one register comes after the other.
template <class T, bool Near, class Body>
[[gnu::always_inline]] inline void over_blocks(const T* y, Index stride, Index n, const Index* at, Index count, Body body) {
    constexpr Index block = Near ? near_strip_rows : strip_rows;
    Ahead<T> ahead(y, stride, at, count);
    if (stride <= Lanes<T>::width) {
        for (Index p = 0; p < count; ++p)
            over_rows<block>(y + at[p], stride, n, [&]<Index R>(const T* rows) __attribute__((always_inline)) {
                body.template operator()<R>(rows, p, ahead);
            });
        return;
    }
    Index left = n;
    over_rows<block>(y, stride, n, [&]<Index R>(const T* rows) __attribute__((always_inline)) {
        left -= R;
        ahead = Ahead<T>(rows + (left >= R ? R * stride : 0), stride, at, count);
        for (Index p = 0; p < count; ++p) body.template operator()<R>(rows + at[p], p, ahead);
    });
}

// What a block of rows adds to the numbers of members above t and their sums; `seen` is told every magnitude. So many terms are
// added in T, by turns in as many parts, before they go to a sum in double; where there is a place for its rounding errors, it is
// carried with them.
template <class T, bool Partial, bool Near, Index R, Index Terms, int Parts, class Seen>
[[gnu::always_inline]] inline void strip_block(const T* row, Index stride, Index width, Ahead<T>& ahead, const T* t, double* s,
                                               double* error, T* k, Seen seen) {
    using L = Lanes<T>;
    constexpr Index terms = R < Terms ? R : Terms;
    const auto threshold = L::load(t);
    auto number = L::count(k);
    auto total = Sum<T>::load(s);
    constexpr bool carries = sizeof(T) == sizeof(double) && Parts == 1;
    Lanes<double>::Reg lost;
    if constexpr (carries) lost = Lanes<double>::load(error);
#pragma GCC unroll 8
    for (Index i = 0; i < R; i += terms) {
        typename L::Reg part[Parts];
        for (auto& p : part) p = L::all(0);
#pragma GCC unroll 8
        for (Index j = 0; j < terms; ++j, row += stride) {
            if (!Near) ahead.ask();
            const auto x = L::magnitude(Partial ? L::load_first(row, width) : L::load(row));
            const auto m = L::above(x, threshold);
            part[j % Parts] = terms == 1 ? L::where(m, x, L::all(0)) : L::add_where(m, part[j % Parts], x);
            number = L::count_where(m, number);
            seen(m, x);
        }
        for (int p = 1; p < Parts; ++p) part[0] = L::add(part[0], part[p]);
        if constexpr (carries)
            add_carrying(total.a, lost, part[0]);
        else
            total.add(part[0]);
    }
    if constexpr (carries) Lanes<double>::store(error, lost);
    total.store(s);
    L::store_count(k, number);
}

template <class T, bool Partial, bool Near>
void strip_above_of(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, double* s,
                    T* k) {
    over_blocks<T, Near>(
        y, stride, n, at, count, [&]<Index R>(const T* row, Index p, Ahead<T>& ahead) __attribute__((always_inline)) {
            const Index lane = p * Lanes<T>::width;
            strip_block<T, Partial, Near, R, 8, 2>(row, stride, width, ahead, t + lane, s + lane, nullptr, k + lane,
                                                   [](auto...) __attribute__((always_inline)) {});
        });
}

template <class T>
void strip_above(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, double* s,
                 T* k, bool near) {
    if (width < Lanes<T>::width)
        strip_above_of<T, true, true>(y, stride, n, width, at, count, t, s, k);
    else
        (near ? strip_above_of<T, false, true> : strip_above_of<T, false, false>)(y, stride, n, width, at, count, t, s, k);
}

template <class T, bool Partial, bool Near>
void strip_gap_of(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, double* s,
                  double* error, T* k, T* below, T* above) {
    using L = Lanes<T>;
    over_blocks<T, Near>(
        y, stride, n, at, count, [&]<Index R>(const T* row, Index p, Ahead<T>& ahead) __attribute__((always_inline)) {
            const Index lane = p * L::width;
            auto greatest = L::load(below + lane), least = L::load(above + lane);
            strip_block<T, Partial, Near, R, exact_terms<T>, 1>(row, stride, width, ahead, t + lane, s + lane, error + lane, k + lane,
                                                   [&](typename L::Mask m, typename L::Reg x) __attribute__((always_inline)) {
                                                       least = L::min_where(m, least, x);
                                                       greatest = L::max_unless(m, greatest, x);
                                                   });
            L::store(below + lane, greatest), L::store(above + lane, least);
        });
}

template <class T>
void strip_gap(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, double* s, double* error,
               T* k, T* below, T* above, bool near) {
    if (width < Lanes<T>::width)
        strip_gap_of<T, true, true>(y, stride, n, width, at, count, t, s, error, k, below, above);
    else
        (near ? strip_gap_of<T, false, true> : strip_gap_of<T, false, false>)(y, stride, n, width, at, count, t, s, error, k, below,
                                                                            above);
}

}  // namespace normball::NORMBALL_ISA
