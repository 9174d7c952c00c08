/// Damages the store on the disk in memory, and looks whether it is told.

#ifndef DAMAGE_H
#define DAMAGE_H

#include <stdint.h>

/// How many damages were called damage of the database, told with the row, or read by nothing.
typedef struct damage_counts {
    int refused, reported, harmless;
} damage_counts;

/// Damages the file of the store at so many points, one after the other. The log of the store is empty.
damage_counts damage_run(uint64_t seed, int points);

#endif
