/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Stands for libcuda.so.1 in tests: records what it is asked for, computes nothing. Memory is addresses without anything behind.
 *
 * FAKE_CUDA_LOG       the file that records go to
 * FAKE_CUDA_CC        compute capability, "90"
 * FAKE_CUDA_DEVICES   number of devices, 1
 * FAKE_CUDA_VERSION   version of the driver, 13000
 * FAKE_CUDA_STATIC    bytes of static shared memory of every kernel, 0
 * FAKE_CUDA_FAIL      "cuLaunchKernel=700": what that entry point returns
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, INVALID_PTX = 218, UNSUPPORTED_PTX = 222, NOT_FOUND = 500 };
enum { DEFAULT_SHARED = 49152, MAX_SHARED = 232448 };

typedef struct {
  int device;
  char *ptx;
} Module;
typedef struct {
  char name[128];
  int maxDynamic, device;
  const char *parameters; /* in the PTX, up to a parenthesis */
} Function;

static const uint64_t memoryStart = 0x7e0000000000, memoryOfDevice = 1ull << 36;
static const uint64_t heapStart = 1ull << 32; /* in the memory of a device; below, tests place what they like */
static uint64_t allocated[8];
static __thread void *contexts[16];
static __thread int numContexts, captureMode;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int setting(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : otherwise;
}

static Result failure(const char *function) {
  const char *text = getenv("FAKE_CUDA_FAIL");
  size_t length = strlen(function);
  return text && !strncmp(text, function, length) && text[length] == '=' ? atoi(text + length + 1) : SUCCESS;
}
#define MAY_FAIL                                                                                                           \
  if (failure(__func__))                                                                                                   \
  return failure(__func__)

static void record(const char *line) {
  const char *path = getenv("FAKE_CUDA_LOG");
  if (!path || !*path)
    return;
  pthread_mutex_lock(&mutex);
  FILE *file = fopen(path, "a");
  if (file) {
    fprintf(file, "%s\n", line);
    fclose(file);
  }
  pthread_mutex_unlock(&mutex);
}

static int currentDevice(void) {
  return numContexts ? (int)((uintptr_t)contexts[numContexts - 1] - 0xc000) : -1;
}

/* For tests: begins a call, with all memory free and a line of its own. */
void fakeBegin(void) {
  memset(allocated, 0, sizeof(allocated));
  record("call");
}

Result cuInit(unsigned flags) {
  MAY_FAIL;
  return flags ? INVALID_VALUE : SUCCESS;
}

Result cuDriverGetVersion(int *version) {
  *version = setting("FAKE_CUDA_VERSION", 13000);
  return SUCCESS;
}

Result cuGetErrorName(int error, const char **name) {
  static const struct {
    int number;
    const char *name;
  } names[] = {{1, "CUDA_ERROR_INVALID_VALUE"},    {2, "CUDA_ERROR_OUT_OF_MEMORY"},  {100, "CUDA_ERROR_NO_DEVICE"},
               {201, "CUDA_ERROR_INVALID_CONTEXT"}, {218, "CUDA_ERROR_INVALID_PTX"},  {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
               {500, "CUDA_ERROR_NOT_FOUND"},       {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  *name = NULL;
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i)
    if (names[i].number == error)
      *name = names[i].name;
  return *name ? SUCCESS : INVALID_VALUE;
}

Result cuGetErrorString(int error, const char **text) {
  *text = error == 100 ? "no CUDA-capable device is detected" : NULL;
  return *text ? SUCCESS : INVALID_VALUE;
}

Result cuDeviceGetCount(int *count) {
  *count = setting("FAKE_CUDA_DEVICES", 1);
  return SUCCESS;
}

Result cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return SUCCESS;
}

Result cuDeviceGetName(char *name, int length, int device) {
  snprintf(name, length, "Fake %d", device);
  return SUCCESS;
}

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = setting("FAKE_CUDA_CC", 90);
  *value = attribute == 75   ? capability / 10
           : attribute == 76 ? capability % 10
           : attribute == 8  ? DEFAULT_SHARED
           : attribute == 97 ? MAX_SHARED
                             : -1;
  return *value < 0 ? INVALID_VALUE : SUCCESS;
}

Result cuDevicePrimaryCtxRetain(void **context, int device) {
  MAY_FAIL;
  *context = (void *)(uintptr_t)(0xc000 + device);
  return SUCCESS;
}

Result cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }

Result cuCtxGetCurrent(void **context) {
  *context = numContexts ? contexts[numContexts - 1] : NULL;
  return SUCCESS;
}

Result cuCtxPushCurrent_v2(void *context) {
  contexts[numContexts++] = context;
  return SUCCESS;
}

Result cuCtxPopCurrent_v2(void **context) {
  if (!numContexts)
    return INVALID_CONTEXT;
  *context = contexts[--numContexts];
  return SUCCESS;
}

Result cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = captureMode;
  captureMode = *mode;
  *mode = before;
  return SUCCESS;
}

Result cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  MAY_FAIL;
  if (currentDevice() < 0)
    return INVALID_CONTEXT;
  char line[128];
  snprintf(line, sizeof(line), "load device %d bytes %zu capture mode %d", currentDevice(), strlen(image), captureMode);
  record(line);
  if (strstr(image, ".version 99.9"))
    return UNSUPPORTED_PTX;
  if (strstr(image, "nonsense")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5)
        strcpy(values[i], "ptxas application ptx input, line 4; fatal   : Parsing error near 'nonsense'\n");
    return INVALID_PTX;
  }
  Module *made = malloc(sizeof(Module));
  made->device = currentDevice();
  made->ptx = strdup(image);
  *module = made;
  return SUCCESS;
}

Result cuModuleUnload(void *module) {
  free(((Module *)module)->ptx);
  free(module);
  return SUCCESS;
}

Result cuModuleGetFunction(void **function, void *module, const char *name) {
  char entry[160];
  snprintf(entry, sizeof(entry), ".entry %s(", name);
  const char *declared = strstr(((Module *)module)->ptx, entry);
  if (!declared)
    return NOT_FOUND;
  Function *made = malloc(sizeof(Function)); /* lives as long as the process */
  snprintf(made->name, sizeof(made->name), "%s", name);
  made->maxDynamic = DEFAULT_SHARED - setting("FAKE_CUDA_STATIC", 0);
  made->device = ((Module *)module)->device;
  made->parameters = declared + strlen(entry);
  *function = made;
  return SUCCESS;
}

Result cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = setting("FAKE_CUDA_STATIC", 0);
  return attribute == 1 ? SUCCESS : INVALID_VALUE;
}

Result cuFuncSetAttribute(void *function, int attribute, int value) {
  char line[256];
  snprintf(line, sizeof(line), "attribute %d of %s is %d", attribute, ((Function *)function)->name, value);
  record(line);
  if (attribute == 8 && value + setting("FAKE_CUDA_STATIC", 0) > MAX_SHARED)
    return INVALID_VALUE;
  if (attribute == 8)
    ((Function *)function)->maxDynamic = value;
  return SUCCESS;
}

Result cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
  MAY_FAIL;
  int device = currentDevice();
  if (device < 0)
    return INVALID_CONTEXT;
  pthread_mutex_lock(&mutex);
  *pointer = memoryStart + device * memoryOfDevice + heapStart + allocated[device];
  allocated[device] += (bytes + 511) / 512 * 512;
  pthread_mutex_unlock(&mutex);
  char line[128];
  snprintf(line, sizeof(line), "allocate %zu", bytes);
  record(line);
  return SUCCESS;
}

Result cuMemAllocAsync(uint64_t *pointer, size_t bytes, void *stream) { return cuMemAlloc_v2(pointer, bytes); }

Result cuMemFree_v2(uint64_t pointer) {
  char line[128];
  snprintf(line, sizeof(line), "free 0x%llx", (unsigned long long)pointer);
  record(line);
  return SUCCESS;
}

Result cuMemFreeAsync(uint64_t pointer, void *stream) { return cuMemFree_v2(pointer); }

Result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  MAY_FAIL;
  char line[160];
  uint64_t sum = 0; /* of what was copied */
  for (size_t i = 0; i < bytes; ++i)
    sum = sum * 31 + ((const uint8_t *)from)[i];
  snprintf(line, sizeof(line), "copy %zu to 0x%llx sum %llx", bytes, (unsigned long long)to, (unsigned long long)sum);
  record(line);
  return SUCCESS;
}

Result cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  MAY_FAIL;
  memset(to, 0, bytes);
  return SUCCESS;
}

Result cuPointerGetAttribute(void *data, int attribute, uint64_t pointer) {
  if (pointer < memoryStart || pointer >= memoryStart + setting("FAKE_CUDA_DEVICES", 1) * memoryOfDevice)
    return INVALID_VALUE;
  if (attribute == 2)
    *(unsigned *)data = 2;
  else if (attribute == 9)
    *(int *)data = (int)((pointer - memoryStart) / memoryOfDevice);
  else
    return INVALID_VALUE;
  return SUCCESS;
}

/* Streams have numbers from 4096 on. */
Result cuStreamCreate(void **stream, unsigned flags) {
  static uintptr_t last = 4095;
  MAY_FAIL;
  if (flags != 1)
    return INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  *stream = (void *)++last;
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}

Result cuStreamDestroy_v2(void *stream) { return SUCCESS; }

Result cuStreamSynchronize(void *stream) {
  MAY_FAIL;
  record("synchronize");
  return SUCCESS;
}

Result cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  char line[128];
  snprintf(line, sizeof(line), "stream %p waits for %s", stream, (char *)event);
  record(line);
  return SUCCESS;
}

Result cuEventCreate(void **event, unsigned flags) {
  *event = calloc(1, 64);
  return SUCCESS;
}

Result cuEventDestroy_v2(void *event) {
  free(event);
  return SUCCESS;
}

Result cuEventRecord(void *event, void *stream) {
  snprintf(event, 64, "stream %p", stream);
  return SUCCESS;
}

Result cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds = 1.5f;
  return SUCCESS;
}

/* The size of the parameter declared at `text`, and what comes behind it; 0 at the end. */
static size_t parameterSize(const char **text) {
  const char *end = strchr(*text, ')'), *here = strstr(*text, ".param");
  if (!here || here > end)
    return 0;
  const char *next = strstr(here + 1, ".param"), *bits = strpbrk(here + 7, "uf");
  *text = next && next < end ? next : end;
  if (!strncmp(here, ".param .align", 13))
    return (size_t)atoi(strchr(here, '[') + 1);
  return (size_t)atoi(bits + 1) / 8;
}

static Result launch(Function *function, const unsigned *grid, const unsigned *block, unsigned shared, void *stream,
                     const unsigned *cluster, int isDependent, void **parameters, void **extra) {
  if (extra || !parameters)
    return INVALID_VALUE;
  if (currentDevice() != function->device)
    return INVALID_CONTEXT;
  if ((int)shared > function->maxDynamic || grid[1] > 65535 || grid[2] > 65535)
    return INVALID_VALUE;
  char *line = malloc(1 << 16);
  char *at = line + sprintf(line, "launch %s device %d grid %u %u %u block %u %u %u shared %u stream %p", function->name,
                            function->device, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream);
  if (cluster)
    at += sprintf(at, " cluster %u %u %u", cluster[0], cluster[1], cluster[2]);
  if (isDependent)
    at += sprintf(at, " dependent");
  at += sprintf(at, " parameters ");
  const char *declared = function->parameters;
  size_t offset = 0, size; /* packed at multiples of their size, maps of 64 */
  for (unsigned i = 0; (size = parameterSize(&declared)); ++i) {
    for (; offset % (size < 64 ? size : 64); ++offset)
      at += sprintf(at, "00");
    for (size_t j = 0; j < size; ++j)
      at += sprintf(at, "%02x", ((uint8_t *)parameters[i])[j]);
    offset += size;
  }
  record(line);
  free(line);
  return SUCCESS;
}

Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, void *stream, void **parameters, void **extra) {
  MAY_FAIL;
  unsigned grid[3] = {gridX, gridY, gridZ}, block[3] = {blockX, blockY, blockZ};
  return launch(function, grid, block, shared, stream, NULL, 0, parameters, extra);
}

struct Attribute {
  uint32_t id, pad, value[16];
};
struct Config {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct Attribute *attributes;
  unsigned count;
};

Result cuLaunchKernelEx(const struct Config *config, void *function, void **parameters, void **extra) {
  MAY_FAIL;
  const unsigned *cluster = NULL;
  int isDependent = 0;
  for (unsigned i = 0; i < config->count; ++i) {
    const struct Attribute *attribute = config->attributes + i;
    if (attribute->id == 4)
      cluster = attribute->value;
    else if (attribute->id == 6 && attribute->value[0] == 1)
      isDependent = 1;
    else
      return INVALID_VALUE;
  }
  return launch(function, config->grid, config->block, config->shared, config->stream, cluster, isDependent, parameters, extra);
}

Result cuTensorMapEncodeTiled(void *map, int dtype, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  MAY_FAIL;
  if ((uintptr_t)map % 64 || rank < 1 || rank > 5 || (uintptr_t)address % 16)
    return INVALID_VALUE;
  char line[1024], *at = line;
  at += sprintf(at, "tensor map dtype %d address %p sizes", dtype, address);
  for (uint32_t d = 0; d < rank; ++d) {
    at += sprintf(at, " %llu", (unsigned long long)sizes[d]);
    if (!sizes[d])
      return INVALID_VALUE;
  }
  at += sprintf(at, " strides");
  for (uint32_t d = 0; d + 1 < rank; ++d) {
    at += sprintf(at, " %llu", (unsigned long long)strides[d]);
    if (strides[d] % 16)
      return INVALID_VALUE;
  }
  at += sprintf(at, " box");
  for (uint32_t d = 0; d < rank; ++d)
    at += sprintf(at, " %u step %u", box[d], steps[d]);
  sprintf(at, " interleave %d swizzle %d promotion %d fill %d", interleave, swizzle, promotion, fill);
  record(line);
  /* Bytes that differ where the parameters do. */
  uint64_t hash = 14695981039346656037u;
  for (const char *c = line; *c; ++c)
    hash = (hash ^ (uint8_t)*c) * 1099511628211u;
  for (int i = 0; i < 16; ++i)
    ((uint64_t *)map)[i] = hash + i;
  return SUCCESS;
}
