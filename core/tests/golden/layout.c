/* Prints the size of every structure and the offset of every field of the wire contract, one to a line. */
#include <stdio.h>

#include "layout.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define AT(type, field) printf(#type "." #field " %zu\n", offsetof(type, field))

int main(void) {
    SIZE(CallConfig);
    AT(CallConfig, aicpu_thread_num);
    AT(CallConfig, enable_chip_swimlane);
    AT(CallConfig, enable_dump_args);
    AT(CallConfig, enable_pmu);
    AT(CallConfig, enable_dep_gen);
    AT(CallConfig, enable_scope_stats);
    AT(CallConfig, ring_task_window);
    AT(CallConfig, ring_heap);
    AT(CallConfig, ring_dep_pool);
    AT(CallConfig, output_prefix);

    SIZE(PipelineSlotLease);
    AT(PipelineSlotLease, slot_id);
    AT(PipelineSlotLease, reserved);
    AT(PipelineSlotLease, generation);

    SIZE(Trailer);
    AT(Trailer, protocol);
    AT(Trailer, run);
    AT(Trailer, slot);
    AT(Trailer, generation);
    AT(Trailer, dispatch);

    SIZE(ChipTensor);
    printf("alignof ChipTensor %zu\n", alignof(ChipTensor));
    AT(ChipTensor, addr);
    AT(ChipTensor, bytes);
    AT(ChipTensor, owner_task_id);
    AT(ChipTensor, start_offset);
    AT(ChipTensor, version);
    AT(ChipTensor, ndims);
    AT(ChipTensor, dtype);
    AT(ChipTensor, manual_dep);
    AT(ChipTensor, is_contiguous);
    AT(ChipTensor, address_space);
    AT(ChipTensor, shapes);
    AT(ChipTensor, extent_elem);
    AT(ChipTensor, strides);
    AT(ChipTensor, zero);

    SIZE(BufferDescriptor);
    AT(BufferDescriptor, magic);
    AT(BufferDescriptor, address_space);
    AT(BufferDescriptor, access);
    AT(BufferDescriptor, backend);
    AT(BufferDescriptor, owner);
    AT(BufferDescriptor, buffer_id);
    AT(BufferDescriptor, generation);
    AT(BufferDescriptor, nbytes);
    AT(BufferDescriptor, owner_path);
    AT(BufferDescriptor, body_len);
    AT(BufferDescriptor, reserved);
    AT(BufferDescriptor, body);

    SIZE(Tensor);
    AT(Tensor, buffer);
    AT(Tensor, byte_offset);
    AT(Tensor, ndims);
    AT(Tensor, shapes);
    AT(Tensor, strides);
    AT(Tensor, dtype);
    AT(Tensor, zero);

    SIZE(TaskArgsView);

    SIZE(ChipStorageTaskArgs);
    printf("alignof ChipStorageTaskArgs %zu\n", alignof(ChipStorageTaskArgs));
    AT(ChipStorageTaskArgs, tensors);
    AT(ChipStorageTaskArgs, scalars);
    AT(ChipStorageTaskArgs, tensor_count);
    AT(ChipStorageTaskArgs, scalar_count);

    SIZE(TaskFrame);
    AT(TaskFrame, state);
    AT(TaskFrame, error);
    AT(TaskFrame, reserved);
    AT(TaskFrame, config);
    AT(TaskFrame, lease);
    AT(TaskFrame, digest);
    AT(TaskFrame, args);
    AT(TaskFrame, shutdown);
    AT(TaskFrame, zero);
    AT(TaskFrame, trailer);
    AT(TaskFrame, accepted);
    AT(TaskFrame, preparation);
    AT(TaskFrame, message);

    SIZE(BaseFrame);
    AT(BaseFrame, state);
    AT(BaseFrame, error);
    AT(BaseFrame, subcommand);
    AT(BaseFrame, arg0);
    AT(BaseFrame, result);
    AT(BaseFrame, startup);
    AT(BaseFrame, payload.named.name);
    AT(BaseFrame, payload.named.digest);
    AT(BaseFrame, payload.addresses.src);
    AT(BaseFrame, payload.addresses.nbytes);
    AT(BaseFrame, payload.buffers.src);
    AT(BaseFrame, payload.buffers.nbytes);
    AT(BaseFrame, extension.parent_magic);
    AT(BaseFrame, extension.parent_cpu);
    AT(BaseFrame, extension.parent_crowded);
    AT(BaseFrame, extension.child_magic);
    AT(BaseFrame, extension.parked);
    AT(BaseFrame, extension.child_cpu);
    AT(BaseFrame, extension.activity);
    AT(BaseFrame, extension.run);
    AT(BaseFrame, extension.dispatch);
    AT(BaseFrame, extension.tasks);
    AT(BaseFrame, extension.busy_nanos);
    AT(BaseFrame, extension.spin_nanos);
    AT(BaseFrame, extension.since_nanos);
    AT(BaseFrame, shutdown);
    AT(BaseFrame, trailer);
    AT(BaseFrame, accepted);
    AT(BaseFrame, preparation);
    AT(BaseFrame, message);

    SIZE(PipelineResource);
    AT(PipelineResource, kind);
    AT(PipelineResource, class_);
    AT(PipelineResource, bytes_per_copy);
    SIZE(PipelineContract);
    AT(PipelineContract, abi_version);
    AT(PipelineContract, resource_count);
    AT(PipelineContract, pipeline_depth);
    AT(PipelineContract, resources);

    SIZE(NativeRunDescriptor);
    AT(NativeRunDescriptor, pipeline_slot);
    AT(NativeRunDescriptor, arena_bank);
    AT(NativeRunDescriptor, run_id);
    AT(NativeRunDescriptor, generation);
    AT(NativeRunDescriptor, dispatch_id);
    AT(NativeRunDescriptor, run_epoch);
    AT(NativeRunDescriptor, accepted_state);
    AT(NativeRunDescriptor, accepted_value);

    AT(ChipCallable, signature);
    AT(ChipCallable, sig_count);
    AT(ChipCallable, binary_size);
    AT(ChipCallable, func_name);
    AT(ChipCallable, func_name_len);
    AT(ChipCallable, child_func_ids);
    AT(ChipCallable, child_offsets);
    AT(ChipCallable, child_count);
    AT(ChipCallable, config_name);
    AT(ChipCallable, config_name_len);
    AT(ChipCallable, storage);
    AT(CoreCallable, signature);
    AT(CoreCallable, sig_count);
    AT(CoreCallable, binary_size);
    AT(CoreCallable, resolved_addr);
    AT(CoreCallable, binary);

    SIZE(RemoteHeader);
    AT(RemoteHeader, magic);
    AT(RemoteHeader, version);
    AT(RemoteHeader, type);
    AT(RemoteHeader, session);
    AT(RemoteHeader, worker);
    AT(RemoteHeader, sequence);
    AT(RemoteHeader, payload_bytes);
    AT(RemoteHeader, flags);

    SIZE(RemoteTensorHead);
    AT(RemoteTensorHead, owner);
    AT(RemoteTensorHead, buffer_id);
    AT(RemoteTensorHead, generation);
    AT(RemoteTensorHead, space);
    AT(RemoteTensorHead, access);
    AT(RemoteTensorHead, backend);
    AT(RemoteTensorHead, nbytes);
    AT(RemoteTensorHead, owner_path);
    AT(RemoteTensorHead, body_len);
    AT(RemoteTensorHead, byte_offset);
    AT(RemoteTensorHead, ndims);

    SIZE(RemoteTensorDesc);
    AT(RemoteTensorDesc, space);
    AT(RemoteTensorDesc, owner);
    AT(RemoteTensorDesc, buffer_id);
    AT(RemoteTensorDesc, offset);
    AT(RemoteTensorDesc, nbytes);
    AT(RemoteTensorDesc, remote_addr);
    AT(RemoteTensorDesc, rkey);
    AT(RemoteTensorDesc, generation);
    AT(RemoteTensorDesc, inline_offset);
    AT(RemoteTensorDesc, inline_length);
    AT(RemoteTensorDesc, flags);
    return 0;
}
