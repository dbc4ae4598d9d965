/*
 * The structures of the wire contract, declared from the contract's tables alone: nothing here is generated from, or
 * shared with, the Rust declarations. A C compiler of the machine lays them out, and the tests compare.
 */
#ifndef LANEWAY_GOLDEN_LAYOUT_H
#define LANEWAY_GOLDEN_LAYOUT_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

/* Per-task settings. */
typedef struct {
    int32_t aicpu_thread_num;
    int32_t enable_chip_swimlane;
    int32_t enable_dump_args;
    int32_t enable_pmu;
    int32_t enable_dep_gen;
    int32_t enable_scope_stats;
    uint64_t ring_task_window[4];
    uint64_t ring_heap[4];
    uint64_t ring_dep_pool[4];
    char output_prefix[1024];
} CallConfig;

typedef struct {
    uint32_t slot_id;
    uint32_t reserved;
    uint64_t generation;
} PipelineSlotLease;

typedef struct {
    uint64_t protocol;
    uint64_t run;
    uint64_t slot;
    uint64_t generation;
    uint64_t dispatch;
} Trailer;

typedef struct {
    alignas(64) uint64_t addr;
    uint64_t bytes;
    uint64_t owner_task_id;
    uint64_t start_offset;
    int32_t version;
    uint32_t ndims;
    uint8_t dtype;
    uint8_t manual_dep;
    uint8_t is_contiguous;
    uint8_t address_space;
    uint32_t shapes[5];
    uint64_t extent_elem;
    uint32_t strides[5];
    uint8_t zero[36];
} ChipTensor;

typedef struct {
    uint16_t magic;
    uint8_t address_space;
    uint8_t access;
    uint8_t backend;
    uint8_t ignored[3];
    uint8_t owner[8];
    uint64_t buffer_id;
    uint32_t generation;
    uint8_t identity_ignored[12];
    uint64_t nbytes;
    uint32_t owner_path;
    uint16_t body_len;
    uint16_t reserved;
    uint8_t body[32];
} BufferDescriptor;

typedef struct {
    BufferDescriptor buffer;
    uint64_t byte_offset;
    uint32_t ndims;
    uint32_t shapes[5];
    uint32_t strides[5];
    uint8_t dtype;
    uint8_t zero[3];
} Tensor;

typedef struct {
    int32_t tensor_count;
    int32_t scalar_count;
    const ChipTensor *tensors;
    const uint64_t *scalars;
} TaskArgsView;

typedef struct {
    ChipTensor tensors[256];
    uint64_t scalars[128];
    int32_t tensor_count;
    int32_t scalar_count;
} ChipStorageTaskArgs;

typedef struct {
    int32_t state;
    int32_t error;
    uint64_t reserved;
    CallConfig config;
    PipelineSlotLease lease;
    uint8_t digest[32];
    uint8_t args[64016];
    int32_t shutdown;
    int32_t zero;
    Trailer trailer;
    int32_t accepted;
    int32_t preparation;
    char message[256];
} TaskFrame;

typedef struct {
    uint64_t dst;
    uint64_t src;
    uint64_t nbytes;
} CopyAddresses;

typedef struct {
    BufferDescriptor dst;
    BufferDescriptor src;
    uint64_t nbytes;
} CopyBuffers;

typedef struct {
    char name[32];
    uint8_t digest[32];
} NameAndDigest;

/* The base frame seen as control traffic. */
typedef struct {
    int32_t state;
    int32_t error;
    uint64_t subcommand;
    uint64_t arg0;
    uint64_t unused[2];
    uint64_t result;
    uint8_t unused_config[1112];
    PipelineSlotLease startup;
    union {
        NameAndDigest named;
        CopyAddresses addresses;
        CopyBuffers buffers;
        uint8_t area[60264];
    } payload;
    struct {
        uint64_t parent_magic;
        uint32_t parent_cpu;
        uint32_t parent_crowded;
        uint8_t parent_line[112];
        uint64_t child_magic;
        uint32_t parked;
        uint32_t child_cpu;
        uint8_t child_line[112];
        uint64_t activity;
        uint64_t run;
        uint64_t dispatch;
        uint64_t tasks;
        uint64_t busy_nanos;
        uint64_t spin_nanos;
        uint64_t since_nanos;
        uint8_t unused[1736];
    } extension;
    uint8_t unused_args[1736];
    int32_t shutdown;
    int32_t zero;
    Trailer trailer;
    int32_t accepted;
    int32_t preparation;
    char message[256];
} BaseFrame;

typedef struct {
    uint32_t kind;
    uint32_t class_;
    uint64_t bytes_per_copy;
} PipelineResource;

typedef struct {
    uint32_t abi_version;
    uint32_t resource_count;
    uint32_t pipeline_depth;
    uint32_t padding;
    PipelineResource resources[8];
} PipelineContract;

typedef struct {
    uint32_t pipeline_slot;
    uint32_t arena_bank;
    uint64_t run_id;
    uint64_t generation;
    uint64_t dispatch_id;
    uint64_t run_epoch;
    volatile int32_t *accepted_state;
    int32_t accepted_value;
} NativeRunDescriptor;

typedef struct {
    int32_t signature[256];
    int32_t sig_count;
    uint32_t binary_size;
    char func_name[64];
    uint32_t func_name_len;
    int32_t child_func_ids[1024];
    uint32_t child_offsets[1024];
    int32_t child_count;
    char config_name[64];
    uint32_t config_name_len;
    alignas(16) uint8_t storage[];
} ChipCallable;

typedef struct {
    int32_t signature[32];
    int32_t sig_count;
    uint32_t binary_size;
    uint64_t resolved_addr;
    alignas(64) uint8_t binary[];
} CoreCallable;

/* Between hosts nothing is aligned. */
#pragma pack(push, 1)
typedef struct {
    uint8_t magic[4];
    uint32_t version;
    uint32_t type;
    uint64_t session;
    int32_t worker;
    uint64_t sequence;
    uint32_t payload_bytes;
    uint32_t flags;
} RemoteHeader;

typedef struct {
    uint8_t owner[8];
    uint64_t buffer_id;
    uint32_t generation;
    uint8_t space;
    uint8_t access;
    uint8_t backend;
    uint64_t nbytes;
    uint32_t owner_path;
    uint32_t body_len;
    uint64_t byte_offset;
    uint32_t ndims;
} RemoteTensorHead;

typedef struct {
    uint32_t space;
    int32_t owner;
    uint64_t buffer_id;
    uint64_t offset;
    uint64_t nbytes;
    uint64_t remote_addr;
    uint64_t rkey;
    uint64_t generation;
    uint64_t inline_offset;
    uint64_t inline_length;
    uint64_t flags;
} RemoteTensorDesc;
#pragma pack(pop)

#endif
