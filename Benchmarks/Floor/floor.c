/// The raw floors that imports are measured against: SQLite, hashing and files driven from C with nothing in between.

#include "floor.h"

static const char usage[] =
    "usage: floor insert DATABASE --records N [database options] [--sorted] [--seed S]\n"
    "       floor unchanged DATABASE --records N [...]        look up and compare, on a database that `insert` makes\n"
    "       floor update-one-field DATABASE --records N [...] a new caption in every row of such a database\n"
    "       floor hash FOLDER [--threads 1|2]                 read every file and hash it; both without --threads\n"
    "       floor intake FOLDER DESTINATION [--threads 1|2] [--direct 0|1]\n"
    "                                                         copy every file to a durable place named by its hash\n"
    "       floor sync FOLDER --records N [database options]  from a store to a cloud, and from there to another store;\n"
    "                                                         the page size is the cloud's\n"
    "       floor places STORE                                read keys and zones of a store's Destination records\n"
    "       floor whole MANIFEST DESTINATION [database options] [--direct 0|1]\n"
    "\n"
    "database options: --page-size BYTES, --batch ROWS, --cache MIB, --checkpoint MIB (of WAL; 0: only at the end)\n"
    "\n"
    "Prints `name seconds rows bytes` for each measurement.\n";

/// What `whole` does is what measured fastest of all that a store of modest memory could do; see the README.
static const floor_subcommand subcommands[] = {
    {"insert", floor_insert, 1, true, {.page_size = 4096, .batch = 5000, .cache = 64, .seed = 1}},
    {"unchanged", floor_unchanged, 1, true, {.page_size = 4096, .batch = 5000, .cache = 64, .seed = 1}},
    {"update-one-field", floor_update_one_field, 1, true, {.page_size = 4096, .batch = 5000, .cache = 64, .seed = 1}},
    {"hash", floor_hash, 1, false, {0}},
    {"intake", floor_intake, 2, false, {0}},
    {"sync", floor_sync, 1, true, {.page_size = 4096, .batch = 400, .cache = 64, .checkpoint = 64, .seed = 1}},
    {"places", floor_places, 1, false, {0}},
    {"whole", floor_whole, 2, false,
     {.page_size = 16384, .batch = 10000, .cache = 64, .checkpoint = 64, .sorted = true, .direct = true}},
};

int main(int count, char **arguments) {
    return floor_run(count, arguments, usage, subcommands, sizeof(subcommands) / sizeof(subcommands[0]));
}
