//! Both halves of a mailbox against each other in one thread: every rule of the lane protocol that two well-behaved or
//! one misbehaving side can show.

mod control;
mod hostile;
mod one_frame;
mod poison;
mod publish;
mod stop;
mod support;
mod two_frames;
