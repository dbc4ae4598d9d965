//! What a device runtime declares about its pipeline.

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireError, num};

/// Most resources in a contract.
const MAX_RESOURCES: usize = 8;

const ABI_VERSION: u32 = 1;

/// One resource of a contract: 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PipelineResource {
    /// A [`ResourceKind`].
    pub kind: u32,
    /// A [`ResourceClass`].
    pub class: u32,
    /// Must be 0.
    pub bytes_per_copy: u64,
}

/// The contract as a runtime publishes it: 144 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PipelineContract {
    /// 1.
    pub abi_version: u32,
    /// Resources in use, at most 8.
    pub resource_count: u32,
    /// Runs that can be in flight, 1 or 2.
    pub pipeline_depth: u32,
    /// Padding of the published structure; not judged.
    pub padding: u32,
    /// The resources.
    pub resources: [PipelineResource; MAX_RESOURCES],
}

const_assert_eq!(size_of::<PipelineResource>(), 16);
const_assert_eq!(core::mem::offset_of!(PipelineResource, kind), 0);
const_assert_eq!(core::mem::offset_of!(PipelineResource, class), 4);
const_assert_eq!(core::mem::offset_of!(PipelineResource, bytes_per_copy), 8);
const_assert_eq!(size_of::<PipelineContract>(), 144);
const_assert_eq!(core::mem::offset_of!(PipelineContract, abi_version), 0);
const_assert_eq!(core::mem::offset_of!(PipelineContract, resource_count), 4);
const_assert_eq!(core::mem::offset_of!(PipelineContract, pipeline_depth), 8);
const_assert_eq!(core::mem::offset_of!(PipelineContract, resources), 16);

/// What a resource is; the number is its code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResourceKind {
    /// Heap in global memory (1).
    GmHeap,
    /// Shared block in global memory (2).
    GmSm,
    /// Image of the device runtime (3).
    RuntimeImage,
    /// Staged arguments (4).
    TaskArgs,
    /// Stream of the AICPU (5).
    AicpuStream,
    /// Stream of the AICore (6).
    AicoreStream,
}

impl ResourceKind {
    /// The kind that `code` stands for; 0 is "unspecified" and stands for none.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::GmHeap),
            2 => Some(Self::GmSm),
            3 => Some(Self::RuntimeImage),
            4 => Some(Self::TaskArgs),
            5 => Some(Self::AicpuStream),
            6 => Some(Self::AicoreStream),
            _ => None,
        }
    }

    /// The code in the contract.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::GmHeap => 1,
            Self::GmSm => 2,
            Self::RuntimeImage => 3,
            Self::TaskArgs => 4,
            Self::AicpuStream => 5,
            Self::AicoreStream => 6,
        }
    }

    /// Whether it is committed into the arena bank of a run.
    #[must_use]
    pub const fn is_arena(self) -> bool {
        matches!(self, Self::GmHeap | Self::GmSm | Self::RuntimeImage)
    }
}

/// How many copies of a resource there are; the number is its code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResourceClass {
    /// One per pipeline slot, prepared by the host (0).
    HostPerRun,
    /// One for the device (1).
    DeviceScratch,
    /// One per pipeline slot, a handle to execute on (2).
    ExecHandle,
}

impl ResourceClass {
    /// The class that `code` stands for.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::HostPerRun),
            1 => Some(Self::DeviceScratch),
            2 => Some(Self::ExecHandle),
            _ => None,
        }
    }

    /// The code in the contract.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::HostPerRun => 0,
            Self::DeviceScratch => 1,
            Self::ExecHandle => 2,
        }
    }

    /// Copies at a pipeline depth (C-1).
    #[must_use]
    pub const fn copies(self, depth: u32) -> u32 {
        match self {
            Self::DeviceScratch => 1,
            Self::HostPerRun | Self::ExecHandle => depth,
        }
    }
}

impl PipelineContract {
    /// A contract of `depth` with these resources; judged.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), and more than eight resources.
    pub fn new(depth: u32, resources: &[(ResourceKind, ResourceClass)]) -> Result<Self, WireError> {
        let mut contract = Self {
            abi_version: ABI_VERSION,
            resource_count: u32::try_from(resources.len()).unwrap_or(u32::MAX),
            pipeline_depth: depth,
            ..Self::default()
        };
        for (to, (kind, class)) in contract.resources.iter_mut().zip(resources) {
            *to = PipelineResource { kind: kind.code(), class: class.code(), bytes_per_copy: 0 };
        }
        contract.validate()?;
        Ok(contract)
    }

    /// The resources in use. Codes that [`validate`](Self::validate) would refuse are left out.
    pub fn declared(&self) -> impl Iterator<Item = (ResourceKind, ResourceClass)> + '_ {
        self.resources.iter().take(num::index(self.resource_count)).filter_map(|resource| {
            Some((ResourceKind::from_code(resource.kind)?, ResourceClass::from_code(resource.class)?))
        })
    }

    /// Judges the contract (C-2).
    ///
    /// # Errors
    /// Names what is out of range, unspecified, declared twice or has another number of copies than it must.
    pub fn validate(&self) -> Result<(), WireError> {
        let range = |field, value: u32, min: u32, max: u32| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                let (value, min, max) = (value.into(), min.into(), max.into());
                Err(WireError::OutOfRange { field, value, min, max })
            }
        };
        range("contract abi_version", self.abi_version, ABI_VERSION, ABI_VERSION)?;
        range("contract resource_count", self.resource_count, 0, 8)?;
        range("contract pipeline_depth", self.pipeline_depth, 1, 2)?;
        let mut declared = 0u8;
        let mut arena_copies = None;
        for resource in self.resources.iter().take(num::index(self.resource_count)) {
            let kind = ResourceKind::from_code(resource.kind).ok_or(WireError::UnknownCode {
                field: "contract resource kind",
                value: resource.kind.into(),
                known: "1 GM_HEAP, 2 GM_SM, 3 RUNTIME_IMAGE, 4 TASK_ARGS, 5 AICPU_STREAM, 6 AICORE_STREAM",
            })?;
            let class = ResourceClass::from_code(resource.class).ok_or(WireError::UnknownCode {
                field: "contract resource class",
                value: resource.class.into(),
                known: "0 HOST_PER_RUN, 1 DEVICE_SCRATCH, 2 EXEC_HANDLE",
            })?;
            if resource.bytes_per_copy != 0 {
                let value = resource.bytes_per_copy;
                return Err(WireError::NotZero { field: "contract resource bytes_per_copy", value });
            }
            if !kind.is_arena() {
                continue;
            }
            let bit = 1u8.wrapping_shl(kind.code());
            if declared & bit != 0 {
                return Err(WireError::ResourceTwice { kind });
            }
            declared |= bit;
            let copies = class.copies(self.pipeline_depth);
            let others = *arena_copies.get_or_insert(copies);
            if copies != others {
                return Err(WireError::ArenaCopies { kind, copies, others });
            }
        }
        Ok(())
    }
}
