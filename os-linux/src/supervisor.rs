//! The children as their parent holds them: who takes their ends in, and what those tell.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::Label;
use laneway_core::time::Instant;

use crate::error::{Error, Place, StartCause};
use crate::host::Host;
use crate::link::Link;
use crate::memory::Space;
use crate::progress::{BellWord, News};
use crate::sys::clock;
use crate::sys::epoll::{Poller, Token, Watch};
use crate::sys::farewell::Leaving;

/// One child of this worker.
pub(crate) struct Child {
    pub(crate) label: Label,
    /// What kind of child it is, in messages.
    pub(crate) kind: &'static str,
    pub(crate) host: Box<dyn Host>,
    pub(crate) link: Arc<Link>,
    /// Whether its whole subtree is known to be gone.
    pub(crate) gone: bool,
    /// Since when something has told of its end that it lets go of a moment before it can be taken in.
    pub(crate) suspect: Option<Instant>,
}

/// A child that lives on for so long without its pipes has not been slow to end: it executed another program, or closed them.
const LET_GO: Duration = Duration::from_millis(100);

/// What woke the background thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Somebody asks for a round.
    Control,
    /// A callback may have been silent for too long.
    Takeover,
    /// A child published while nobody waits.
    Published,
    /// A child process ended.
    Exit(EndpointIndex),
    /// A subtree pipe hung up, or the child said its last word.
    Subtree(EndpointIndex),
}

impl Woken {
    const STRIDE: u64 = 4;

    pub(crate) fn token(self) -> Token {
        Token(match self {
            Self::Control => 0,
            Self::Takeover => 1,
            Self::Published => 2,
            Self::Exit(endpoint) => Self::STRIDE * (1 + u64::from(endpoint.0)),
            Self::Subtree(endpoint) => Self::STRIDE * (1 + u64::from(endpoint.0)) + 1,
        })
    }

    pub(crate) fn of(token: Token) -> Self {
        let endpoint = EndpointIndex((token.0 / Self::STRIDE).saturating_sub(1) as u16);
        match token.0 {
            0 => Self::Control,
            1 => Self::Takeover,
            2 | 3 => Self::Published,
            other if other % Self::STRIDE == 0 => Self::Exit(endpoint),
            _ => Self::Subtree(endpoint),
        }
    }
}

/// All children. The background thread alone takes their ends in.
pub(crate) struct Supervisor {
    pub(crate) children: Vec<Child>,
}

impl Supervisor {
    /// Adds every child's bells, and what tells of its end, to the background thread's wait set.
    pub(crate) fn watch(&self, set: &Poller) -> Result<(), Error> {
        for (endpoint, child) in self.endpoints() {
            set.add(&child.link.owner, Woken::Published.token(), Watch::Edge)?;
            set.add(child.host.end().unwrap_or(child.host.hint()), Woken::Exit(endpoint).token(), Watch::OneShot)?;
            if let Some(rest) = child.host.rest() {
                // More than once: the child's last word comes before the end of what it leaves behind.
                set.add(rest, Woken::Subtree(endpoint).token(), Watch::Edge)?;
            }
        }
        Ok(())
    }

    /// Looks at one child, because something told of its end; what that tells, at most once each.
    pub(crate) fn look(&mut self, endpoint: EndpointIndex, mut tell: impl FnMut(News)) {
        let Some(child) = self.children.get_mut(endpoint.index()) else { return };
        let known = child.host.exit().is_some();
        let exit = child.host.poll();
        if let (false, Some(cause)) = (known, exit) {
            tell(News::Exited(endpoint, cause));
        }
        // What it left to this process lets go of the subtree's pipe a moment before it can be reaped, and a close that is told
        // that all are gone reaps nothing any more (P-34).
        let (alone, orphans) = (child.host.is_alone(), child.host.has_orphans());
        if !child.gone && exit.is_some() && alone && !orphans {
            child.gone = true;
            tell(News::SubtreeGone(endpoint));
        }
        let suspect = exit.is_none() || (alone && orphans);
        let since = suspect.then(|| child.suspect.unwrap_or_else(clock::now));
        child.suspect = since;
        // Nothing in it that laneway knows of would hear a bell any more, and what ended it with its parent is gone.
        if exit.is_none() && alone && since.is_some_and(|since| clock::now().since(since) >= LET_GO) {
            child.host.end_for_letting_go();
        }
    }

    /// Looks again at children of which something told more than could be seen then. Says whether to come back soon.
    pub(crate) fn look_again(&mut self, mut tell: impl FnMut(News)) -> bool {
        for i in 0..self.children.len() {
            if self.children[i].suspect.is_some() {
                self.look(EndpointIndex(i as u16), &mut tell);
            }
        }
        self.children.iter().any(|child| child.suspect.is_some())
    }

    /// Kills one child, with all that it started; whether it can be.
    pub(crate) fn kill(&mut self, endpoint: EndpointIndex) -> bool {
        self.children.get_mut(endpoint.index()).is_some_and(|child| {
            child.host.kill();
            child.host.is_mortal()
        })
    }

    /// Kills every child that has not ended.
    pub(crate) fn kill_all(&mut self) {
        self.children.iter_mut().for_each(|child| child.host.kill());
    }

    /// Gives up on the children that have not ended: what they use is kept for them. Who, and where.
    pub(crate) fn abandon(&self, bell: &Arc<BellWord>, space: &Arc<Space>) -> Vec<(Label, Place)> {
        let alive = self.children.iter().filter(|child| child.host.exit().is_none());
        let abandon = |child: &Child| {
            child.host.outlive((child.link.clone(), bell.clone(), space.clone()));
            (child.label, child.host.place())
        };
        alive.map(abandon).collect()
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (EndpointIndex, &Child)> {
        (0..).map(EndpointIndex).zip(&self.children)
    }
}

impl Leaving for Child {
    fn is_gone(&mut self) -> bool {
        self.host.poll().is_some() && self.host.is_alone() && !self.host.has_orphans()
    }

    fn kill(&mut self) {
        self.host.kill();
    }

    fn watch(&self) -> Option<BorrowedFd<'_>> {
        // Once it has ended its subtree is what is waited for; before, that pipe may hang up a moment too early.
        if self.host.exit().is_some() { self.host.rest() } else { self.host.end() }
    }
}

impl Child {
    /// Why it did not become ready.
    pub(crate) fn start_error(&self, level: u32, cause: StartCause) -> Error {
        Error::ChildStart { level, label: self.label, kind: self.kind, place: self.host.place(), cause }
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::ids::SubId;
    use laneway_core::lane::ExitCause;

    use super::*;
    use crate::host::Kept;
    use crate::sys::eventfd::Bell;

    const END: ExitCause = ExitCause::Vanished { pid: 7 };

    /// A child that is dead; what it left behind is a zombie after so many looks.
    struct Dead {
        looks: u32,
        seen: bool,
        bell: Bell,
    }

    impl Host for Dead {
        fn place(&self) -> Place {
            Place::Thread
        }
        fn poll(&mut self) -> Option<ExitCause> {
            self.seen = true;
            self.looks = self.looks.saturating_sub(1);
            Some(END)
        }
        fn exit(&self) -> Option<ExitCause> {
            self.seen.then_some(END)
        }
        fn is_alone(&self) -> bool {
            true
        }
        fn has_orphans(&self) -> bool {
            self.looks > 0
        }
        fn terminate(&mut self) {}
        fn kill(&mut self) {}
        fn end_for_letting_go(&mut self) {}
        fn is_mortal(&self) -> bool {
            true
        }
        fn end(&self) -> Option<BorrowedFd<'_>> {
            None
        }
        fn hint(&self) -> BorrowedFd<'_> {
            use std::os::fd::AsFd;
            self.bell.as_fd()
        }
        fn rest(&self) -> Option<BorrowedFd<'_>> {
            None
        }
        fn outlive(&self, _: Kept) {}
    }

    /// P-34, P-14
    #[test]
    fn a_subtree_is_gone_once_what_it_left_to_this_process_is_reaped() {
        let host = Box::new(Dead { looks: 3, seen: false, bell: Bell::new().unwrap() });
        let link = Arc::new(Link::new("sub 0").unwrap());
        let child = Child { label: Label::Sub(SubId(0)), kind: "SUB child", host, link, gone: false, suspect: None };
        let mut supervisor = Supervisor { children: vec![child] };
        let (endpoint, mut news) = (EndpointIndex(0), Vec::new());
        supervisor.look(endpoint, |item| news.push(item));
        assert!(supervisor.look_again(|item| news.push(item)), "it still has orphans");
        assert_eq!(news, [News::Exited(endpoint, END)]);
        assert!(!supervisor.look_again(|item| news.push(item)));
        assert_eq!(news, [News::Exited(endpoint, END), News::SubtreeGone(endpoint)]);
    }

    #[test]
    fn a_token_says_what_it_was_made_of() {
        let ends = [EndpointIndex(0), EndpointIndex(1), EndpointIndex(u16::MAX - 1)];
        let all = [Woken::Control, Woken::Takeover, Woken::Published].into_iter();
        for woken in all.chain(ends.map(Woken::Exit)).chain(ends.map(Woken::Subtree)) {
            assert_eq!(Woken::of(woken.token()), woken);
        }
    }
}
