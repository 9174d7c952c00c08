#include "tide_status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set(tide_error *error, tide_status status, tide_reject reject, int32_t system, const char *format, va_list arguments) {
    error->status = status;
    error->reject = reject;
    error->system = system;
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

tide_status tide_error_set(tide_error *error, tide_status status, int32_t system, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        set(error, status, TIDE_REJECT_NONE, system, format, arguments);
        va_end(arguments);
    }
    return status;
}

tide_status tide_error_reject(tide_error *error, tide_reject reject, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        set(error, TIDE_REJECTED, reject, 0, format, arguments);
        va_end(arguments);
    }
    return TIDE_REJECTED;
}

tide_status tide_error_errno(tide_error *error, const char *what, const char *path) {
    int number = errno;
    tide_status status = number == ENOSPC || number == EDQUOT ? TIDE_DISK_FULL : TIDE_IO_ERROR;
    return tide_error_set(error, status, number, "cannot %s %s: %s", what, path, strerror(number));
}

const char *tide_reject_name(tide_reject reject) {
    switch (reject) {
    case TIDE_REJECT_NONE: return "none";
    case TIDE_REJECT_INVALID_UTF8: return "invalidUTF8";
    case TIDE_REJECT_MALFORMED: return "malformed";
    case TIDE_REJECT_NOT_AN_OBJECT: return "notAnObject";
    case TIDE_REJECT_TOO_DEEP: return "tooDeep";
    case TIDE_REJECT_TOO_LONG: return "tooLong";
    case TIDE_REJECT_DUPLICATE_KEY: return "duplicateKey";
    case TIDE_REJECT_BAD_IDENTIFIER: return "badIdentifier";
    case TIDE_REJECT_MISSING_NAME: return "missingName";
    case TIDE_REJECT_BAD_NAME: return "badName";
    case TIDE_REJECT_WRONG_TYPE: return "wrongType";
    case TIDE_REJECT_OUT_OF_RANGE: return "outOfRange";
    case TIDE_REJECT_RAGGED: return "ragged";
    case TIDE_REJECT_UNKNOWN_FIELD: return "unknownField";
    case TIDE_REJECT_NAME_TAKEN: return "nameTaken";
    case TIDE_REJECT_TOO_MANY_FIELDS: return "tooManyFields";
    case TIDE_REJECT_DAMAGED: return "damaged";
    case TIDE_REJECT_ASSET_MISSING: return "assetMissing";
    case TIDE_REJECT_ASSET_EMPTY: return "assetEmpty";
    case TIDE_REJECT_ASSET_UNREADABLE: return "assetUnreadable";
    case TIDE_REJECT_ASSET_TRUNCATED: return "assetTruncated";
    case TIDE_REJECT_ASSET_NOT_A_FILE: return "assetNotAFile";
    case TIDE_REJECT_ASSET_OUTSIDE_ROOT: return "assetOutsideRoot";
    case TIDE_REJECT_ASSET_CHANGED: return "assetChanged";
    case TIDE_REJECT_ASSET_NOT_AN_IMAGE: return "assetNotAnImage";
    case TIDE_REJECT_ASSET_UNKNOWN: return "assetUnknown";
    case TIDE_REJECT_ASSET_COLLISIONS: return "assetCollisions";
    case TIDE_REJECT_TOO_MANY_ASSETS: return "tooManyAssets";
    case TIDE_REJECT_PICTURE_DAMAGED: return "pictureDamaged";
    case TIDE_REJECT_PICTURE_TOO_LARGE: return "pictureTooLarge";
    case TIDE_REJECT_PICTURE_UNSUPPORTED: return "pictureUnsupported";
    }
    return "none";
}
