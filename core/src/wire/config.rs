//! The per-task settings that travel in every frame.

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireError, num};

/// Heap rings, and so entries of every ring override.
pub const RINGS: usize = 4;

/// Size of the `output_prefix` field, NUL included.
pub const OUTPUT_PREFIX_BYTES: usize = 1024;

const I32_MAX: u64 = 0x7FFF_FFFF;

/// Settings of one task. All zero (the default) means: everything automatic, nothing diagnosed.
///
/// The fields are plain and public; [`validate`](Self::validate) judges them, at submit and again in the child.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CallConfig {
    /// AICPU threads; 0 = auto, an explicit value is ≥ 2.
    pub aicpu_thread_num: i32,
    /// Swim-lane trace level, 0 (off) to 4.
    pub enable_chip_swimlane: i32,
    /// Non-zero: dump arguments.
    pub enable_dump_args: i32,
    /// 0 = off, else the event type of the performance unit.
    pub enable_pmu: i32,
    /// Non-zero: write out the dependency graph.
    pub enable_dep_gen: i32,
    /// Non-zero: gather statistics per scope.
    pub enable_scope_stats: i32,
    /// Tasks in flight per ring; 0 = unset, else a power of two in 4..=`i32::MAX`.
    pub ring_task_window: [u64; RINGS],
    /// Heap bytes per ring; 0 = unset, else ≥ 1,024.
    pub ring_heap: [u64; RINGS],
    /// Dependency records per ring; 0 = unset, else 4..=`i32::MAX`.
    pub ring_dep_pool: [u64; RINGS],
    /// Where diagnostic output goes: a path, ended by a NUL.
    pub output_prefix: [u8; OUTPUT_PREFIX_BYTES],
}

const_assert_eq!(size_of::<CallConfig>(), 1_144);
const_assert_eq!(align_of::<CallConfig>(), 8);
const_assert_eq!(core::mem::offset_of!(CallConfig, aicpu_thread_num), 0);
const_assert_eq!(core::mem::offset_of!(CallConfig, enable_chip_swimlane), 4);
const_assert_eq!(core::mem::offset_of!(CallConfig, enable_dump_args), 8);
const_assert_eq!(core::mem::offset_of!(CallConfig, enable_pmu), 12);
const_assert_eq!(core::mem::offset_of!(CallConfig, enable_dep_gen), 16);
const_assert_eq!(core::mem::offset_of!(CallConfig, enable_scope_stats), 20);
const_assert_eq!(core::mem::offset_of!(CallConfig, ring_task_window), 24);
const_assert_eq!(core::mem::offset_of!(CallConfig, ring_heap), 56);
const_assert_eq!(core::mem::offset_of!(CallConfig, ring_dep_pool), 88);
const_assert_eq!(core::mem::offset_of!(CallConfig, output_prefix), 120);

impl CallConfig {
    /// Everything automatic, nothing diagnosed.
    pub const ZERO: Self = Self {
        aicpu_thread_num: 0,
        enable_chip_swimlane: 0,
        enable_dump_args: 0,
        enable_pmu: 0,
        enable_dep_gen: 0,
        enable_scope_stats: 0,
        ring_task_window: [0; RINGS],
        ring_heap: [0; RINGS],
        ring_dep_pool: [0; RINGS],
        output_prefix: [0; OUTPUT_PREFIX_BYTES],
    };

    fn enables(&self) -> [(&'static str, i32); 5] {
        [
            ("enable_chip_swimlane", self.enable_chip_swimlane),
            ("enable_dump_args", self.enable_dump_args),
            ("enable_pmu", self.enable_pmu),
            ("enable_dep_gen", self.enable_dep_gen),
            ("enable_scope_stats", self.enable_scope_stats),
        ]
    }

    /// Whether any of the five enables is set. A diagnostic run shares the device with no other.
    #[must_use]
    pub const fn is_diagnostic(&self) -> bool {
        (self.enable_chip_swimlane
            | self.enable_dump_args
            | self.enable_pmu
            | self.enable_dep_gen
            | self.enable_scope_stats)
            != 0
    }

    /// Judges every field.
    ///
    /// # Errors
    /// Names the field, its value and what would be legal.
    #[inline]
    pub fn validate(&self) -> Result<(), WireError> {
        if self.is_unset() {
            return Ok(());
        }
        self.validate_fields()
    }

    /// Whether every field is 0, the config of almost every task. Does not read the prefix behind its first byte.
    #[inline]
    fn is_unset(&self) -> bool {
        let any = |[a, b, c, d]: [u64; RINGS]| a | b | c | d;
        let rings = any(self.ring_task_window) | any(self.ring_heap) | any(self.ring_dep_pool);
        rings == 0 && self.aicpu_thread_num == 0 && !self.is_diagnostic() && self.output_prefix.first() == Some(&0)
    }

    #[inline(never)]
    fn validate_fields(&self) -> Result<(), WireError> {
        let threads = self.aicpu_thread_num;
        if threads != 0 && threads < 2 {
            let max = i128::from(i32::MAX);
            return Err(WireError::OutOfRange {
                field: "aicpu_thread_num (if not 0 = auto)",
                value: threads.into(),
                min: 2,
                max,
            });
        }
        let level = self.enable_chip_swimlane;
        if !(0..=4).contains(&level) {
            let field = "enable_chip_swimlane";
            return Err(WireError::OutOfRange { field, value: level.into(), min: 0, max: 4 });
        }
        if self.enable_pmu < 0 {
            let (value, max) = (self.enable_pmu.into(), i32::MAX.into());
            return Err(WireError::OutOfRange { field: "enable_pmu", value, min: 0, max });
        }
        ring("runtime_env.ring_task_window", &self.ring_task_window, 4, I32_MAX, true)?;
        ring("runtime_env.ring_heap", &self.ring_heap, 1024, u64::MAX, false)?;
        ring("runtime_env.ring_dep_pool", &self.ring_dep_pool, 4, I32_MAX, false)?;
        if self.output_prefix()?.is_empty()
            && let Some(&(enable, value)) = self.enables().iter().find(|(_, value)| *value != 0)
        {
            return Err(WireError::NoOutputPrefix { enable, value });
        }
        Ok(())
    }

    /// The path without its NUL. Reads no further than the NUL.
    ///
    /// # Errors
    /// [`WireError::Unterminated`] if there is none.
    pub fn output_prefix(&self) -> Result<&[u8], WireError> {
        match self.output_prefix.iter().position(|&byte| byte == 0) {
            Some(len) => Ok(self.output_prefix.get(..len).unwrap_or_default()),
            None => Err(WireError::Unterminated { field: "output_prefix", capacity: num::wide(OUTPUT_PREFIX_BYTES) }),
        }
    }

    /// Sets the path; the rest of the field becomes zero.
    ///
    /// # Errors
    /// [`WireError::TooLong`] over 1,023 bytes, [`WireError::Text`] for a path with a NUL in it.
    pub fn set_output_prefix(&mut self, path: &[u8]) -> Result<(), WireError> {
        let field = "output_prefix";
        if path.len() >= OUTPUT_PREFIX_BYTES {
            return Err(WireError::TooLong { field, len: num::wide(path.len()), max: 1023 });
        }
        if let Some(at) = path.iter().position(|&byte| byte == 0) {
            return Err(WireError::Text { field, at: num::wide(at), must: "a path without NUL" });
        }
        self.output_prefix = [0; OUTPUT_PREFIX_BYTES];
        for (to, from) in self.output_prefix.iter_mut().zip(path) {
            *to = *from;
        }
        Ok(())
    }
}

fn ring(
    field: &'static str,
    overrides: &[u64; RINGS],
    min: u64,
    max: u64,
    power_of_two: bool,
) -> Result<(), WireError> {
    for (ring, &value) in (0u32..).zip(overrides) {
        if value != 0 && (value < min || value > max || (power_of_two && !value.is_power_of_two())) {
            return Err(WireError::Ring { field, ring, value, min, max, power_of_two });
        }
    }
    Ok(())
}

impl Default for CallConfig {
    fn default() -> Self {
        Self::ZERO
    }
}

impl core::fmt::Debug for CallConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("CallConfig");
        out.field("aicpu_thread_num", &self.aicpu_thread_num);
        for (name, value) in self.enables() {
            out.field(name, &value);
        }
        out.field("ring_task_window", &self.ring_task_window)
            .field("ring_heap", &self.ring_heap)
            .field("ring_dep_pool", &self.ring_dep_pool)
            .field("output_prefix", &self.output_prefix().map(|path| path.escape_ascii()))
            .finish()
    }
}
