//! Binds an Ascend host_runtime library to the device-runtime trait of laneway-core.
