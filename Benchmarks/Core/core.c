/// The hot paths of an import through the C core's public headers, beside the floors of the same names.

#include "core.h"

static const char usage[] =
    "usage: core insert DATABASE --records N [record options]\n"
    "       core unchanged DATABASE --records N [...]         the same records again, on a database that `insert` makes\n"
    "       core update-one-field DATABASE --records N [...]  the same records with new captions, on such a database\n"
    "       core hash FOLDER [--threads 1|2]                  take every file in as a dry run; both without --threads\n"
    "       core intake FOLDER DESTINATION [--threads 1|2]    take every file in, durably\n"
    "\n"
    "record options: --page-size BYTES, --batch ROWS, --seed S\n"
    "                --schema FILE, SQL that makes the tables of a store; needed where there is no DATABASE yet\n"
    "\n"
    "Prints `name seconds rows bytes` for each measurement.\n";

static const floor_subcommand subcommands[] = {
    {"insert", core_insert, 1, true, {.page_size = 16384, .batch = 10000, .seed = 1}},
    {"unchanged", core_unchanged, 1, true, {.page_size = 16384, .batch = 10000, .seed = 1}},
    {"update-one-field", core_update_one_field, 1, true, {.page_size = 16384, .batch = 10000, .seed = 1}},
    {"hash", core_hash, 1, false, {0}},
    {"intake", core_intake, 2, false, {0}},
};

void core_check(tide_status status, const tide_error *error) {
    if (status != TIDE_OK) floor_fail(0, "status %d: %s", status, error->message);
}

int main(int count, char **arguments) {
    return floor_run(count, arguments, usage, subcommands, sizeof(subcommands) / sizeof(subcommands[0]));
}
