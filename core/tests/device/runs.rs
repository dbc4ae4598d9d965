//! The runs that the device of a test holds. It panics where the child half breaks a rule of the run lane.

/// Which runs are prepared, and which one is launched.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    next: u32,
    prepared: Vec<u32>,
    launched: Option<u32>,
}

impl Runs {
    /// L-12: beside another run only where the device prepares concurrently, and never beside two.
    pub(crate) fn prepare(&mut self, concurrently: bool) -> u32 {
        let others = self.prepared.len() + usize::from(self.launched.is_some());
        assert!(others <= usize::from(concurrently), "L-12: {others} runs are there already");
        self.next += 1;
        self.prepared.push(self.next);
        self.next
    }

    /// L-14: only a prepared run may be launched, and not before its predecessor was finalised.
    pub(crate) fn check_launch(&self, token: u32) {
        assert!(self.prepared.contains(&token), "launch of run {token}, which is not prepared");
        assert!(self.launched.is_none(), "L-14: launched before its predecessor was finalised");
    }

    /// Launches a run; one whose launch fails stays prepared instead.
    pub(crate) fn launch(&mut self, token: u32) {
        self.check_launch(token);
        self.prepared.retain(|prepared| *prepared != token);
        self.launched = Some(token);
    }

    /// Whether any run is launched.
    #[allow(dead_code, reason = "a device with a script is told when it accepts")]
    pub(crate) fn is_launched(&self) -> bool {
        self.launched.is_some()
    }

    /// Only the launched run is polled.
    pub(crate) fn check_poll(&self, token: u32) {
        assert_eq!(self.launched, Some(token), "poll of a run that is not launched");
    }

    /// L-15: each run is finalised once. Whether it was launched.
    pub(crate) fn finalize(&mut self, token: u32) -> bool {
        if self.launched.take_if(|launched| *launched == token).is_some() {
            return true;
        }
        assert!(self.prepared.contains(&token), "L-15: run {token} finalised twice");
        self.prepared.retain(|prepared| *prepared != token);
        false
    }

    /// L-15, L-21: neither a shutdown nor a control of the registry comes while there are runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.prepared.is_empty() && self.launched.is_none()
    }
}
