"""Where the blocks of one launch meet: each brings four numbers, and all leave with the same four sums."""

import triton
import triton.language as tl


def _await(words: int) -> tuple[tl.constexpr, tl.constexpr]:
    """Look at so many words until their highest bits are as told: the code, and its registers. Each thread alone."""
    loads = "\n".join(f"ld.relaxed.gpu.global.b64 ${i}, [${words + i}];" for i in range(words))
    checks = [f"shr.u64 mark, ${i}, 63;\nsetp.ne.or.u64 old, mark, ${2 * words + i}, old;" for i in range(words)]
    marks = "\n".join(checks)
    code = f"""{{
.reg .pred old;
.reg .b64 mark;
again:
{loads}
setp.ne.u64 old, 0, 0;
{marks}
@old bra again;
}}"""
    return tl.constexpr(code), tl.constexpr(",".join(["=&l"] * words + ["l"] * (2 * words)))


_AWAIT_1, _USES_1 = _await(1)
_AWAIT_2, _USES_2 = _await(2)
_AWAIT_4, _USES_4 = _await(4)
_MAGNITUDE: tl.constexpr = tl.constexpr(2**63 - 1)


@triton.jit
def sums_in_block(a, b, c, d):
    """Sums of four vectors, taken at once."""
    return tl.sum(tl.join(tl.join(a, c), tl.join(b, d)), 0)


@triton.jit
def in_block(a, b, c, d):
    """Four numbers that a block has already."""
    row = tl.arange(0, 2)[:, None]
    column = tl.arange(0, 2)[None, :]
    return tl.where(row == 0, tl.where(column == 0, a, b), tl.where(column == 0, c, d))


@triton.jit
def _split(x):
    even, odd = tl.split(x)
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a, b, c, d


@triton.jit
def meet(
    place, turn, programs, mine,
    SLOTS: tl.constexpr, WORDS: tl.constexpr, ALONE: tl.constexpr, ORDERED: tl.constexpr = False,
):  # fmt: skip
    """Each block brings four numbers, none below zero; all leave with the sums, taken in the same order by each.

    A place has two sets of slots, which take turns. Every block writes its slot at every turn, and marks it by the
    sign, which changes each time that a set is used: so old numbers are known for what they are. Who writes to a set
    again has seen all the numbers of the turn in between, and those were written by blocks that had read the set.
    With ORDERED, what a block stored before is there for the others, once they have asked for it. A thread that has
    several words to wait for looks at WORDS of them at a time.
    """
    if ALONE:
        return _split(mine)
    else:
        me = tl.program_id(0)
        mark = ((turn >> 1) & 1) ^ 1
        now = place + (turn & 1) * (4 * SLOTS)
        row = tl.arange(0, 2)
        word = (mine.to(tl.int64, bitcast=True) & _MAGNITUDE) | (mark << 63)
        tl.debug_barrier()
        tl.atomic_xchg(
            now + me * 4 + row[:, None] * 2 + row[None, :], word, sem="release" if ORDERED else "relaxed", scope="gpu"
        )
        p = tl.arange(0, SLOTS)[:, None, None] * 4 + row[None, :, None] * 2 + row[None, None, :]
        there = p < programs * 4
        address = (now + tl.where(there, p, me * 4)).to(tl.int64)
        AWAIT: tl.constexpr = _AWAIT_1 if WORDS == 1 else _AWAIT_2 if WORDS == 2 else _AWAIT_4
        USES: tl.constexpr = _USES_1 if WORDS == 1 else _USES_2 if WORDS == 2 else _USES_4
        seen = tl.inline_asm_elementwise(
            AWAIT, USES, [address, mark], dtype=tl.int64, is_pure=False, pack=WORDS
        )  # fmt: skip
        return _split(tl.sum(tl.where(there, (seen & _MAGNITUDE).to(tl.float64, bitcast=True), 0.0), 0))


@triton.jit
def ask(place, SLOTS: tl.constexpr):
    """0, once all that was stored before an ORDERED meeting is there."""
    return tl.atomic_add(place + 8 * SLOTS + 1, 0, sem="acquire", scope="gpu")


@triton.jit
def arrive(place, SLOTS: tl.constexpr, ALONE: tl.constexpr):
    """The turn of the first meeting of this launch."""
    if ALONE:
        return 0
    else:
        return tl.load(place + 8 * SLOTS)


@triton.jit
def leave(place, turn, SLOTS: tl.constexpr, ALONE: tl.constexpr):
    """Leave the turn to the next launch. All blocks have read this launch's before the first meeting."""
    if not ALONE:  # noqa: SIM102
        if tl.program_id(0) == 0:
            tl.store(place + 8 * SLOTS, turn)
