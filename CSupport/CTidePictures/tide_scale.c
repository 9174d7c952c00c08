#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tide_picture_layout.h"

/// A pixel in linear light, premultiplied: red, green, blue, alpha; grey is in the first lane.
typedef float lanes __attribute__((vector_size(16)));

enum { encoded_count = 1 << 14 };

/// The filter of one direction: each pixel is the weighted sum of `count` neighbours.
typedef struct taps {
    uint32_t count;
    uint32_t *first;
    float *weights;
} taps;

struct tide_scaler {
    uint32_t in_width, in_height, out_width, out_height;
    uint32_t in_row, out_row;
    uint8_t orientation;
    bool is_copy;
    tide_canvas *canvas;
    taps across, down;
    lanes *row;
    /// The last rows that were filtered across, as many as the filter spans downwards.
    lanes *ring;
    lanes *sum;
    uint8_t *encoded_row;
    float linear[256];
    uint8_t encoded[encoded_count];
};

static uint32_t taps_count(uint32_t in, uint32_t out) {
    double span = 4 * ((double)in / out);
    uint64_t count = (uint64_t)ceil(span) + 1;
    return count < in ? (uint32_t)count : in;
}

/// Catmull-Rom: sharp, and overshoots less in linear light than Lanczos.
static double filter(double x) {
    x = fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static bool taps_make(taps *it, uint32_t in, uint32_t out) {
    it->count = taps_count(in, out);
    it->first = malloc(out * sizeof *it->first);
    it->weights = malloc((size_t)out * it->count * sizeof *it->weights);
    if (!it->first || !it->weights) return false;
    double ratio = (double)in / out;
    for (uint32_t i = 0; i < out; i++) {
        double centre = (i + 0.5) * ratio;
        double begin = ceil(centre - 2 * ratio - 0.5);
        uint32_t first = begin > 0 ? (uint32_t)begin : 0;
        if (first > in - it->count) first = in - it->count;
        float *weights = it->weights + (size_t)i * it->count;
        double sum = 0;
        for (uint32_t k = 0; k < it->count; k++) sum += filter((first + k + 0.5 - centre) / ratio);
        for (uint32_t k = 0; k < it->count; k++) weights[k] = (float)(filter((first + k + 0.5 - centre) / ratio) / sum);
        it->first[i] = first;
    }
    return true;
}

static double to_linear(double value) { return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4); }
static double to_encoded(double value) { return value <= 0.0031308 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055; }

uint64_t tide_scaler_size(uint32_t in_width, uint32_t in_height, uint32_t out_width, uint32_t out_height) {
    uint64_t across = taps_count(in_width, out_width), down = taps_count(in_height, out_height);
    return sizeof(tide_scaler) + sizeof(lanes) * (in_width + out_width * (down + 2)) + 4 * (out_width * (across + 1) + out_height * (down + 1));
}

tide_scaler *tide_scaler_create(
    uint32_t in_width, uint32_t in_height, uint32_t out_width, uint32_t out_height, uint8_t orientation, tide_canvas *canvas
) {
    tide_scaler *created = calloc(1, sizeof *created);
    if (!created) return NULL;
    created->in_width = in_width;
    created->in_height = in_height;
    created->out_width = out_width;
    created->out_height = out_height;
    created->orientation = orientation;
    created->canvas = canvas;
    created->is_copy = in_width == out_width && in_height == out_height;
    if (created->is_copy) return created;
    for (int i = 0; i < 256; i++) created->linear[i] = (float)to_linear(i / 255.0);
    for (int i = 0; i < encoded_count; i++) created->encoded[i] = (uint8_t)(to_encoded(i / (encoded_count - 1.0)) * 255 + 0.5);
    bool is_made = taps_make(&created->across, in_width, out_width) && taps_make(&created->down, in_height, out_height);
    created->row = malloc(in_width * sizeof(lanes));
    created->sum = malloc(out_width * sizeof(lanes));
    created->encoded_row = malloc((size_t)out_width * 4);
    if (is_made) created->ring = malloc((size_t)created->down.count * out_width * sizeof(lanes));
    if (is_made && created->row && created->sum && created->encoded_row && created->ring) return created;
    tide_scaler_destroy(created);
    return NULL;
}

void tide_scaler_destroy(tide_scaler *scaler) {
    if (!scaler) return;
    free(scaler->across.first);
    free(scaler->across.weights);
    free(scaler->down.first);
    free(scaler->down.weights);
    free(scaler->row);
    free(scaler->ring);
    free(scaler->sum);
    free(scaler->encoded_row);
    free(scaler);
}

// Rows to linear light, and back

static void row_linearise(const tide_scaler *it, const uint8_t *from) {
    const float *linear = it->linear;
    lanes *to = it->row;
    uint32_t width = it->in_width;
    switch (it->canvas->pixels) {
    case TIDE_PIXELS_GREY:
        for (uint32_t i = 0; i < width; i++) to[i] = (lanes){linear[from[i]], 0, 0, 1};
        break;
    case TIDE_PIXELS_GREY_ALPHA:
        for (uint32_t i = 0; i < width; i++) {
            float alpha = (float)from[2 * i + 1] / 255;
            to[i] = (lanes){linear[from[2 * i]] * alpha, 0, 0, alpha};
        }
        break;
    case TIDE_PIXELS_RGBX:
        for (uint32_t i = 0; i < width; i++) to[i] = (lanes){linear[from[4 * i]], linear[from[4 * i + 1]], linear[from[4 * i + 2]], 1};
        break;
    case TIDE_PIXELS_RGBA:
        for (uint32_t i = 0; i < width; i++) {
            float alpha = (float)from[4 * i + 3] / 255;
            to[i] = (lanes){linear[from[4 * i]] * alpha, linear[from[4 * i + 1]] * alpha, linear[from[4 * i + 2]] * alpha, alpha};
        }
        break;
    }
}

static uint8_t encode(const tide_scaler *it, float value) {
    float place = value * (encoded_count - 1) + 0.5f;
    return it->encoded[place <= 0 ? 0 : place >= encoded_count - 1 ? encoded_count - 1 : (int)place];
}

/// The alpha of a pixel as a byte; `factor` is what its premultiplied colours have to be multiplied with.
static uint8_t alpha_encode(float alpha, float *factor) {
    float byte = alpha * 255 + 0.5f;
    uint8_t encoded = byte <= 0 ? 0 : byte >= 255 ? 255 : (uint8_t)byte;
    *factor = encoded ? 1 / alpha : 0;
    return encoded;
}

static void row_encode(const tide_scaler *it, uint8_t *to) {
    const lanes *from = it->sum;
    float factor;
    for (uint32_t i = 0; i < it->out_width; i++) {
        switch (it->canvas->pixels) {
        case TIDE_PIXELS_GREY: to[i] = encode(it, from[i][0]); break;
        case TIDE_PIXELS_GREY_ALPHA:
            to[2 * i + 1] = alpha_encode(from[i][3], &factor);
            to[2 * i] = encode(it, from[i][0] * factor);
            break;
        case TIDE_PIXELS_RGBX:
            for (int k = 0; k < 3; k++) to[4 * i + k] = encode(it, from[i][k]);
            to[4 * i + 3] = 255;
            break;
        case TIDE_PIXELS_RGBA:
            to[4 * i + 3] = alpha_encode(from[i][3], &factor);
            for (int k = 0; k < 3; k++) to[4 * i + k] = encode(it, from[i][k] * factor);
            break;
        }
    }
}

// The canvas

/// Writes a row to its place in the upright picture.
static void row_place(tide_scaler *it, const uint8_t *row) {
    tide_canvas *canvas = it->canvas;
    size_t size = tide_pixels_size(canvas->pixels), stride = canvas->width * size;
    uint32_t y = it->out_row++, last_x = it->out_width - 1, last_y = it->out_height - 1;
    // The place of the row's first pixel, and the step to each next one.
    uint32_t to_x, to_y;
    ptrdiff_t step;
    switch (it->orientation) {
    case 2: to_x = last_x, to_y = y, step = -(ptrdiff_t)size; break;
    case 3: to_x = last_x, to_y = last_y - y, step = -(ptrdiff_t)size; break;
    case 4: to_x = 0, to_y = last_y - y, step = (ptrdiff_t)size; break;
    case 5: to_x = y, to_y = 0, step = (ptrdiff_t)stride; break;
    case 6: to_x = last_y - y, to_y = 0, step = (ptrdiff_t)stride; break;
    case 7: to_x = last_y - y, to_y = last_x, step = -(ptrdiff_t)stride; break;
    case 8: to_x = y, to_y = last_x, step = -(ptrdiff_t)stride; break;
    default: to_x = 0, to_y = y, step = (ptrdiff_t)size; break;
    }
    uint8_t *at = canvas->bytes + to_y * stride + to_x * size;
    if (step == (ptrdiff_t)size) {
        memcpy(at, row, it->out_width * size);
        return;
    }
    for (uint32_t i = 0; i < it->out_width; i++, at += i < it->out_width ? step : 0) memcpy(at, row + i * size, size);
}

// Filtering

static void row_filter(const tide_scaler *it, lanes *to) {
    uint32_t count = it->across.count;
    for (uint32_t i = 0; i < it->out_width; i++) {
        const lanes *from = it->row + it->across.first[i];
        const float *weights = it->across.weights + (size_t)i * count;
        lanes even = {0}, odd = {0};
        uint32_t k = 0;
        for (; k + 1 < count; k += 2) {
            even += from[k] * weights[k];
            odd += from[k + 1] * weights[k + 1];
        }
        if (k < count) even += from[k] * weights[k];
        to[i] = even + odd;
    }
}

static void rows_sum(const tide_scaler *it) {
    uint32_t count = it->down.count, first = it->down.first[it->out_row];
    const float *weights = it->down.weights + (size_t)it->out_row * count;
    memset(it->sum, 0, it->out_width * sizeof(lanes));
    for (uint32_t k = 0; k < count; k++) {
        const lanes *from = it->ring + (size_t)((first + k) % count) * it->out_width;
        float weight = weights[k];
        for (uint32_t i = 0; i < it->out_width; i++) it->sum[i] += from[i] * weight;
    }
}

void tide_scaler_put(tide_scaler *it, const uint8_t *row) {
    if (it->is_copy) {
        row_place(it, row);
        return;
    }
    row_linearise(it, row);
    row_filter(it, it->ring + (size_t)(it->in_row % it->down.count) * it->out_width);
    it->in_row++;
    while (it->out_row < it->out_height && it->down.first[it->out_row] + it->down.count <= it->in_row) {
        rows_sum(it);
        row_encode(it, it->encoded_row);
        row_place(it, it->encoded_row);
    }
}
