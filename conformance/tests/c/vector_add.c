/* Loads a host runtime library and adds two vectors of 1,000 f32 on it: once in one blocking call with tensors of the
 * host, once phase by phase with tensors of the device. */
#include "host_runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000

#define DECLARE(result, name, parameters) static result(*name) parameters;
HOST_RUNTIME_FUNCTIONS(DECLARE)

static void *library;

static void load(void **function, const char *name) {
    *function = dlsym(library, name);
    if (*function == NULL) {
        fprintf(stderr, "no symbol %s\n", name);
        exit(1);
    }
}

static void check(int line, const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, what);
        exit(1);
    }
}
#define CHECK(what) check(__LINE__, #what, (what))

static struct chip_tensor tensor(const void *address, int on_device) {
    struct chip_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.addr = (uint64_t)(uintptr_t)address;
    tensor.bytes = COUNT * sizeof(float);
    tensor.owner_task_id = UINT64_MAX;
    tensor.ndims = 1;
    tensor.is_contiguous = 1;
    tensor.address_space = (uint8_t)on_device;
    tensor.shapes[0] = COUNT;
    tensor.strides[0] = 1;
    tensor.extent_elem = COUNT;
    return tensor;
}

static void check_sums(const float *sums) {
    for (int i = 0; i < COUNT; i++)
        CHECK(sums[i] == 3.0f * (float)i);
}

static float a[COUNT], b[COUNT], out[COUNT];
static struct task_args args;
static struct call_config config;
static struct log_state log_state = {1, sizeof log_state, 40, 0};

int main(int argc, char **argv) {
    CHECK(argc == 3);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
#define LOAD(result, name, parameters) load((void **)&name, #name);
    HOST_RUNTIME_FUNCTIONS(LOAD)

    CHECK(simpler_host_log_bind_state(&log_state) == 0);
    const struct pipeline_contract *contract = get_pipeline_contract();
    CHECK(contract != NULL && contract->abi_version == 1);
    CHECK(contract->pipeline_depth >= 1 && contract->pipeline_depth <= 2);

    FILE *file = fopen(argv[2], "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long bytes = ftell(file);
    CHECK(bytes > 0 && fseek(file, 0, SEEK_SET) == 0);
    void *callable = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
    CHECK(callable != NULL && fread(callable, 1, (size_t)bytes, file) == (size_t)bytes);
    fclose(file);

    void *context = create_device_context();
    CHECK(context != NULL);
    size_t alignment = get_runtime_alignment();
    size_t size = (get_runtime_size() + alignment - 1) / alignment * alignment;
    void *storage = aligned_alloc(alignment, size);
    CHECK(storage != NULL);
    memset(storage, 0, size);
    const uint8_t kernel[] = {1, 2, 3};
    CHECK(simpler_init(context, 0, kernel, 3, kernel, 3, NULL, 0, NULL) == 0);
    CHECK(simpler_init(context, 0, kernel, 3, kernel, 3, NULL, 0, NULL) != 0);
    CHECK(simpler_register_callable(context, 64, callable) != 0);
    CHECK(simpler_register_callable(context, 7, callable) == 0);

    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 2.0f * (float)i;
    }
    args.tensors[0] = tensor(a, 0);
    args.tensors[1] = tensor(b, 0);
    args.tensors[2] = tensor(out, 0);
    args.tensor_count = 3;
    volatile int32_t accepted = 0;
    struct native_run_descriptor run = {0, 0, 0, 0, 0, 1, &accepted, 1};
    CHECK(simpler_run(context, storage, 7, &args, &config, &run) == 0);
    CHECK(accepted == 1);
    check_sums(out);

    void *on_device[3];
    for (int i = 0; i < 3; i++) {
        on_device[i] = device_malloc_ctx(context, COUNT * sizeof(float));
        CHECK(on_device[i] != NULL);
        args.tensors[i] = tensor(on_device[i], 1);
    }
    CHECK(copy_to_device_ctx(context, on_device[0], a, sizeof a) == 0);
    CHECK(copy_to_device_ctx(context, on_device[1], b, sizeof b) == 0);
    CHECK(copy_to_device_ctx(context, a, b, sizeof b) != 0);
    accepted = 0;
    run.run_id = run.generation = run.dispatch_id = 1;
    run.run_epoch = 2;
    CHECK(simpler_poll_run(context, storage) < 0);
    CHECK(simpler_prepare_run(context, storage, 7, &args, &config, &run) == 0);
    CHECK(simpler_prepare_run(context, storage, 7, &args, &config, &run) != 0);
    CHECK(accepted == 0);
    CHECK(simpler_launch_run(context, storage) == 0);
    CHECK(accepted == 1);
    int polled;
    while ((polled = simpler_poll_run(context, storage)) == 0) {
    }
    CHECK(polled == 1);
    CHECK(simpler_finalize_run(context, storage) == 0);
    memset(out, 0, sizeof out);
    CHECK(copy_from_device_ctx(context, out, on_device[2], sizeof out) == 0);
    check_sums(out);

    CHECK(get_run_stream_set_create_count(context) == 1);
    CHECK(get_aicpu_dlopen_count(context) + get_host_dlopen_count(context) == 1);
    for (int i = 0; i < 3; i++)
        device_free_ctx(context, on_device[i]);
    CHECK(simpler_unregister_callable(context, 7) == 0);
    CHECK(finalize_device(context) == 0);
    CHECK(committed_device_memory_ctx(context) == 0);
    destroy_device_context(context);
    free(storage);
    free(callable);
    printf("%d elements are right\n", COUNT);
    return 0;
}
