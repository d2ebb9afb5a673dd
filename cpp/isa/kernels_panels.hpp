// Groups that lie side by side, picked out into panels, and laid back among zeros: see l1inf/panels.hpp.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

template <class T, bool Partial>
void strip_pick_of(const T* y, Index stride, Index rows, Index width, const Pick* picks, const Index* ends, Index panels,
                   T* to, Index apart) {
    using L = Lanes<T>;
    for (Index r = 0; r < rows; ++r, y += stride, to += L::width)
        for (Index q = 0, p = 0; q < panels; ++q) {
            auto all = L::all(0);
            for (; p < ends[q]; ++p) {
                const T* from = y + picks[p].at;
                all = L::pick(all, picks[p].to, Partial ? L::load_first(from, width) : L::load(from), picks[p].from);
            }
            __builtin_prefetch(to + q * apart + 8 * L::width, 1);
            L::store(to + q * apart, all);
        }
}

template <class T>
void strip_pick(const T* y, Index stride, Index rows, Index width, const Pick* picks, const Index* ends, Index panels, T* to,
                Index apart) {
    (width < Lanes<T>::width ? strip_pick_of<T, true> : strip_pick_of<T, false>)(y, stride, rows, width, picks, ends, panels,
                                                                              to, apart);
}

// The bits of a register of columns that begins anywhere.
template <class T>
unsigned bits_from(const std::uint8_t* picked, Index column) {
    std::uint32_t word;
    __builtin_memcpy(&word, picked + column / 8, sizeof word);
    return (word >> column % 8) & ((1u << Lanes<T>::width) - 1u);
}

// R rows at once, for which the bits are looked at once.
template <class T, bool Stream, Index R>
void strip_lay_rows(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride,
                    Index width, const std::uint8_t* picked) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const Index room = (panels + 2) * W;
    for (Index q = 0; q < panels; ++q) {
        const auto cap = L::load(caps + q * W), low = L::minus(cap);
        for (Index r = 0; r < R; ++r)
            L::store(row + r * room + q * W, L::max(L::min(L::load(from + q * apart + r * W), cap), low));
    }
    const T* next = row + skip;
    const auto some = [&](Index i, Index n) __attribute__((always_inline)) {
        const unsigned bits = bits_from<T>(picked, i) & ((1u << n) - 1u);
        for (Index r = 0; r < R; ++r) L::store_first(x + r * stride + i, n, L::expand(next + r * room, bits));
        next += popcount(bits);
    };
    Index i = Stream ? to_alignment(x, width) : 0;
    if (i > 0) some(0, i);
    for (; i + W <= width; i += W) {
        const unsigned bits = bits_from<T>(picked, i);
        for (Index r = 0; r < R; ++r) put<T, Stream>(x + r * stride + i, L::expand(next + r * room, bits));
        next += popcount(bits);
    }
    if (i < width) some(i, width - i);
}

template <class T, bool Stream>
void strip_lay_to(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride, Index rows,
                  Index width, const std::uint8_t* picked) {
    // Rows can be streamed together if they are aligned alike.
    const bool together = !Stream || stride % Lanes<T>::width == 0;
    for (Index r = 0, n; r < rows; r += n) {
        n = together && rows - r >= rows_laid ? rows_laid : 1;
        (n == 1 ? strip_lay_rows<T, Stream, 1> : strip_lay_rows<T, Stream, rows_laid>)(
            from + r * Lanes<T>::width, apart, panels, skip, caps, row, x + r * stride, stride, width, picked);
    }
}

template <class T>
void strip_lay(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride, Index rows,
               Index width, const std::uint8_t* picked, bool stream) {
    (stream ? strip_lay_to<T, true> : strip_lay_to<T, false>)(from, apart, panels, skip, caps, row, x, stride, rows, width,
                                                           picked);
}

template <class T>
PanelKernels<T> panel_table() {
    return {.pick = strip_pick<T>, .lay = strip_lay<T>};
}

}  // namespace normball::NORMBALL_ISA
