/// The declarations that reading and writing JPEGs share. libjpeg reports errors by longjmp.

#ifndef TIDE_JPEG_H
#define TIDE_JPEG_H

#include <setjmp.h>
#include <stdio.h>

// jpeglib.h uses size_t and FILE, and does not include what declares them.
#include <jpeglib.h>

#include "tide_picture_layout.h"

/// Receives the errors of libjpeg; it is the `err` of libjpeg's struct.
typedef struct tide_jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    tide_picture_job *job;
} tide_jpeg_failure;

/// Prepares a failure, and returns the pointer to set as the `err` of libjpeg's struct.
struct jpeg_error_mgr *tide_jpeg_failure_begin(tide_jpeg_failure *failure, tide_picture_job *job);
/// Leaves the call of libjpeg. The caller has set the job's error.
_Noreturn void tide_jpeg_leave(j_common_ptr info);
/// Lets libjpeg write to growing bytes, whose buffer belongs to libjpeg's struct.
void tide_jpeg_write_to(j_compress_ptr info, tide_growing *file);
/// Sets how files are compressed, after the defaults and the quality.
void tide_jpeg_set_form(j_compress_ptr info);
/// Writes EXIF data and the profile of the job, after compressing has begun.
void tide_jpeg_write_markers(j_compress_ptr info, const tide_picture_job *job, bool exif);

#endif
