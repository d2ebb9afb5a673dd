// The only file with threads: a team that lives as long as one call.
//
// Nobody waits for a worker that has not come, because all the CPUs are taken: by another program, or by the threads of
// another library, which go on spinning for a while after their work. Such a worker finds the doors closed when it gets
// a CPU, and goes. Nothing else outlives the call, so forks, concurrent callers and interpreter shutdown need no care.
// Work is cut into chunks by the shape of the problem alone and each chunk writes only what is its own, so results do not
// depend on the size of the team.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace normball {

// Elements that one task reads, whatever the number of threads: the order of all sums depends on the shape alone.
inline constexpr std::int64_t piece_elements = std::int64_t(1) << 16;

class Team {
public:
    explicit Team(int threads) : threads_(threads) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    ~Team() {
        if (!room_) return;
        {
            std::lock_guard lock(room_->mutex);
            room_->closed = true;
        }
        room_->wake.notify_all();
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
        Room& room = *room_;
        {
            std::lock_guard lock(room.mutex);
            room.count = count;
            room.next.store(0);
            room.body = std::ref(body);
            room.failure = nullptr;
            room.open = true;
            ++room.round;
        }
        room.wake.notify_all();
        room.work();
        std::unique_lock lock(room.mutex);
        room.open = false;
        room.done.wait(lock, [&] { return room.working == 0; });
        if (room.failure) std::rethrow_exception(room.failure);
    }

private:
    // What the workers share; the last to leave switches off the light.
    struct Room {
        std::mutex mutex;
        std::condition_variable wake, done;
        std::function<void(std::int64_t)> body;
        std::atomic<std::int64_t> next{0};
        std::int64_t count = 0;
        std::exception_ptr failure;
        int working = 0;
        std::uint64_t round = 0;
        bool open = false, closed = false;

        void serve() {
            for (std::uint64_t seen = 0;;) {
                {
                    std::unique_lock lock(mutex);
                    wake.wait(lock, [&] { return closed || (open && round != seen); });
                    if (closed) return;
                    seen = round;
                    ++working;
                }
                work();
                std::lock_guard lock(mutex);
                if (--working == 0) done.notify_one();
            }
        }

        void work() {
            try {
                for (std::int64_t i; (i = next.fetch_add(1)) < count;) body(i);
            } catch (...) {
                next.store(count);
                std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
        }
    };

    // Workers are hired at the first parallel loop; where the system gives fewer, those do.
    void hire() {
        if (room_) return;
        room_ = std::make_shared<Room>();
        for (int worker = 1; worker < threads_; ++worker) {
            try {
                std::thread([room = room_] { room->serve(); }).detach();
            } catch (const std::system_error&) {
                threads_ = worker;
            }
        }
    }

    int threads_;
    std::shared_ptr<Room> room_;
};

}  // namespace normball
