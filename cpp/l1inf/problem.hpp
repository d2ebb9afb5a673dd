// What a method for the l1,inf projection is given, and what it must find.
//
// The driver has already ruled out every easy case: the radius is positive and finite, every magnitude is finite and
// well inside the range of double, and the sum of the peaks exceeds the radius. So theta > 0 exists and is unique.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "array.hpp"
#include "scratch.hpp"
#include "view.hpp"

namespace normball {

// Some groups of the matrix, copied, in the order in which they are listed, and a few more, where the last inner axis of the
// view begins; the view may have others, all zero.
struct GroupCopy {
    GroupCopy(std::vector<std::int64_t> which, std::int64_t bytes) : groups(std::move(which)), memory(bytes) {}
    std::vector<std::int64_t> groups, more;
    ScratchBytes memory;
    View view;
};

// theta, and for each group the cap mu_j >= 0 and the number of members strictly above it. A zero group has mu_j = 0
// and clipped_j = 0. For a point of the ball theta is 0 and the caps are the peaks.
struct Solution {
    double theta = 0.0;
    Array<double> mu;
    Array<std::int64_t> clipped;
    Array<std::size_t> active;  // the groups that are not zero, unless their caps cancel
    Array<double> sums;         // of the groups, above 0 wherever a member is not 0; empty where the method does not tell
    bool interior = false;
    double reads = 0.0;             // reads of the matrix, in matrices
    std::int64_t order_steps = 0;  // the J of the paper, for the method that walks its total order
    // Panels of l1inf/panels.hpp, with all the groups that are not zero, where the method made any. To be destroyed by the
    // thread that made it.
    std::shared_ptr<const GroupCopy> copy;
};

// The groups of one problem as the textbook methods see them: sums and peaks of the magnitudes, which one read of the
// matrix has given already, and the magnitudes of any one group, copied on demand.
class Groups {
public:
    Groups(std::int64_t count, std::int64_t members, const double* sums, const double* peaks)
        : count_(count), members_(members), sums_(sums), peaks_(peaks) {}
    virtual ~Groups() = default;

    std::int64_t count() const { return count_; }
    std::int64_t members() const { return members_; }
    double sum(std::int64_t group) const { return sums_[group]; }
    double peak(std::int64_t group) const { return peaks_[group]; }

    // Writes the magnitudes of the group, in no particular order, to members() doubles.
    virtual void load(std::int64_t group, double* magnitudes) const = 0;

private:
    std::int64_t count_;
    std::int64_t members_;
    const double* sums_;
    const double* peaks_;
};

}  // namespace normball
