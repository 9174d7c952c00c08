/// What the parts of the program `core` share: Tidemark's C core driven with nothing above it. See also ../Floor/floor.h.

#ifndef CORE_H
#define CORE_H

#include "../Floor/floor.h"

#include "tide_status.h"

void core_insert(const floor_options *options);
void core_unchanged(const floor_options *options);
void core_update_one_field(const floor_options *options);
void core_hash(const floor_options *options);
void core_intake(const floor_options *options);

/// Ends the program with the error's message unless `status` is TIDE_OK.
void core_check(tide_status status, const tide_error *error);

#endif
