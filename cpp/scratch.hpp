// Uninitialised elements for the time of a scope. Fresh memory costs more to map than the work done in it, so each
// thread keeps the largest piece of moderate size that it had between calls, and larger ones lie in large pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "pages.hpp"

namespace normball {

class ScratchBytes {
public:
    static constexpr std::int64_t most_kept = std::int64_t(1) << 24;  // 16 MB

    explicit ScratchBytes(std::int64_t bytes) {
        if (bytes > most_kept || in_use) {
            own_ = allocate(bytes);
            return;
        }
        if (bytes > kept_size) {
            kept_size = 0, kept.reset();
            kept = allocate(std::max(bytes, least_kept));
            kept_size = std::max(bytes, least_kept);
        }
        in_use = keeps_ = true;
    }
    ~ScratchBytes() {
        if (keeps_) in_use = false;
    }
    ScratchBytes(const ScratchBytes&) = delete;
    ScratchBytes& operator=(const ScratchBytes&) = delete;
    void* get() const { return keeps_ ? kept.get() : own_.get(); }

private:
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    using Memory = std::unique_ptr<void, Free>;

    static constexpr std::int64_t least_kept = std::int64_t(1) << 18;
    static constexpr std::size_t line_bytes = 64;

    static Memory allocate(std::int64_t bytes) {
        const auto size = (static_cast<std::size_t>(bytes) + line_bytes) / line_bytes * line_bytes;
        Memory memory(std::aligned_alloc(line_bytes, size));
        if (!memory) throw std::bad_alloc();
        if (bytes > most_kept) ask_for_large_pages(static_cast<char*>(memory.get()), bytes);
        return memory;
    }

    static inline thread_local Memory kept;
    static inline thread_local std::int64_t kept_size = 0;
    static inline thread_local bool in_use = false;
    Memory own_;
    bool keeps_ = false;
};

template <class T>
class Scratch {
public:
    explicit Scratch(std::int64_t n) : bytes_(n * static_cast<std::int64_t>(sizeof(T))) {}
    T* get() const { return static_cast<T*>(bytes_.get()); }

private:
    ScratchBytes bytes_;
};

}  // namespace normball
