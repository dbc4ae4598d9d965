//! Other people's IPC, for scale.

use super::super::case::Case;
use super::super::peers::Peers;

pub(super) fn cases(peers: &Peers) -> Vec<Case<'_>> {
    vec![
        Case::pinned("iox_request", "iceoryx2 request and response, 64 B", |slice| {
            peers.request_response.borrow_mut().measure(slice)
        }),
        Case::pinned("iox_publish", "iceoryx2 publish and subscribe, 64 B there and back", |slice| {
            peers.publish_subscribe.borrow_mut().measure(slice)
        }),
    ]
}
