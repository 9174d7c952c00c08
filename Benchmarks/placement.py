#!/usr/bin/env python3
"""Simulates how evenly accounts of different sizes spread over shards that are chosen by a hash of the owner.

The records of the accounts follow a Pareto distribution that is cut at the largest account. With the exponent 1.16 the largest fifth of the accounts
has four fifths of the records. For each number of shards it prints the fullest shard divided by the mean, as the median of some rounds with the least
and the greatest, and the share of the largest account. A shard holds whole accounts, so no placement by owner can do better than the largest account.
It also prints the same with a table that puts the largest accounts on the emptiest shards, and leaves the others to the hash.

Examples:
  placement.py                                  1,000,000 accounts, 1 to 1024 shards
  placement.py --accounts 10000000 --rounds 3
"""

import argparse
import heapq
import json
import random
import statistics
import sys


def sizes(count, exponent, mean, most, source):
    """Returns the records of each account: a Pareto distribution, scaled to a mean and cut at `most`."""
    smallest = mean * (exponent - 1) / exponent
    return [min(most, smallest * source.paretovariate(exponent)) for _ in range(count)]


def placed(accounts, shards, source, known):
    """Returns the fullest shard divided by the mean: by a hash alone, and with the `known` largest accounts, which are at the end of `accounts`, on
    the emptiest shards."""
    sums = [0.0] * shards
    # A random number stands for the hash of the owner's name.
    choose = source.randrange if shards > 1 else (lambda _: 0)
    for size in accounts[:len(accounts) - known]:
        sums[choose(shards)] += size
    best = [(size, shard) for shard, size in enumerate(sums)]
    heapq.heapify(best)
    for size in reversed(accounts[len(accounts) - known:]):
        sums[choose(shards)] += size
        emptiest, shard = best[0]
        heapq.heapreplace(best, (emptiest + size, shard))
    mean = sum(sums) / shards
    return max(sums) / mean, max(best)[0] / mean


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--exponent", type=float, default=1.16, help="of the Pareto distribution, more than 1 (1.16)")
    parser.add_argument("--mean", type=float, default=1000, help="records of an account (1000)")
    parser.add_argument("--most", type=float, default=10_000_000, help="records of the largest account (10000000)")
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 4, 16, 64, 256, 1024])
    parser.add_argument("--known", type=int, default=1000, help="the largest accounts that a table places (1000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.exponent <= 1 or options.accounts < 1 or options.rounds < 1 or min(options.shards) < 1:
        parser.error("the exponent is more than 1, and there is an account, a round and a shard at least")
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    source = random.Random(seed)
    print(f"seed {seed}", file=sys.stderr)
    options.known = min(options.known, options.accounts)
    rows, tables = ({shards: [] for shards in options.shards} for _ in range(2))
    largest = []
    for number in range(options.rounds):
        accounts = sorted(sizes(options.accounts, options.exponent, options.mean, options.most, source))
        largest.append(max(accounts) / sum(accounts))
        for shards in options.shards:
            by_hash, by_table = placed(accounts, shards, source, options.known)
            rows[shards].append(by_hash)
            tables[shards].append(by_table)
            if sys.stderr.isatty():
                print(f"\rround {number + 1} of {options.rounds}, {shards} shards ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    if options.json:
        print(json.dumps({"seed": seed, "accounts": options.accounts, "exponent": options.exponent, "mean": options.mean, "most": options.most,
                          "known": options.known, "largest": largest, "shards": rows, "tables": tables}))
        return
    print(f"{options.accounts:,} accounts; the largest has {statistics.median(largest):.2%} of all records")
    print(f"| shards | accounts of each | the fullest beside the mean | least – most | with a table of {options.known:,} accounts |")
    print("|---|---|---|---|---|")
    for shards, found in rows.items():
        print(f"| {shards} | {options.accounts // shards:,} | {statistics.median(found):.2f} | {min(found):.2f} – {max(found):.2f} | {statistics.median(tables[shards]):.2f} |")


if __name__ == "__main__":
    main()
