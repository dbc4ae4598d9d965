//! Small codes: how a task uses an argument, what a callable declares, what kind of callable it is and where it lives.

use super::WireError;

macro_rules! wire_code {
    ($(#[$doc:meta])* $name:ident, $field:literal, $known:literal { $($(#[$vdoc:meta])* $variant:ident = $code:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(i32)]
        pub enum $name { $($(#[$vdoc])* $variant = $code),+ }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$variant => $code),+ }
            }

            /// What `code` stands for.
            ///
            /// # Errors
            /// [`WireError::UnknownCode`], naming the codes that exist.
            pub const fn from_code(code: i32) -> Result<Self, WireError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(unknown($field, code, $known)),
                }
            }
        }
    };
}

#[allow(clippy::as_conversions)] // no lossless conversion is const
const fn unknown(field: &'static str, code: i32, known: &'static str) -> WireError {
    WireError::UnknownCode { field, value: code as i128, known }
}

wire_code! {
    /// How a task uses a tensor. Tags exist in the builder only and are consumed at submit: they order tasks and never
    /// reach a frame or a runtime.
    TensorTag, "tensor tag", "0 INPUT, 1 OUTPUT, 2 INOUT, 3 OUTPUT_EXISTING, 4 NO_DEP" {
        /// Read: waits for whoever writes it.
        Input = 0,
        /// Written whole; with address 0 the engine allocates it.
        Output = 1,
        /// Read and written.
        InOut = 2,
        /// Written whole, into memory that the user supplies.
        OutputExisting = 3,
        /// Handed over without any ordering.
        NoDep = 4,
    }
}

wire_code! {
    /// What a callable declares for one parameter.
    ArgDirection, "argument direction", "0 SCALAR, 1 IN, 2 OUT, 3 INOUT" {
        /// A scalar.
        Scalar = 0,
        /// A tensor that is read.
        In = 1,
        /// A tensor that is written.
        Out = 2,
        /// A tensor that is read and written.
        InOut = 3,
    }
}

wire_code! {
    /// What a callable is made of.
    CallableKind, "callable kind", "1 CHIP_CALLABLE, 2 PYTHON_SERIALIZED, 3 PYTHON_IMPORT, 4 NATIVE" {
        /// A device binary.
        ChipCallable = 1,
        /// A serialised Python function.
        PythonSerialized = 2,
        /// A Python function known by module and name.
        PythonImport = 3,
        /// A Rust function known by name; this project's own.
        Native = 4,
    }
}

wire_code! {
    /// Which registry resolves a callable.
    Namespace, "callable namespace", "1 LOCAL_CHIP, 2 LOCAL_PYTHON, 3 REMOTE_TASK_DISPATCHER" {
        /// The chip children of this worker.
        LocalChip = 1,
        /// The dispatch registry of host callables: SUB children and nested workers.
        LocalPython = 2,
        /// The registry of remote workers.
        RemoteTaskDispatcher = 3,
    }
}
