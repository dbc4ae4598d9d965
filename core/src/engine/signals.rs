//! What a sleeping owner must be woken for.

/// What has happened since the signals were last taken (E-35). Each is a reason to wake whoever waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals {
    /// A lease came back, or it became certain that none ever will: `begin_run` is worth another try (E-1).
    pub lease_free: bool,
    /// A ring, the task window or another pool gave something back: a blocked submit is worth another try (E-13).
    pub released: bool,
    /// A task ended: a wait for tensors is worth another look (E-2).
    pub task_ended: bool,
    /// A run was accepted or became terminal (E-8, E-9).
    pub run_changed: bool,
    /// Queued work became placeable: [`next_action`](super::Engine::next_action) has something to say.
    pub work: bool,
}
