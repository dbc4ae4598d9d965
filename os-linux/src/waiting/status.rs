//! What a child says it is doing, in words of its own mailbox (P-20).
//!
//! Everything is stored relaxed into one line that only a person's question takes out of the child's cache. The clock is read
//! once a task, after its end was published: a task begins when the one before it ended, or when the spin or the sleep after
//! that ended.

use std::cell::Cell;

use laneway_core::mailbox::extension;
use laneway_core::serve::{Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use laneway_core::time::Instant;
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::extension::ChildActivity;

use crate::child_entry::leave_copy;
use crate::sys::clock;
use crate::sys::lineage::Lineage;
use crate::sys::words::MailboxWords;

/// The status words of one child, on its side. All times are nanoseconds.
pub(crate) struct Status {
    words: MailboxWords,
    activity: Cell<ChildActivity>,
    /// When the child was last known to begin or end something.
    mark: Cell<u64>,
    /// When the task that runs began.
    running: Cell<Option<u64>>,
    /// When the task began that has ended and is not counted yet.
    ended: Cell<Option<u64>>,
    tasks: Cell<u64>,
    busy: Cell<u64>,
    /// What the last task took.
    last: Cell<u64>,
    spun: Cell<u64>,
}

impl Status {
    pub(crate) fn new(words: MailboxWords) -> Self {
        let mark = clock::now().as_nanos();
        extension::show_activity(&words, ChildActivity::Starting, mark);
        Self {
            words,
            activity: Cell::new(ChildActivity::Starting),
            mark: Cell::new(mark),
            running: Cell::new(None),
            ended: Cell::new(None),
            tasks: Cell::new(0),
            busy: Cell::new(0),
            last: Cell::new(0),
            spun: Cell::new(0),
        }
    }

    fn show(&self, activity: ChildActivity, since: u64) {
        if self.activity.replace(activity) != activity {
            extension::show_activity(&self.words, activity, since);
        }
    }

    /// What it is at when it does nothing else.
    fn show_rest(&self, otherwise: ChildActivity) {
        match self.running.get() {
            Some(begun) => self.show(ChildActivity::Task, begun),
            None => self.show(otherwise, self.mark.get()),
        }
    }

    /// A step did something, which was over at `now`; how many nanoseconds the task took that it ended, if it did end one.
    pub(crate) fn worked(&self, now: Instant) -> Option<u64> {
        let now = now.as_nanos();
        let task = self.ended.take().map(|begun| now.saturating_sub(begun));
        if let Some(task) = task {
            self.last.set(task);
            self.tasks.set(self.tasks.get() + 1);
            self.busy.set(self.busy.get() + task);
            extension::show_tasks(&self.words, self.tasks.get(), self.busy.get());
        }
        self.mark.set(now);
        self.show_rest(ChildActivity::Waiting);
        task
    }

    /// Nanoseconds that the last task took.
    pub(crate) fn last_task(&self) -> u64 {
        self.last.get()
    }

    /// It spun for that long.
    pub(crate) fn spun(&self, nanos: u64) {
        self.mark.set(self.mark.get() + nanos);
        self.spun.set(self.spun.get() + nanos);
        extension::show_spun(&self.words, self.spun.get());
    }

    /// It is about to sleep.
    pub(crate) fn parks(&self) {
        self.show_rest(ChildActivity::Parked);
    }

    /// It slept until `now`; for how many nanoseconds.
    pub(crate) fn woke(&self, now: Instant) -> u64 {
        let since = self.mark.replace(now.as_nanos());
        self.show_rest(ChildActivity::Waiting);
        now.as_nanos().saturating_sub(since)
    }

    fn begins(&self, task: &Task<'_>) {
        let begun = self.mark.get();
        self.running.set(Some(begun));
        extension::show_task(&self.words, &task.identity);
        self.show(ChildActivity::Task, begun);
    }

    fn ends(&self) {
        self.ended.set(self.running.take());
    }
}

/// A runner that says what it is doing.
pub(crate) struct Reporting<'s, R: Runner> {
    runner: R,
    status: &'s Status,
    launched: Option<R::Token>,
    lineage: Lineage,
}

impl<'s, R: Runner> Reporting<'s, R> {
    /// `lineage` is of the child as it began.
    pub(crate) fn new(runner: R, status: &'s Status, lineage: Lineage) -> Self {
        Self { runner, status, launched: None, lineage }
    }

    /// What a call into code of the user's returned. If it forked and both sides come back, one of them is not this child: two
    /// would answer one task, and ring with the same bells (L-1).
    #[inline]
    fn returned<T>(&self, result: T) -> T {
        if self.lineage.is_inherited() {
            leave_copy();
        }
        result
    }

    /// What does the work.
    pub(crate) const fn inner(&self) -> &R {
        &self.runner
    }
}

impl<R: Runner> Runner for Reporting<'_, R> {
    type Token = R::Token;

    fn knows(&mut self, digest: &Digest) -> bool {
        self.runner.knows(digest)
    }

    fn prepares_concurrently(&self) -> bool {
        self.runner.prepares_concurrently()
    }

    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<R::Token, PrepareError> {
        let prepared = self.runner.prepare(task, report);
        self.returned(prepared)
    }

    fn launch(&mut self, token: R::Token, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        self.launched = Some(token);
        self.status.begins(task);
        let launched = self.runner.launch(token, task, report);
        self.returned(launched)
    }

    fn accepted(&mut self, token: R::Token) -> bool {
        let accepted = self.runner.accepted(token);
        self.returned(accepted)
    }

    fn poll(&mut self, token: R::Token, report: &mut Report) -> Result<Poll, Failure> {
        let polled = self.runner.poll(token, report);
        self.returned(polled)
    }

    fn finalize(&mut self, token: R::Token, report: &mut Report) -> Result<(), Failure> {
        let result = self.runner.finalize(token, report);
        let result = self.returned(result);
        // One that was prepared and never launched is no task.
        if self.launched == Some(token) {
            self.launched = None;
            self.status.ends();
        }
        result
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        self.status.show(ChildActivity::Control, clock::now().as_nanos());
        let served = self.runner.control(request, report);
        self.returned(served)
    }

    fn shutdown(&mut self) {
        self.status.show(ChildActivity::Stopping, clock::now().as_nanos());
        self.runner.shutdown();
        self.returned(());
    }
}
