#!/usr/bin/env python3
"""Simulates how accounts that differ in size spread over shards that are chosen by a hash of the owner.

An account's records follow a Pareto distribution that is cut at the largest account: with the exponent 1.16 the largest fifth of the accounts
has four fifths of the records. For each number of shards it prints the fullest one beside the mean, the median of some rounds with the least
and the most, and the share of the largest account. A shard holds whole accounts, so no placement by owner can do better than the largest account.

Examples:
  placement.py                                  1,000,000 accounts, 1 to 1024 shards
  placement.py --accounts 10000000 --rounds 3
"""

import argparse
import json
import random
import statistics
import sys


def sizes(count, exponent, mean, most, source):
    """The records of each account: a Pareto distribution, scaled to a mean."""
    smallest = mean * (exponent - 1) / exponent
    return [min(most, smallest * source.paretovariate(exponent)) for _ in range(count)]


def placed(accounts, shards, source):
    """The fullest shard beside the mean one."""
    sums = [0.0] * shards
    # A hash of the owner's name is as good as a random number.
    choose = source.randrange if shards > 1 else (lambda _: 0)
    for size in accounts:
        sums[choose(shards)] += size
    return max(sums) * shards / sum(sums)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--exponent", type=float, default=1.16, help="of the Pareto distribution, more than 1 (1.16)")
    parser.add_argument("--mean", type=float, default=1000, help="records of an account (1000)")
    parser.add_argument("--most", type=float, default=10_000_000, help="records of the largest account (10000000)")
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 4, 16, 64, 256, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.exponent <= 1 or options.accounts < 1 or options.rounds < 1 or min(options.shards) < 1:
        parser.error("the exponent is more than 1, and there is an account, a round and a shard at least")
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    source = random.Random(seed)
    print(f"seed {seed}", file=sys.stderr)
    rows = {shards: [] for shards in options.shards}
    largest = []
    for number in range(options.rounds):
        accounts = sizes(options.accounts, options.exponent, options.mean, options.most, source)
        largest.append(max(accounts) / sum(accounts))
        for shards in options.shards:
            rows[shards].append(placed(accounts, shards, source))
            if sys.stderr.isatty():
                print(f"\rround {number + 1} of {options.rounds}, {shards} shards ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    if options.json:
        print(json.dumps({"seed": seed, "accounts": options.accounts, "largest": largest, "shards": rows}))
        return
    print(f"{options.accounts:,} accounts; the largest has {statistics.median(largest):.2%} of all records")
    print("| shards | accounts of each | the fullest beside the mean | least – most |")
    print("|---|---|---|---|")
    for shards, found in rows.items():
        print(f"| {shards} | {options.accounts // shards:,} | {statistics.median(found):.2f} | {min(found):.2f} – {max(found):.2f} |")


if __name__ == "__main__":
    main()
