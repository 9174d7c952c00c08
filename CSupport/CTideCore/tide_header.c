#include "tide_header.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

tide_status tide_header_read(const char *path, uint8_t *header, tide_error *error) {
    memset(header, 0, TIDE_HEADER_SIZE);
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (!vfs) return tide_error_set(error, TIDE_SQLITE_ERROR, 0, "SQLite has no file layer");
    // SQLite expects the name of a database in a form of its own.
    const char *name = sqlite3_create_filename(path, "", "", 0, NULL);
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    if (!name || !file) {
        sqlite3_free_filename((void *)name);
        free(file);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    int code = vfs->xOpen(vfs, name, file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW, NULL);
    if (code == SQLITE_OK) code = file->pMethods->xRead(file, header, TIDE_HEADER_SIZE, 0);
    if (file->pMethods) file->pMethods->xClose(file);
    free(file);
    sqlite3_free_filename((void *)name);
    // After a short read, SQLite has filled the rest with zeros.
    if (code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ) return TIDE_OK;
    tide_status status = (code & 0xff) == SQLITE_NOMEM ? TIDE_NO_MEMORY : TIDE_IO_ERROR;
    return tide_error_set(error, status, code, "cannot read %s: %s", path, sqlite3_errstr(code));
}
