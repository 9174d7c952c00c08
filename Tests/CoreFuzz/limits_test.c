// Goal: compressed data may expand as far as documented, and no farther: to 1 GiB, or to 200 times its size.
// Method: the rule itself, at its borders: archives of that size take minutes.

#include <stdio.h>

#include "../../CSupport/CTideManifest/tide_archive_limits.h"

enum { count = 10 };

int main(void) {
    static const uint64_t gibibyte = 1u << 30;
    const struct { uint64_t bytes_in, bytes_out; bool is_too_far; } cases[count] = {
        {0, 0, false},
        {1, 201, false},
        {1, 1000000, false},
        // To 1 GiB, whatever it was.
        {1, gibibyte, false},
        {1, gibibyte + 1, true},
        {0, gibibyte + 1, true},
        {1, 2 * gibibyte, true},
        // Beyond, to 200 times the size.
        {gibibyte, gibibyte + 1, false},
        {gibibyte, 200 * gibibyte, false},
        {gibibyte, 200 * (gibibyte + 1), true},
    };
    int failures = 0;
    for (int i = 0; i < count; i++) {
        if (tide_archive_expands_too_far(cases[i].bytes_in, cases[i].bytes_out) == cases[i].is_too_far) continue;
        fprintf(stderr, "limits: failed: case %d\n", i);
        failures++;
    }
    if (failures == 0) puts("limits: passed");
    return failures != 0;
}
