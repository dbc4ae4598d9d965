/* The interface of a host runtime library, as a C program sees it. Little-endian, 64-bit. */
#ifndef HOST_RUNTIME_H
#define HOST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

struct pipeline_resource {
    uint32_t kind;
    uint32_t class_;
    uint64_t bytes_per_copy;
};

struct pipeline_contract {
    uint32_t abi_version;
    uint32_t resource_count;
    uint32_t pipeline_depth;
    uint32_t padding;
    struct pipeline_resource resources[8];
};

struct chip_tensor {
    uint64_t addr;
    uint64_t bytes;
    uint64_t owner_task_id; /* all ones: external */
    uint64_t start_offset;
    int32_t version;
    uint32_t ndims;
    uint8_t dtype; /* 0: f32 */
    uint8_t manual_dep;
    uint8_t is_contiguous;
    uint8_t address_space; /* 0: host, 1: device */
    uint32_t shapes[5];
    uint64_t extent_elem;
    uint32_t strides[5];
    uint8_t zero[36];
} __attribute__((aligned(64)));

struct task_args {
    struct chip_tensor tensors[256];
    uint64_t scalars[128];
    int32_t tensor_count;
    int32_t scalar_count;
} __attribute__((aligned(64)));

struct call_config {
    int32_t aicpu_thread_num;
    int32_t enable_chip_swimlane;
    int32_t enable_dump_args;
    int32_t enable_pmu;
    int32_t enable_dep_gen;
    int32_t enable_scope_stats;
    uint64_t ring_task_window[4];
    uint64_t ring_heap[4];
    uint64_t ring_dep_pool[4];
    uint8_t output_prefix[1024];
};

struct native_run_descriptor {
    uint32_t pipeline_slot;
    uint32_t arena_bank;
    uint64_t run_id;
    uint64_t generation;
    uint64_t dispatch_id;
    uint64_t run_epoch;
    volatile int32_t *accepted_state;
    int32_t accepted_value;
};

struct log_state {
    uint32_t abi;
    uint32_t size;
    int32_t threshold;
    int32_t clock_anchor_pid;
};

_Static_assert(sizeof(struct pipeline_contract) == 144, "contract");
_Static_assert(sizeof(struct chip_tensor) == 128, "tensor");
_Static_assert(offsetof(struct chip_tensor, extent_elem) == 64, "tensor");
_Static_assert(offsetof(struct chip_tensor, zero) == 92, "tensor");
_Static_assert(sizeof(struct task_args) == 33856, "arguments");
_Static_assert(offsetof(struct task_args, tensor_count) == 33792, "arguments");
_Static_assert(sizeof(struct call_config) == 1144, "config");
_Static_assert(sizeof(struct native_run_descriptor) == 56, "descriptor");
_Static_assert(sizeof(struct log_state) == 16, "log state");

/* Every function of the library: X(result, name, parameters). */
#define HOST_RUNTIME_FUNCTIONS(X)                                                                                      \
    X(const struct pipeline_contract *, get_pipeline_contract, (void))                                                 \
    X(void *, create_device_context, (void))                                                                           \
    X(void, destroy_device_context, (void *))                                                                          \
    X(size_t, get_runtime_size, (void))                                                                                \
    X(size_t, get_runtime_alignment, (void))                                                                           \
    X(int, simpler_init,                                                                                               \
      (void *, int32_t, const uint8_t *, size_t, const uint8_t *, size_t, const uint8_t *, size_t,                     \
       const struct call_config *))                                                                                    \
    X(int, finalize_device, (void *))                                                                                  \
    X(int, simpler_register_callable, (void *, int32_t, const void *))                                                 \
    X(int, simpler_unregister_callable, (void *, int32_t))                                                             \
    X(int, simpler_prepare_run,                                                                                        \
      (void *, void *, int32_t, const struct task_args *, const struct call_config *,                                  \
       const struct native_run_descriptor *))                                                                          \
    X(int, simpler_run,                                                                                                \
      (void *, void *, int32_t, const struct task_args *, const struct call_config *,                                  \
       const struct native_run_descriptor *))                                                                          \
    X(int, simpler_launch_run, (void *, void *))                                                                       \
    X(int, simpler_poll_run, (void *, void *))                                                                         \
    X(int, simpler_wait_run, (void *, void *))                                                                         \
    X(int, simpler_finalize_run, (void *, void *))                                                                     \
    X(int, supports_concurrent_native_prepare_ctx, (void *))                                                           \
    X(void *, device_malloc_ctx, (void *, size_t))                                                                     \
    X(void, device_free_ctx, (void *, void *))                                                                         \
    X(int, copy_to_device_ctx, (void *, void *, const void *, size_t))                                                 \
    X(int, copy_from_device_ctx, (void *, void *, const void *, size_t))                                               \
    X(size_t, committed_device_memory_ctx, (void *))                                                                   \
    X(size_t, get_aicpu_dlopen_count, (void *))                                                                        \
    X(size_t, get_host_dlopen_count, (void *))                                                                         \
    X(size_t, get_run_stream_set_create_count, (void *))                                                               \
    X(uint64_t, get_arena_bank_gm_heap_base_ctx, (void *, uint32_t))                                                   \
    X(uint64_t, get_retained_temp_addr_ctx, (void *, uint32_t))                                                        \
    X(int, simpler_host_log_bind_state, (struct log_state *))

#endif
