// The only file with threads: a team that lives as long as one call.
//
// Nothing outlives the call, so forks, concurrent callers and interpreter shutdown need no care. Work is cut into
// chunks by the shape of the problem alone and each chunk writes only what is its own, so results do not depend on the
// size of the team.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace normball {

// Elements that one task reads, whatever the number of threads: the order of all sums depends on the shape alone.
inline constexpr std::int64_t piece_elements = std::int64_t(1) << 16;

class Team {
public:
    explicit Team(int threads) : threads_(threads) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    ~Team() {
        {
            std::lock_guard lock(mutex_);
            ending_ = true;
        }
        wake_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    int threads() const { return threads_; }

    // body(i) for every i in [0, count), in any order, on this thread and the workers; rethrows the first exception.
    template <class Body>
    void run(std::int64_t count, Body body) {
        if (threads_ <= 1 || count <= 1) {
            for (std::int64_t i = 0; i < count; ++i) body(i);
            return;
        }
        hire();
        {
            std::lock_guard lock(mutex_);
            count_ = count;
            next_.store(0);
            body_ = std::ref(body);
            failure_ = nullptr;
            busy_ = static_cast<int>(workers_.size());
            ++round_;
        }
        wake_.notify_all();
        work();
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    // Workers are hired at the first parallel loop; where the system gives fewer, those do.
    void hire() {
        while (static_cast<int>(workers_.size()) < threads_ - 1) {
            try {
                workers_.emplace_back([this] { serve(); });
            } catch (const std::system_error&) {
                threads_ = static_cast<int>(workers_.size()) + 1;
            }
        }
    }

    void serve() {
        for (std::uint64_t seen = 0;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return ending_ || round_ != seen; });
                if (ending_) return;
                seen = round_;
            }
            work();
            std::lock_guard lock(mutex_);
            if (--busy_ == 0) done_.notify_one();
        }
    }

    void work() {
        try {
            for (std::int64_t i; (i = next_.fetch_add(1)) < count_;) body_(i);
        } catch (...) {
            next_.store(count_);
            std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    int threads_;
    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(std::int64_t)> body_;
    std::atomic<std::int64_t> next_{0};
    std::int64_t count_ = 0;
    std::exception_ptr failure_;
    int busy_ = 0;
    std::uint64_t round_ = 0;
    bool ending_ = false;
};

}  // namespace normball
