// Uninitialised elements for the time of a scope. Fresh memory costs more to map than the work done in it, so each
// thread keeps one piece of moderate size between calls.
#pragma once

#include <cstdint>
#include <memory>

namespace normball {

template <class T>
class Scratch {
public:
    explicit Scratch(std::int64_t n) {
        if (n * static_cast<std::int64_t>(sizeof(T)) > kept_bytes || in_use) {
            own_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
            return;
        }
        if (!kept) kept = std::make_unique_for_overwrite<T[]>(kept_bytes / sizeof(T));
        in_use = keeps_ = true;
    }
    ~Scratch() {
        if (keeps_) in_use = false;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    T* get() const { return keeps_ ? kept.get() : own_.get(); }

private:
    static constexpr std::int64_t kept_bytes = std::int64_t(9) << 18;  // 2.25 MB
    static inline thread_local std::unique_ptr<T[]> kept;
    static inline thread_local bool in_use = false;
    std::unique_ptr<T[]> own_;
    bool keeps_ = false;
};

}  // namespace normball
