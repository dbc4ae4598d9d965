/*
 * Writes the golden vectors into the directory that it is given. They are made from the contract alone, with the
 * structures of layout.h and bytes put one after the other; no code of the project takes part.
 *
 * Run by `LANEWAY_GOLDEN=write cargo test -p laneway-core --test wire_golden`.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

static const char *directory;

static void save(const char *name, const void *bytes, size_t len) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* A growing byte sequence, for what is no structure. */
static uint8_t out[1 << 20];
static size_t at;

static void bytes(const void *from, size_t len) {
    assert(at + len <= sizeof out);
    memcpy(out + at, from, len);
    at += len;
}

static void number(uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        bytes(&byte, 1);
    }
}

static void u8(uint64_t value) { number(value, 1); }
static void u32(uint64_t value) { number(value, 4); }
static void u64(uint64_t value) { number(value, 8); }

static void text(const char *value) {
    u32(strlen(value));
    bytes(value, strlen(value));
}

static void blob(size_t len, uint8_t first) {
    u32(len);
    for (size_t i = 0; i < len; i++) u8((uint8_t)(first + i));
}

static void finish(const char *name) {
    save(name, out, at);
    at = 0;
}

static void digest(uint8_t to[32], uint8_t first) {
    for (int i = 0; i < 32; i++) to[i] = (uint8_t)(first + i);
}

static void put_digest(uint8_t first) {
    uint8_t raw[32];
    digest(raw, first);
    bytes(raw, 32);
}

static CallConfig config(void) {
    CallConfig c;
    memset(&c, 0, sizeof c);
    c.aicpu_thread_num = 4;
    c.enable_chip_swimlane = 2;
    c.enable_dump_args = 1;
    c.enable_pmu = 7;
    c.enable_dep_gen = 1;
    c.enable_scope_stats = 1;
    c.ring_task_window[0] = 16;
    c.ring_task_window[2] = 1024;
    c.ring_heap[0] = 1024;
    c.ring_heap[3] = 1ull << 30;
    c.ring_dep_pool[1] = 100;
    c.ring_dep_pool[3] = 0x7fffffff;
    strcpy(c.output_prefix, "/tmp/out/run-1");
    return c;
}

static ChipTensor chip_tensor(uint64_t addr, uint64_t size, uint8_t dtype, uint8_t space) {
    ChipTensor t;
    memset(&t, 0, sizeof t);
    t.addr = addr;
    t.bytes = size;
    t.owner_task_id = ~0ull;
    t.dtype = dtype;
    t.address_space = space;
    return t;
}

/* Shape and strides of rank 2. */
static void layout2(ChipTensor *t, uint32_t rows, uint32_t columns, uint32_t row, uint32_t column, uint64_t start) {
    t->ndims = 2;
    t->shapes[0] = rows;
    t->shapes[1] = columns;
    t->strides[0] = row;
    t->strides[1] = column;
    t->start_offset = start;
    t->extent_elem = rows && columns ? 1 + (uint64_t)(rows - 1) * row + (uint64_t)(columns - 1) * column : 0;
}

static ChipTensor contiguous(void) {
    ChipTensor t = chip_tensor(0x7f0000001000, 4096, 0 /* f32 */, 0);
    layout2(&t, 4, 8, 8, 1, 0);
    t.is_contiguous = 1;
    return t;
}

/* Every second column of the contiguous one, from the second on. */
static ChipTensor strided(void) {
    ChipTensor t = chip_tensor(0x7f0000001000, 4096, 0, 0);
    layout2(&t, 4, 4, 8, 2, 1);
    return t;
}

static ChipTensor transposed(void) {
    ChipTensor t = chip_tensor(0x7f0000001000, 4096, 0, 0);
    layout2(&t, 8, 4, 1, 8, 0);
    return t;
}

/* No row, behind the last one. */
static ChipTensor empty(void) {
    ChipTensor t = chip_tensor(0x7f0000001000, 4096, 0, 0);
    layout2(&t, 0, 8, 8, 1, 32);
    t.is_contiguous = 1;
    return t;
}

/* Five dimensions of bf16 on a device, with every optional field set. */
static ChipTensor five(void) {
    ChipTensor t = chip_tensor(0x100000, 7680, 6 /* bf16 */, 1);
    t.owner_task_id = 77;
    t.version = -3;
    t.manual_dep = 1;
    t.is_contiguous = 1;
    t.ndims = 5;
    const uint32_t shape[5] = {2, 4, 4, 5, 3}, strides[5] = {240, 60, 15, 3, 1};
    memcpy(t.shapes, shape, sizeof shape);
    memcpy(t.strides, strides, sizeof strides);
    t.start_offset = 480;
    t.extent_elem = 480;
    return t;
}

/* The i-th of many: 16 f32 each, one behind the other. */
static ChipTensor nth(int i) {
    ChipTensor t = chip_tensor(0x200000 + 64ull * (uint64_t)i, 64, 0, 0);
    t.ndims = 1;
    t.shapes[0] = 16;
    t.strides[0] = 1;
    t.extent_elem = 16;
    t.is_contiguous = 1;
    return t;
}

static BufferDescriptor descriptor(uint8_t backend, uint8_t space, uint8_t access, uint64_t id, uint64_t nbytes) {
    BufferDescriptor b;
    memset(&b, 0, sizeof b);
    b.magic = 0x5342;
    b.address_space = space;
    b.access = access;
    b.backend = backend;
    memcpy(b.owner, "OWNER--1", 8);
    b.buffer_id = id;
    b.generation = 9;
    b.nbytes = nbytes;
    b.owner_path = 0x0102;
    return b;
}

static BufferDescriptor by_address(uint8_t backend, uint8_t space, uint8_t access, uint64_t id, uint64_t nbytes,
                                   uint64_t addr) {
    BufferDescriptor b = descriptor(backend, space, access, id, nbytes);
    b.body_len = 8;
    memcpy(b.body, &addr, 8);
    return b;
}

static BufferDescriptor by_name(uint64_t id, uint64_t nbytes, const char *name) {
    BufferDescriptor b = descriptor(1, 0, 2, id, nbytes);
    b.body_len = (uint16_t)strlen(name);
    memcpy(b.body, name, strlen(name));
    return b;
}

static Tensor tensor(BufferDescriptor buffer, uint64_t byte_offset, uint32_t rows, uint32_t columns, uint32_t row) {
    Tensor t;
    memset(&t, 0, sizeof t);
    t.buffer = buffer;
    t.byte_offset = byte_offset;
    t.ndims = 2;
    t.shapes[0] = rows;
    t.shapes[1] = columns;
    t.strides[0] = row;
    t.strides[1] = 1;
    t.dtype = 0;
    return t;
}

static Tensor nth_described(int i) {
    return tensor(by_address(0, 0, 2, 1000 + (uint64_t)i, 64, 0x300000 + 64ull * (uint64_t)i), 0, 4, 4, 4);
}

static void args(int tensors, int scalars, int protocol) {
    u32((uint64_t)tensors);
    u32((uint64_t)scalars);
    for (int i = 0; i < tensors; i++) {
        if (protocol == 2) {
            ChipTensor t = nth(i);
            bytes(&t, sizeof t);
        } else {
            Tensor t = nth_described(i);
            bytes(&t, sizeof t);
        }
    }
    for (int i = 0; i < scalars; i++) u64(0x1111111111111111ull * (uint64_t)(i % 16));
}

static void task_frame(int protocol) {
    static TaskFrame f;
    memset(&f, 0, sizeof f);
    f.state = protocol == 2 ? 1 /* TASK_READY */ : 12 /* PREPARE_READY */;
    f.config = config();
    f.lease.slot_id = 1;
    f.lease.generation = 5;
    digest(f.digest, 0x40);
    args(4, 3, protocol);
    memcpy(f.args, out, at);
    at = 0;
    f.trailer.protocol = (uint64_t)protocol;
    f.trailer.run = 11;
    f.trailer.slot = 1;
    f.trailer.generation = 5;
    f.trailer.dispatch = 23;
    save(protocol == 2 ? "task_frame_v2" : "task_frame_v3", &f, sizeof f);
}

/* A control as the head of a base frame, up to the end of the widest payload. */
static BaseFrame *control(uint64_t subcommand) {
    static BaseFrame f;
    memset(&f, 0, sizeof f);
    f.state = 4; /* CONTROL_REQUEST */
    f.subcommand = subcommand;
    return &f;
}

static void save_control(const char *name, const BaseFrame *f) { save(name, f, 1176 + 184); }

static void controls(void) {
    BaseFrame *f = control(0);
    f->arg0 = 1 << 20;
    save_control("control_malloc", f);
    f = control(1);
    f->arg0 = 0xd0000000;
    save_control("control_free", f);
    for (int from = 0; from < 2; from++) {
        f = control(2 + (uint64_t)from);
        f->payload.addresses = (CopyAddresses){.dst = 0xd0001000, .src = 0x7f0000002000, .nbytes = 256};
        save_control(from ? "control_copy_from_v2" : "control_copy_to_v2", f);
        f = control(2 + (uint64_t)from);
        f->payload.buffers.dst = by_address(4, 1, 2, 5, 4096, 0xd0001000);
        f->payload.buffers.src = by_name(6, 512, "psm_3f");
        f->payload.buffers.nbytes = 256;
        save_control(from ? "control_copy_from_v3" : "control_copy_to_v3", f);
    }
    f = control(4);
    digest(f->payload.named.digest, 0x10);
    save_control("control_prepare", f);
    f = control(5);
    f->arg0 = 9999;
    strcpy(f->payload.named.name, "@1f40c0");
    digest(f->payload.named.digest, 0x10);
    save_control("control_register", f);
    f = control(6);
    digest(f->payload.named.digest, 0x10);
    save_control("control_unregister", f);
    const struct { uint64_t number; const char *name; } unsupported[] = {
        {7, "control_alloc_domain"}, {8, "control_release_domain"}, {9, "control_comm_init"},
        {16, "control_region_allocate"}, {17, "control_region_release"},
    };
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        save_control(unsupported[i].name, control(unsupported[i].number));
    }
    f = control(10);
    f->arg0 = 321;
    strcpy(f->payload.named.name, "/psm_callable_0123456789abcdef0");
    digest(f->payload.named.digest, 0x20);
    save_control("control_py_register", f);
    f = control(11);
    digest(f->payload.named.digest, 0x20);
    save_control("control_py_unregister", f);
    save_control("control_committed_device_memory", control(18));
}

static void identities(void) {
    const uint8_t signature[32] = {0xce, 0x92, 0xde, 0x58, 0x44, 0x94, 0xe4, 0xe8, 0xce, 0xde, 0x4f, 0xf1, 0xa5, 0xce,
                                   0xfb, 0x98, 0xb4, 0x71, 0x87, 0x6d, 0x9c, 0x2a, 0x7e, 0x7b, 0x69, 0xb3, 0x52, 0xa0,
                                   0x05, 0xf2, 0x2e, 0x1b};
    const uint8_t abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae,
                             0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61,
                             0xf2, 0x00, 0x15, 0xad};
    u32(1);
    u32(1);
    text("a2a3");
    text("a2a3sim");
    text("host_build_graph");
    u32(32);
    put_digest(0);
    u32(32);
    bytes(signature, 32);
    finish("descriptor_chip_callable");
    u32(1);
    u32(2);
    u32(1);
    u32(1);
    u32(32);
    bytes(abc, 32);
    finish("descriptor_python_serialized");
    u32(1);
    u32(3);
    text("my_pkg.remote_orch");
    text("l3_orch");
    finish("descriptor_python_import");
    u32(1);
    u32(4);
    text("scale");
    u32(2);
    u32(32);
    bytes(abc, 32);
    u64(3);
    finish("descriptor_native");
    const char *name = "sha256:e7bd3ba19e5d5d22be738e7ecbb87f12ad858031ef3682268ea6cc51c25dc38d";
    bytes(name, strlen(name));
    finish("digest_text");
}

static void contracts(void) {
    const uint32_t tmr[][2] = {{4, 0}, {1, 1}, {2, 1}, {3, 1}, {5, 2}, {6, 2}};
    const uint32_t hbg[][2] = {{1, 0}, {3, 0}, {5, 2}, {6, 2}};
    PipelineContract c;
    memset(&c, 0, sizeof c);
    c.abi_version = 1;
    c.pipeline_depth = 2;
    c.resource_count = 6;
    for (int i = 0; i < 6; i++) c.resources[i] = (PipelineResource){.kind = tmr[i][0], .class_ = tmr[i][1]};
    save("contract_tmr", &c, sizeof c);
    memset(c.resources, 0, sizeof c.resources);
    c.resource_count = 4;
    for (int i = 0; i < 4; i++) c.resources[i] = (PipelineResource){.kind = hbg[i][0], .class_ = hbg[i][1]};
    save("contract_hbg", &c, sizeof c);
    NativeRunDescriptor r;
    memset(&r, 0, sizeof r);
    r.pipeline_slot = 1;
    r.arena_bank = 1;
    r.run_id = 11;
    r.generation = 5;
    r.dispatch_id = 23;
    r.run_epoch = 99;
    r.accepted_state = (volatile int32_t *)(uintptr_t)0x7f0000003000;
    r.accepted_value = 1;
    save("native_run", &r, sizeof r);
}

static void chip_callable(void) {
    static union {
        ChipCallable callable;
        alignas(64) uint8_t raw[9376 + 1024];
    } b;
    memset(&b, 0, sizeof b);
    ChipCallable *c = &b.callable;
    c->signature[0] = 1;
    c->signature[1] = 1;
    c->signature[2] = 2;
    c->signature[3] = 0;
    c->sig_count = 4;
    c->binary_size = 100;
    strcpy(c->func_name, "orchestrate");
    c->func_name_len = 11;
    strcpy(c->config_name, "configure");
    c->config_name_len = 9;
    c->child_count = 2;
    c->child_func_ids[0] = 7;
    c->child_func_ids[1] = -1;
    c->child_offsets[0] = 128; /* behind 100 bytes of orchestration */
    c->child_offsets[1] = 384; /* behind 128 + 192 + 33 */
    for (int i = 0; i < 100; i++) b.raw[9376 + i] = (uint8_t)i;
    for (int i = 0; i < 2; i++) {
        CoreCallable *core = (CoreCallable *)(void *)(c->storage + c->child_offsets[i]);
        core->sig_count = 1 + i;
        core->signature[0] = 3;
        core->binary_size = i ? 5 : 33;
        core->resolved_addr = i ? 0x1234 : 0;
        for (uint32_t j = 0; j < core->binary_size; j++) core->binary[j] = (uint8_t)(0xA0 + i);
    }
    save("chip_callable", b.raw, 9376 + 384 + 192 + 5);
}

/* The header of a frame whose payload follows in `out`; the length is filled in by `remote`. */
static void remote_header(uint32_t type, uint64_t session, int32_t worker, uint64_t sequence, uint32_t payload,
                          uint32_t flags) {
    RemoteHeader h = {{'S', 'L', 'R', '3'}, 3, type, session, worker, sequence, payload, flags};
    bytes(&h, sizeof h);
}

static void remote(const char *name, uint32_t type, uint64_t sequence, uint32_t flags) {
    static uint8_t payload[1 << 20];
    size_t len = at;
    memcpy(payload, out, len);
    at = 0;
    remote_header(type, 0x1122334455667788, 5, sequence, (uint32_t)len, flags);
    bytes(payload, len);
    finish(name);
}

static void remote_tensor(uint64_t id, uint64_t nbytes, uint32_t rows, uint32_t columns) {
    RemoteTensorHead t;
    memset(&t, 0, sizeof t);
    memcpy(t.owner, "OWNER--1", 8);
    t.buffer_id = id;
    t.generation = 9;
    t.access = 2;
    t.backend = 3;
    t.nbytes = nbytes;
    t.owner_path = 0x0102;
    t.ndims = 2;
    bytes(&t, sizeof t);
    u32(rows);
    u32(columns);
    u32(columns);
    u32(1);
    u32(0); /* f32 */
}

/* Starts a control's payload; `end_body` closes it. */
static size_t body_at;

static void control_body(uint32_t name) {
    u32(name);
    u32(1);
    body_at = at;
    u32(0);
}

static void reply_body(uint64_t sequence, uint32_t name) {
    u64(sequence);
    u32(name);
    u32(1);
    u32(0);
    text("");
    body_at = at;
    u32(0);
}

static void end_body(void) {
    uint32_t len = (uint32_t)(at - body_at - 4);
    memcpy(out + body_at, &len, 4);
}

static void buffer(void) {
    u32(5); /* owner */
    u64(71);
    u64(2);
}

static void callable_ref(void) {
    u32(2); /* inner worker */
    u32(1); /* chip callable */
    put_digest(0x10);
}

static void export_result(void) {
    buffer();
    u32(3); /* window */
    u64(64);
    u64(4096);
    u64(900);
    u64(0xabc000);
    u64(0x77);
    u64(0);
    u32(3);
    text("tcp");
    blob(6, 0x30);
    u32(0);
}

static void remotes(void) {
    remote_header(2, 0x1122334455667788, 5, 7, 9, 0);
    finish("remote_header");

    u64(0x1122334455667788);
    u32(5);
    u32(3);
    text("tcp");
    u64(0x5);
    u32(1);
    remote("remote_hello", 1, 0, 0);

    put_digest(0x40);
    u32(4);
    u32(2);
    u32(1);
    u32(7);
    u32(1);
    u32(1);
    text("/tmp/out/run-1");
    u32(3);
    u32(2);
    remote_tensor(31, 64, 4, 4);
    remote_tensor(32, 256, 8, 8);
    remote_tensor(33, 64, 4, 4);
    RemoteTensorDesc d;
    memset(&d, 0, sizeof d);
    d.space = 1;
    d.nbytes = 64;
    d.inline_offset = 8;
    d.inline_length = 64;
    u8(1);
    bytes(&d, sizeof d);
    memset(&d, 0, sizeof d);
    d.space = 3;
    d.owner = 5;
    d.buffer_id = 71;
    d.offset = 128;
    d.nbytes = 256;
    d.remote_addr = 0xabc000;
    d.rkey = 0x77;
    d.generation = 2;
    u8(1);
    bytes(&d, sizeof d);
    u8(0);
    u64(42);
    u64(0xffffffffffffffff);
    blob(72, 0);
    remote("remote_task", 2, 7, 1);

    for (uint32_t name = 1; name <= 5; name++) {
        const char *names[] = {"remote_unregister", "remote_prepare_register", "remote_commit_register",
                               "remote_abort_register", "remote_prepare_callable"};
        control_body(name);
        callable_ref();
        if (name == 2) {
            u32(1);
            size_t payload_at = at;
            u32(0);
            blob(119, 0);
            u32(1);
            u64(10);
            put_digest(0x60);
            blob(10, 0x50);
            blob(0, 0);
            u32(0);
            uint32_t len = (uint32_t)(at - payload_at - 4);
            memcpy(out + payload_at, &len, 4);
        }
        end_body();
        remote(names[name - 1], 3, 10 + name, 0);
    }

    control_body(6);
    u64(8192);
    end_body();
    remote("remote_alloc", 3, 20, 0);
    reply_body(20, 6);
    buffer();
    u32(2);
    u64(8192);
    u64(0xabc000);
    u64(0x77);
    u64(0x99);
    end_body();
    remote("remote_alloc_reply", 4, 20, 0);

    control_body(7);
    buffer();
    end_body();
    remote("remote_free", 3, 21, 0);

    control_body(8);
    buffer();
    u64(100);
    u64(12);
    for (int i = 0; i < 12; i++) u8((uint64_t)i);
    end_body();
    remote("remote_copy_to", 3, 22, 0);

    control_body(9);
    buffer();
    u64(100);
    u64(12);
    end_body();
    remote("remote_copy_from", 3, 23, 0);
    reply_body(23, 9);
    for (int i = 0; i < 12; i++) u8((uint64_t)i);
    end_body();
    remote("remote_copy_from_reply", 4, 23, 0);

    control_body(10);
    buffer();
    u64(64);
    u64(4096);
    u32(3);
    text("tcp");
    u32(0);
    end_body();
    remote("remote_export", 3, 24, 0);
    reply_body(24, 10);
    export_result();
    end_body();
    remote("remote_export_reply", 4, 24, 0);

    control_body(11);
    u32(6);
    u32(1);
    export_result();
    u32(0);
    end_body();
    remote("remote_import", 3, 25, 0);
    reply_body(25, 11);
    u32(6);
    buffer();
    u64(1001);
    u32(3);
    u64(64);
    u64(4096);
    u64(0xdef000);
    u64(0x78);
    u64(0);
    u32(1);
    text("tcp");
    blob(6, 0x30);
    u32(0);
    end_body();
    remote("remote_import_reply", 4, 25, 0);

    control_body(12);
    u32(6);
    buffer();
    u64(1001);
    u32(0);
    end_body();
    remote("remote_release_import", 3, 26, 0);

    u64(26);
    u32(13);
    u32(1);
    u32(0xffffffff);
    text("unsupported: communication domains");
    u32(0);
    remote("remote_reply_unsupported", 4, 26, 0);

    u64(7);
    u32(1);
    text("worker 5: code 3: na\xc3\xafve kernel");
    remote("remote_completion", 5, 7, 0);
    remote("remote_health", 6, 1, 0);
    remote("remote_shutdown", 7, 27, 0);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: vectors DIRECTORY\n");
        return 2;
    }
    directory = argv[1];

    CallConfig c = config();
    save("call_config", &c, sizeof c);
    PipelineSlotLease lease = {.slot_id = 1, .generation = 0x0102030405060708};
    save("lease", &lease, sizeof lease);

    ChipTensor t = contiguous();
    save("chip_tensor_contiguous", &t, sizeof t);
    t = strided();
    save("chip_tensor_strided", &t, sizeof t);
    t = transposed();
    save("chip_tensor_transposed", &t, sizeof t);
    t = empty();
    save("chip_tensor_empty", &t, sizeof t);
    t = five();
    save("chip_tensor_five", &t, sizeof t);

    Tensor d = tensor(by_address(0, 0, 2, 1, 4096, 0x7f0000001000), 16, 4, 8, 16);
    save("tensor_fork_shm", &d, sizeof d);
    d = tensor(by_name(2, 4096, "psm_0123456789abcdef0123456789ab"), 0, 4, 8, 8);
    save("tensor_posix_shm", &d, sizeof d);
    d = tensor(by_address(2, 1, 2, 3, 4096, 0x100000), 0, 4, 8, 8);
    save("tensor_vmm_window", &d, sizeof d);
    d = tensor(descriptor(3, 1, 1, 4, 4096), 0, 4, 8, 8);
    save("tensor_remote_sidecar", &d, sizeof d);
    d = tensor(by_address(4, 1, 2, 5, 4096, 0x200000), 0, 4, 8, 8);
    save("tensor_device_malloc", &d, sizeof d);
    d = tensor(by_address(5, 0, 0, 6, 4096, 0x300000), 0, 4, 8, 8);
    save("tensor_fork_cow", &d, sizeof d);

    const int tensors[] = {0, 1, 256}, scalars[] = {0, 128};
    for (int protocol = 2; protocol <= 3; protocol++) {
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 2; j++) {
                char name[64];
                snprintf(name, sizeof name, "args_v%d_t%d_s%d", protocol, tensors[i], scalars[j]);
                args(tensors[i], scalars[j], protocol);
                finish(name);
            }
        }
        task_frame(protocol);
    }

    static ChipStorageTaskArgs s;
    memset(&s, 0, sizeof s);
    s.tensors[0] = contiguous();
    s.tensors[1] = five();
    s.scalars[0] = 42;
    s.tensor_count = 2;
    s.scalar_count = 1;
    save("chip_storage", &s, sizeof s);

    controls();
    identities();
    contracts();
    chip_callable();
    remotes();
    return 0;
}
