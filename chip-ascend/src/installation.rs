//! Which files belong to a platform and runtime (C-10).

use std::path::{Path, PathBuf};

use laneway_core::chip::{Platform, RuntimeKind};

/// The files of one host runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Installation {
    pub(crate) platform: Platform,
    pub(crate) runtime: RuntimeKind,
    pub(crate) host_runtime: PathBuf,
    pub(crate) aicpu_kernel: PathBuf,
    pub(crate) aicore_kernel: PathBuf,
    pub(crate) dispatcher: Option<PathBuf>,
    pub(crate) context_library: Option<PathBuf>,
}

impl Installation {
    /// The files of a folder: `libhost_runtime.so`, `libaicpu_kernel.so`, `libaicore_kernel.so`, and on a simulation
    /// platform `libcpu_sim_context.so`.
    #[must_use]
    pub fn in_folder(folder: &Path, platform: Platform, runtime: RuntimeKind) -> Self {
        Self {
            platform,
            runtime,
            host_runtime: folder.join("libhost_runtime.so"),
            aicpu_kernel: folder.join("libaicpu_kernel.so"),
            aicore_kernel: folder.join("libaicore_kernel.so"),
            dispatcher: None,
            context_library: platform.is_simulation().then(|| folder.join("libcpu_sim_context.so")),
        }
    }

    /// The folder of a platform and runtime under the root of all installations:
    /// `<architecture>/<onboard|sim>/<runtime>`.
    #[must_use]
    pub fn under(root: &Path, platform: Platform, runtime: RuntimeKind) -> Self {
        let place = if platform.is_simulation() { "sim" } else { "onboard" };
        let folder = root.join(platform.architecture()).join(place).join(runtime.name());
        Self::in_folder(&folder, platform, runtime)
    }

    /// With another host runtime.
    #[must_use]
    pub fn with_host_runtime(mut self, path: impl Into<PathBuf>) -> Self {
        self.host_runtime = path.into();
        self
    }

    /// With other kernel files.
    #[must_use]
    pub fn with_kernels(mut self, aicpu: impl Into<PathBuf>, aicore: impl Into<PathBuf>) -> Self {
        (self.aicpu_kernel, self.aicore_kernel) = (aicpu.into(), aicore.into());
        self
    }

    /// With a dispatcher, which platforms on board may need and simulation platforms do not have: there it is ignored.
    #[must_use]
    pub fn with_dispatcher(mut self, path: impl Into<PathBuf>) -> Self {
        if !self.platform.is_simulation() {
            self.dispatcher = Some(path.into());
        }
        self
    }

    /// With another context library, which only simulation platforms have: elsewhere it is ignored.
    #[must_use]
    pub fn with_context_library(mut self, path: impl Into<PathBuf>) -> Self {
        if self.platform.is_simulation() {
            self.context_library = Some(path.into());
        }
        self
    }

    /// The platform.
    #[must_use]
    pub const fn platform(&self) -> Platform {
        self.platform
    }

    /// The runtime.
    #[must_use]
    pub const fn runtime(&self) -> RuntimeKind {
        self.runtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-10: a folder per architecture, place and runtime; only a simulation platform has a context library.
    #[test]
    fn an_installation_is_a_folder_per_platform_and_runtime() {
        let root = Path::new("/opt/runtimes");
        let onboard = Installation::under(root, Platform::A2A3, RuntimeKind::HostBuildGraph);
        assert_eq!(onboard.host_runtime, root.join("a2a3/onboard/host_build_graph/libhost_runtime.so"));
        assert_eq!(onboard.with_context_library("/x").context_library, None);
        let simulated = Installation::under(root, Platform::A5Sim, RuntimeKind::TensormapAndRingbuffer);
        let folder = root.join("a5/sim/tensormap_and_ringbuffer");
        assert_eq!(simulated.context_library, Some(folder.join("libcpu_sim_context.so")));
        assert_eq!(simulated.clone().with_dispatcher("/x"), simulated);
    }
}
