// A vector whose memory is kept for the next one, and whose new elements hold nothing yet.
//
// A call needs a dozen arrays with an entry for each group. To get them from the system and give them back, call by call, costs
// more than what is done with them: each page is cleared and mapped anew.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace normball {

// Pieces of memory, and some that a thread has given back: 8 MB at most. Small ones are left to the system, which has them ready.
class KeptPieces {
public:
    KeptPieces() = default;
    KeptPieces(const KeptPieces&) = delete;
    KeptPieces& operator=(const KeptPieces&) = delete;
    ~KeptPieces() {
        for (const Piece& piece : pieces_)
            if (piece.size > 0) give_back(piece.memory);
    }

    void* take(std::size_t bytes) {
        if (bytes < least) return ::operator new(bytes);
        const std::size_t size = rounded(bytes);
        for (Piece& piece : pieces_)
            if (piece.size == size) return held_ -= size, piece.size = 0, std::exchange(piece.memory, nullptr);
        // Arrays that begin alike within their pages compete for the same few places in the nearest cache.
        const std::size_t ahead = line + next_++ % 61 * line;
        char* const whole = static_cast<char*>(std::aligned_alloc(line, size + 64 * line));
        if (whole == nullptr) throw std::bad_alloc();
        char* const memory = whole + ahead;
        *reinterpret_cast<void**>(memory - line) = whole;
        return memory;
    }

    void keep(void* memory, std::size_t bytes) {
        if (bytes < least) return ::operator delete(memory);
        const std::size_t size = rounded(bytes);
        for (Piece& piece : pieces_) {
            if (piece.size > 0 || held_ + size > most_held) continue;
            piece = {memory, size}, held_ += size;
            return;
        }
        give_back(memory);
    }

private:
    static constexpr std::size_t line = 64, least = std::size_t(1) << 12, most_held = std::size_t(1) << 23;

    struct Piece {
        void* memory = nullptr;
        std::size_t size = 0;
    };

    // So that a piece serves all arrays of about its size.
    static std::size_t rounded(std::size_t bytes) {
        const std::size_t step = std::max(std::bit_floor(bytes) / 8, least);
        return (bytes + step - 1) / step * step;
    }
    static void give_back(void* memory) { std::free(*reinterpret_cast<void**>(static_cast<char*>(memory) - line)); }

    std::array<Piece, 24> pieces_;
    std::size_t next_ = 0, held_ = 0;
};

inline thread_local KeptPieces kept_pieces;

template <class T>
struct Keeping {
    using value_type = T;
    Keeping() = default;
    template <class U>
    Keeping(const Keeping<U>&) {}

    T* allocate(std::size_t n) { return static_cast<T*>(kept_pieces.take(n * sizeof(T))); }
    void deallocate(T* memory, std::size_t n) { kept_pieces.keep(memory, n * sizeof(T)); }
    template <class U>
    void construct(U*) {}
    template <class U, class First, class... Rest>
    void construct(U* at, First&& first, Rest&&... rest) {
        ::new (static_cast<void*>(at)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
    }
    friend bool operator==(const Keeping&, const Keeping&) { return true; }
};

// Of numbers alone.
template <class T>
using Array = std::vector<T, Keeping<T>>;

}  // namespace normball
