#include "tide_known_files.h"

#include <stdlib.h>
#include <string.h>

typedef struct known_file {
    tide_file_identity file;
    char id[TIDE_BLOB_ID_SIZE];
} known_file;

struct tide_known_files {
    known_file *slots;
    uint32_t capacity, count;
};

tide_known_files *tide_known_files_create(void) { return calloc(1, sizeof(tide_known_files)); }

void tide_known_files_destroy(tide_known_files *files) {
    if (!files) return;
    free(files->slots);
    free(files);
}

/// The slot of a device and inode, or the free one where it would go. An empty identifier marks a free slot.
static known_file *slot_find(const tide_known_files *files, const tide_file_identity *file) {
    uint64_t mixed = (file->inode ^ file->device << 40) * 0x9e3779b97f4a7c15;
    for (uint32_t i = (uint32_t)(mixed >> 32);; i++) {
        known_file *slot = &files->slots[i & (files->capacity - 1)];
        if (!slot->id[0] || (slot->file.inode == file->inode && slot->file.device == file->device)) return slot;
    }
}

static bool grow(tide_known_files *files) {
    tide_known_files larger = {.capacity = files->capacity ? files->capacity * 2 : 1024, .count = files->count};
    if (!(larger.slots = calloc(larger.capacity, sizeof *larger.slots))) return false;
    for (uint32_t i = 0; i < files->capacity; i++) {
        if (files->slots[i].id[0]) *slot_find(&larger, &files->slots[i].file) = files->slots[i];
    }
    free(files->slots);
    *files = larger;
    return true;
}

void tide_known_files_add(tide_known_files *files, const tide_file_identity *file, const char *id) {
    if (strlen(id) >= TIDE_BLOB_ID_SIZE || files->count >= tide_known_files_limit) return;
    if (files->count >= files->capacity - files->capacity / 4 && !grow(files)) return;
    known_file *slot = slot_find(files, file);
    if (!slot->id[0]) files->count++;
    slot->file = *file;
    strcpy(slot->id, id);
}

bool tide_known_files_find(const tide_known_files *files, const tide_file_identity *file, char id[TIDE_BLOB_ID_SIZE]) {
    if (files->count == 0) return false;
    const known_file *slot = slot_find(files, file);
    if (!slot->id[0] || slot->file.size != file->size || slot->file.modified != file->modified ||
        slot->file.changed != file->changed) {
        return false;
    }
    memcpy(id, slot->id, TIDE_BLOB_ID_SIZE);
    return true;
}
