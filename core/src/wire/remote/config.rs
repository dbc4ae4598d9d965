//! A task's settings between hosts. Ring overrides do not travel.

use super::caps;
use super::field::Field;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;
use crate::wire::{CallConfig, WireError};

/// The part of a [`CallConfig`] that travels; the path is borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RemoteConfig<'a> {
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
    /// Where diagnostic output goes.
    pub output_prefix: &'a str,
}

impl<'a> RemoteConfig<'a> {
    /// What travels of `config`.
    ///
    /// # Errors
    /// A ring override that is not 0, a path that is not UTF-8 or has no NUL.
    pub fn of(config: &'a CallConfig) -> Result<Self, WireError> {
        let rings = [
            ("runtime_env.ring_task_window", &config.ring_task_window),
            ("runtime_env.ring_heap", &config.ring_heap),
            ("runtime_env.ring_dep_pool", &config.ring_dep_pool),
        ];
        for (field, overrides) in rings {
            if let Some(&value) = overrides.iter().find(|value| **value != 0) {
                return Err(WireError::NotZero { field, value });
            }
        }
        let output_prefix = core::str::from_utf8(config.output_prefix()?).map_err(|error| WireError::Text {
            field: "output_prefix",
            at: crate::wire::num::wide(error.valid_up_to()),
            must: "UTF-8",
        })?;
        Ok(Self {
            aicpu_thread_num: config.aicpu_thread_num,
            enable_chip_swimlane: config.enable_chip_swimlane,
            enable_dump_args: config.enable_dump_args,
            enable_pmu: config.enable_pmu,
            enable_dep_gen: config.enable_dep_gen,
            enable_scope_stats: config.enable_scope_stats,
            output_prefix,
        })
    }

    /// The whole config, judged; its rings are unset.
    ///
    /// # Errors
    /// As [`CallConfig::validate`].
    pub fn to_config(&self) -> Result<CallConfig, WireError> {
        let mut config = CallConfig {
            aicpu_thread_num: self.aicpu_thread_num,
            enable_chip_swimlane: self.enable_chip_swimlane,
            enable_dump_args: self.enable_dump_args,
            enable_pmu: self.enable_pmu,
            enable_dep_gen: self.enable_dep_gen,
            enable_scope_stats: self.enable_scope_stats,
            ..CallConfig::ZERO
        };
        config.set_output_prefix(self.output_prefix.as_bytes())?;
        config.validate()?;
        Ok(config)
    }

    fn fields(&self) -> [i32; 6] {
        [
            self.aicpu_thread_num,
            self.enable_chip_swimlane,
            self.enable_dump_args,
            self.enable_pmu,
            self.enable_dep_gen,
            self.enable_scope_stats,
        ]
    }
}

impl<'a> Field<'a> for RemoteConfig<'a> {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        let config = Self {
            aicpu_thread_num: cursor.i32()?,
            enable_chip_swimlane: cursor.i32()?,
            enable_dump_args: cursor.i32()?,
            enable_pmu: cursor.i32()?,
            enable_dep_gen: cursor.i32()?,
            enable_scope_stats: cursor.i32()?,
            output_prefix: cursor.str("output_prefix", caps::OUTPUT_PREFIX)?,
        };
        config.to_config()?;
        Ok(config)
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        self.to_config()?;
        self.fields().iter().try_for_each(|value| value.write(out, "config"))?;
        out.blob("output_prefix", self.output_prefix.as_bytes(), caps::OUTPUT_PREFIX)
    }
}
