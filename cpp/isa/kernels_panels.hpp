// Groups that lie side by side, picked out into panels, and laid back among zeros: see l1inf/panels.hpp.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

// R rows at once, because each pick waits for the one before; those that lie so far before them are asked for.
template <class T, bool Partial, bool Near, Index R>
void strip_pick_rows(const T* y, Index stride, Index width, Index ahead, const Pick* picks, const Index* ends, Index panels,
                     T* to, Index apart) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    for (Index q = 0, p = 0; q < panels; ++q) {
        typename L::Reg all[R];
        for (auto& lanes : all) lanes = L::all(0);
        for (; p < ends[q]; ++p) {
            const T* from = y + picks[p].at;
            for (Index r = 0; r < R; ++r, from += stride) {
                if (!Near) ask_for(from - ahead);
                all[r] = L::pick(all[r], picks[p].to, Partial ? L::load_first(from, width) : L::load(from), picks[p].from);
            }
        }
        T* const panel = to + q * apart;
        // There are more panels than the hardware follows.
        for (Index r = 0; r < R; ++r) __builtin_prefetch(panel + (r - 2 * R) * W, 1), L::store(panel + r * W, all[r]);
    }
}

template <class T, bool Partial, bool Near>
void strip_pick_of(const T* y, Index stride, Index rows, Index width, const Pick* picks, const Index* ends, Index panels,
                   T* to, Index apart) {
    // From the last row to the first, which is how the tasks follow one another. Enough must be on their way where there is
    // little to pick from a row.
    const Index total = panels > 0 ? ends[panels - 1] : 0, ahead = (total <= 4 ? 32 : total <= 16 ? 16 : 8) * stride;
    for (Index r = rows, n; r > 0;) {
        n = r >= 8 ? 8 : r >= 4 ? 4 : 1;
        r -= n;
        const auto some = n == 8   ? strip_pick_rows<T, Partial, Near, 8>
                          : n == 4 ? strip_pick_rows<T, Partial, Near, 4>
                                   : strip_pick_rows<T, Partial, true, 1>;
        some(y + r * stride, stride, width, ahead, picks, ends, panels, to + r * Lanes<T>::width, apart);
    }
}

template <class T>
void strip_pick(const T* y, Index stride, Index rows, Index width, const Pick* picks, const Index* ends, Index panels, T* to,
                Index apart, bool near) {
    const auto by = width < Lanes<T>::width ? strip_pick_of<T, true, true>
                    : near                  ? strip_pick_of<T, false, true>
                                            : strip_pick_of<T, false, false>;
    by(y, stride, rows, width, picks, ends, panels, to, apart);
}

// The bits of a register of columns that begins anywhere.
template <class T>
unsigned bits_from(const std::uint8_t* picked, Index column) {
    std::uint32_t word;
    __builtin_memcpy(&word, picked + column / 8, sizeof word);
    return (word >> column % 8) & ((1u << Lanes<T>::width) - 1u);
}

// R rows at once, `step` rows from one to the next, which are aligned alike: the bits are looked at once for all of them.
// `Blank`: zeros are there already.
template <class T, bool Stream, bool Blank, Index R>
void strip_lay_rows(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride,
                    Index step, Index width, const std::uint8_t* picked) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const Index room = (panels + 2) * W;
    for (Index q = 0; q < panels; ++q) {
        const auto cap = L::load(caps + q * W), low = L::minus(cap);
        for (Index r = 0; r < R; ++r) {
            const T* const v = from + q * apart + r * step * W;
            if (Stream) ask_for(v + R * step * W);
            L::store(row + r * room + q * W, L::max(L::min(L::load(v), cap), low));
        }
    }
    const T* next = row + skip;
    const auto some = [&](Index i, Index n) __attribute__((always_inline)) {
        const unsigned bits = bits_from<T>(picked, i) & ((1u << n) - 1u);
        const auto order = L::order(bits);
        for (Index r = 0; r < R; ++r) L::store_first(x + r * step * stride + i, n, L::expand(next + r * room, order));
        next += popcount(bits);
    };
    Index i = to_alignment(x, width);
    if (i > 0) some(0, i);
    for (; i + W <= width; i += W) {
        const unsigned bits = bits_from<T>(picked, i);
        if (bits == 0) {
            for (Index r = 0; r < R && !Blank; ++r) put<T, Stream>(x + r * step * stride + i, L::all(0));
            continue;
        }
        const auto order = L::order(bits);
        for (Index r = 0; r < R; ++r) put<T, Stream>(x + r * step * stride + i, L::expand(next + r * room, order));
        next += popcount(bits);
    }
    if (i < width) some(i, width - i);
}

template <class T, bool Stream, bool Blank>
void strip_lay_to(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride, Index rows,
                  Index width, const std::uint8_t* picked) {
    constexpr Index W = Lanes<T>::width;
    const Index step = rows_to_alignment<T>(stride);
    Index r = 0;
    for (; r + rows_laid * step <= rows; r += rows_laid * step)
        for (Index k = r; k < r + step; ++k)
            strip_lay_rows<T, Stream, Blank, rows_laid>(from + k * W, apart, panels, skip, caps, row, x + k * stride, stride, step,
                                                 width, picked);
    for (; r < rows; ++r)
        strip_lay_rows<T, Stream, Blank, 1>(from + r * W, apart, panels, skip, caps, row, x + r * stride, stride, 1, width,
                                            picked);
}

template <class T>
void strip_lay(const T* from, Index apart, Index panels, Index skip, const T* caps, T* row, T* x, Index stride, Index rows,
               Index width, const std::uint8_t* picked, bool stream, bool blank) {
    const auto by = stream  ? blank ? strip_lay_to<T, true, true> : strip_lay_to<T, true, false>
                    : blank ? strip_lay_to<T, false, true>
                            : strip_lay_to<T, false, false>;
    by(from, apart, panels, skip, caps, row, x, stride, rows, width, picked);
}

template <class T>
PanelKernels<T> panel_table() {
    return {.pick = strip_pick<T>, .lay = strip_lay<T>};
}

}  // namespace normball::NORMBALL_ISA
