//! Controls on the base frame (W-3).

use zerocopy::{FromZeros as _, IntoBytes as _};

use super::{Frame, Words};
use crate::wire::control::{ControlCommand, ControlFrame, ControlRequest};
use crate::wire::frame as at;
use crate::wire::{Digest, FrameState, Protocol, WireError};

/// Parent: writes a control and hands it over with one release store of `state`.
pub fn publish_request<W: Words>(words: &W, request: &ControlRequest) {
    let control = ControlFrame::encode(request);
    words.store_relaxed(Frame::BASE.at(at::ERROR), 0);
    words.write(Frame::BASE.at(at::MESSAGE), 0);
    words.write(Frame::BASE.at(at::SUBCOMMAND), control.subcommand);
    words.write(Frame::BASE.at(at::CONTROL_ARG0), control.arg0);
    words.write(Frame::BASE.at(at::CONTROL_RESULT), 0);
    words.copy_in(Frame::BASE.at(at::CONTROL_PAYLOAD), &control.payload);
    Frame::BASE.publish_state(words, FrameState::ControlRequest);
}

/// Child: copies a published control once and judges the copy.
///
/// # Errors
/// An unknown sub-command, or the first field that is not legal.
pub fn read_request<W: Words>(words: &W, served: Protocol) -> Result<ControlRequest, WireError> {
    let mut control = ControlFrame::new_zeroed();
    control.subcommand = words.read(Frame::BASE.at(at::SUBCOMMAND));
    control.arg0 = words.read(Frame::BASE.at(at::CONTROL_ARG0));
    words.copy_out(Frame::BASE.at(at::CONTROL_PAYLOAD), control.payload.as_mut_bytes());
    control.decode(served)
}

/// Child: the digest of a published control.
pub fn read_digest<W: Words>(words: &W) -> Digest {
    let mut digest = Digest::ZERO;
    words.copy_out(Frame::BASE.at(at::CONTROL_DIGEST), &mut digest.0);
    digest
}

/// Child: the sub-command of a published control, if it is a known one.
pub fn read_command<W: Words>(words: &W) -> Option<ControlCommand> {
    ControlCommand::from_raw(words.read(Frame::BASE.at(at::SUBCOMMAND))).ok()
}

/// Child: writes the result of a control that succeeded; the store of CONTROL_DONE must follow.
pub fn write_result<W: Words>(words: &W, result: u64) {
    words.store_relaxed(Frame::BASE.at(at::ERROR), 0);
    words.write(Frame::BASE.at(at::CONTROL_RESULT), result);
}

/// Parent: the result of a control.
pub fn read_result<W: Words>(words: &W) -> u64 {
    words.read(Frame::BASE.at(at::CONTROL_RESULT))
}

/// Whether a command changes the registry of a child, and is therefore served only when no frame is staged or active
/// there (L-21).
#[must_use]
pub const fn changes_registry(command: ControlCommand) -> bool {
    use ControlCommand as C;
    matches!(command, C::Prepare | C::Register | C::Unregister | C::PyRegister | C::PyUnregister)
}

/// Whether a command takes a callable away, and therefore waits until no published frame carries its digest (L-21).
#[must_use]
pub const fn removes_callable(command: ControlCommand) -> bool {
    matches!(command, ControlCommand::Unregister | ControlCommand::PyUnregister)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::ArrayWords;
    use crate::wire::control::{CopySpan, Staged};

    /// W-3, L-21
    #[test]
    fn every_request_arrives_as_it_was_published() {
        let digest = Digest([7; 32]);
        let requests = [
            ControlRequest::Malloc { bytes: 4096 },
            ControlRequest::Free { address: 0x1000 },
            ControlRequest::CopyTo(CopySpan::Addresses { dst: 1, src: 2, nbytes: 3 }),
            ControlRequest::Prepare { digest },
            ControlRequest::Register { staged: Staged::Region(0xbeef), bytes: 99, digest },
            ControlRequest::Unregister { digest },
            ControlRequest::CommittedDeviceMemory,
        ];
        let words = ArrayWords::new(at::REGION_BYTES);
        for request in requests {
            publish_request(&words, &request);
            assert_eq!(Frame::BASE.state(&words), FrameState::ControlRequest.raw());
            assert_eq!(read_request(&words, Protocol::ChipTensors), Ok(request));
            let command = read_command(&words).unwrap();
            if changes_registry(command) {
                assert_eq!(read_digest(&words), digest, "{command:?}");
            }
        }
    }
}
