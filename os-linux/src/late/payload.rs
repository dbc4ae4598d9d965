//! A late callable as bytes: what crosses from the parent to its children.

use laneway_core::wire::Digest;

use super::{Images, Late, LateFn, LateOrchestration, Target};
use crate::error::{CallableError, Error};

const FUNCTION: u32 = 1;
const ORCHESTRATION: u32 = 2;
const SYMBOL: u32 = 3;

/// The bytes: form, version, name, then an address or a path and a symbol, then the captured bytes. Numbers are little-endian,
/// texts and bytes follow their u32 length.
pub(crate) struct Payload;

impl Payload {
    pub(crate) fn encode(late: &Late) -> Vec<u8> {
        let mut out = Vec::new();
        let form = match late.target {
            Target::Function(_) => FUNCTION,
            Target::Orchestration(_) => ORCHESTRATION,
            Target::Symbol { .. } => SYMBOL,
        };
        out.extend(form.to_le_bytes());
        out.extend(late.version.to_le_bytes());
        put(&mut out, late.name.as_bytes());
        match &late.target {
            Target::Symbol { path, symbol } => {
                put(&mut out, path.as_bytes());
                put(&mut out, symbol.as_bytes());
            }
            Target::Function(_) | Target::Orchestration(_) => {
                out.extend(late.address().unwrap_or_default().to_le_bytes());
            }
        }
        put(&mut out, &late.captured);
        out
    }

    /// Reads a callable back, in a child. `digest` is what the parent calls it; `images` were mapped before the fork.
    ///
    /// # Errors
    /// [`CallableError::HashidDescriptorMismatch`] for bytes that are not the callable of that name, or no callable.
    pub(crate) fn decode(bytes: &[u8], digest: &Digest, images: &Images) -> Result<Late, Error> {
        let mismatch = || CallableError::HashidDescriptorMismatch { digest: *digest };
        let late = read(bytes, images).ok_or_else(mismatch)?;
        if late.digest()? == *digest { Ok(late) } else { Err(mismatch().into()) }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // Longer ones do not fit the staging area and are refused there.
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(bytes);
}

fn read(bytes: &[u8], images: &Images) -> Option<Late> {
    let mut rest = bytes;
    let form = number(&mut rest)?;
    let version = number(&mut rest)?;
    let name = text(&mut rest)?;
    let target = match form {
        FUNCTION => Target::Function(function(&mut rest, images)?),
        ORCHESTRATION => Target::Orchestration(orchestration(&mut rest, images)?),
        SYMBOL => Target::Symbol { path: text(&mut rest)?, symbol: text(&mut rest)? },
        _ => return None,
    };
    let captured = slice(&mut rest)?.to_vec();
    rest.is_empty().then_some(Late { name, version, target, captured })
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_le_bytes(*head))
}

fn slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = number(rest)? as usize;
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(head)
}

fn text(rest: &mut &[u8]) -> Option<String> {
    String::from_utf8(slice(rest)?.to_vec()).ok()
}

fn code(rest: &mut &[u8], images: &Images) -> Option<usize> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    let address = u64::from_le_bytes(*head);
    images.hold(address).then_some(address as usize)
}

#[expect(unsafe_code, reason = "an address of the same program, in the same image")]
fn function(rest: &mut &[u8], images: &Images) -> Option<LateFn> {
    let address = code(rest, images)? as *const ();
    // SAFETY: the parent, which is this program forked, took the address from a value of this very type, and the image that
    // it lies in is mapped here at the same place. A parent that lies could as well send other code to run.
    Some(unsafe { std::mem::transmute::<*const (), LateFn>(address) })
}

#[expect(unsafe_code, reason = "an address of the same program, in the same image")]
fn orchestration(rest: &mut &[u8], images: &Images) -> Option<LateOrchestration> {
    let address = code(rest, images)? as *const ();
    // SAFETY: as in `function`.
    Some(unsafe { std::mem::transmute::<*const (), LateOrchestration>(address) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callable::BoxError;
    use crate::sub::SubArgs;

    fn nothing(_: &SubArgs<'_>, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }

    fn sample(target: Target) -> Late {
        Late { name: "n".to_owned(), version: 3, target, captured: vec![1, 2, 3] }
    }

    ///
    #[test]
    fn a_callable_arrives_as_it_was_sent_and_nothing_else_is_taken_for_one() {
        let images = Images::mapped();
        let symbol = Target::Symbol { path: "/lib/x.so".to_owned(), symbol: "f".to_owned() };
        for late in [sample(Target::Function(nothing)), sample(symbol)] {
            let (bytes, digest) = (Payload::encode(&late), late.digest().unwrap());
            let read = Payload::decode(&bytes, &digest, &images).unwrap();
            assert_eq!((read.identity(), &read.captured), (late.identity(), &late.captured));
            for len in 0..bytes.len() {
                assert!(Payload::decode(&bytes[..len], &digest, &images).is_err(), "cut to {len}");
            }
            for at in 0..bytes.len() {
                let mut wrong = bytes.clone();
                wrong[at] ^= 0x40;
                // What is not part of the name may differ: then it is another target under the same name.
                let read = Payload::decode(&wrong, &digest, &images);
                assert!(read.is_err() || read.is_ok_and(|read| read.digest() == Ok(digest)), "byte {at}");
            }
        }
    }

    ///
    #[test]
    fn an_address_outside_every_image_is_no_function() {
        let mut bytes = Payload::encode(&sample(Target::Function(nothing)));
        let at = 4 + 4 + 4 + 1;
        bytes[at..at + 8].copy_from_slice(&0xdead_beef_u64.to_le_bytes());
        let digest = sample(Target::Function(nothing)).digest().unwrap();
        let error = Payload::decode(&bytes, &digest, &Images::mapped()).unwrap_err();
        assert!(matches!(error, Error::Callable(CallableError::HashidDescriptorMismatch { .. })));
    }
}
