/// Files that were taken in before, by what the file system says of them: a set that is filled before intake begins and then only read.

#ifndef TIDE_KNOWN_FILES_H
#define TIDE_KNOWN_FILES_H

#include "tide_blob.h"

typedef struct tide_known_files tide_known_files;

enum { tide_known_files_limit = 200000 };

tide_known_files *tide_known_files_create(void);
void tide_known_files_destroy(tide_known_files *files);

/// Adds a file; the last one added under a device and inode counts. Beyond the limit, and when memory runs out, it is left out: it
/// will be read again.
void tide_known_files_add(tide_known_files *files, const tide_file_identity *file, const char *id);

/// The blob that a file became, or false. All of the identity must be as it was.
bool tide_known_files_find(const tide_known_files *files, const tide_file_identity *file, char id[TIDE_BLOB_ID_SIZE]);

#endif
