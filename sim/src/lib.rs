//! A device model behind the device-runtime trait of laneway-core.
