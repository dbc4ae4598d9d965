//! What a wrong device does to the memory of its host.

use half::f16;
use laneway_conformance::HostBuffer;
use laneway_core::chip::{DeviceRuntime, HostAddress};
use laneway_core::wire::{AddressSpace, ChipStorageTaskArgs, ChipTensor, Dtype};

use super::{Mutant, Wrong};

/// A run as its arguments describe it.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) tensors: Vec<ChipTensor>,
    /// What stood in their buffers before the run.
    pub(super) before: Vec<Vec<u8>>,
    pub(super) launched: bool,
    pub(super) failed: bool,
    /// Its completion was taken.
    pub(super) reaped: bool,
}

impl Mutant {
    /// Writes host memory the way a device does.
    pub(super) fn poke(&mut self, to: u64, bytes: &[u8]) {
        let (from, len) = (HostBuffer::of(bytes), bytes.len() as u64);
        let Ok(base) = self.inner.malloc(len.max(1)) else { return };
        let _ = self.inner.copy_to(base, from.address(), len);
        let _ = self.inner.copy_from(HostAddress(to), base, len);
        let _ = self.inner.free(base);
    }

    fn peek(&mut self, from: u64, len: u64) -> Vec<u8> {
        let into = HostBuffer::of(&vec![0; len as usize]);
        let Ok(base) = self.inner.malloc(len.max(1)) else { return into.bytes() };
        let _ = self.inner.copy_to(base, HostAddress(from), len);
        let _ = self.inner.copy_from(into.address(), base, len);
        let _ = self.inner.free(base);
        into.bytes()
    }

    pub(super) fn look_at(&mut self, args: &ChipStorageTaskArgs) -> Seen {
        let tensors = args.tensors().map(<[ChipTensor]>::to_vec).unwrap_or_default();
        let watched = matches!(
            self.wrong,
            Wrong::CopiesInputsBack
                | Wrong::SkipsCopyBackOfViews
                | Wrong::TruncatesBf16
                | Wrong::TruncatesF16
                | Wrong::SaturatesWholeNumbers
                | Wrong::FinalizesWithoutWaiting
        );
        let mut before = Vec::new();
        for tensor in tensors.iter().filter(|_| watched) {
            let host = tensor.address_space() == AddressSpace::Host;
            before.push(if host { self.peek(tensor.addr(), tensor.buffer_bytes()) } else { Vec::new() });
        }
        Seen { tensors, before, ..Seen::default() }
    }

    /// Changes in host memory what a right device has just written there.
    pub(super) fn spoil(&mut self, seen: &Seen) {
        let Some(out) = seen.tensors.last().copied() else { return };
        let (host, width) = (out.address_space() == AddressSpace::Host, u64::from(out.dtype().element_bytes()));
        let steps = out
            .shape()
            .iter()
            .zip(out.strides())
            .map(|(&size, &stride)| u64::from(size.max(1) - 1) * u64::from(stride));
        let end = out.addr() + (out.start_offset() + steps.sum::<u64>()) * width;
        let done = seen.launched && !seen.failed && host && out.extent() > 0;
        match self.wrong {
            Wrong::SpoilsTheLastElement if done && !out.is_contiguous() => self.poke(end, &vec![0x5a; width as usize]),
            Wrong::WritesBehindTheLastElement if done && end + 2 * width <= out.addr() + out.buffer_bytes() => {
                self.poke(end + width, &vec![0x5a; width as usize]);
            }
            Wrong::CopiesInputsBack if done => {
                for (tensor, bytes) in seen.tensors.iter().zip(&seen.before).rev().skip(1) {
                    self.poke(tensor.addr(), bytes);
                }
            }
            Wrong::SkipsCopyBackOfViews if done && !out.is_contiguous() => {
                self.poke(out.addr(), seen.before.last().map_or(&[], Vec::as_slice));
            }
            Wrong::CopiesBackWhatWasGivenUp if !seen.launched && host => self.poke(out.addr(), &[0x5a; 4]),
            Wrong::CopiesBackTheUnproven if seen.failed && host => {
                // The device takes no call any more; this memory is the case's own.
                let bytes = HostBuffer::of(&[0x5a; 4]);
                self.write_past_the_device(out.addr(), &bytes);
            }
            Wrong::TruncatesBf16 if done && out.dtype() == Dtype::Bf16 => self.recompute(seen, |a, b| {
                let wide = |bits: [u8; 4]| f32::from_bits(u32::from(u16::from_le_bytes([bits[0], bits[1]])) << 16);
                ((wide(a) + wide(b)).to_bits() >> 16).to_le_bytes()
            }),
            Wrong::TruncatesF16 if done && out.dtype() == Dtype::F16 => self.recompute(seen, |a, b| {
                let wide = |bits: [u8; 4]| f16::from_le_bytes([bits[0], bits[1]]).to_f32();
                let (exact, nearest) = (wide(a) + wide(b), f16::from_f32(wide(a) + wide(b)));
                let above = nearest.to_f32().abs() > exact.abs();
                let [low, high] = f16::from_bits(nearest.to_bits() - u16::from(above)).to_le_bytes();
                [low, high, 0, 0]
            }),
            Wrong::FinalizesWithoutWaiting if done && !seen.reaped => {
                self.poke(out.addr(), seen.before.last().map_or(&[], Vec::as_slice));
            }
            Wrong::KeepsTheFirstSize if done => {
                let bytes = out.extent() * width;
                if bytes > *self.first_size.get_or_insert(bytes) {
                    self.poke(end, &vec![0x5a; width as usize]);
                }
            }
            Wrong::SaturatesWholeNumbers if done && out.dtype() == Dtype::I32 => {
                self.recompute(seen, |a, b| i32::from_le_bytes(a).saturating_add(i32::from_le_bytes(b)).to_le_bytes())
            }
            _ => {}
        }
    }

    #[allow(unsafe_code)]
    fn write_past_the_device(&mut self, to: u64, bytes: &HostBuffer) {
        use std::sync::atomic::{AtomicU8, Ordering};
        for (offset, byte) in bytes.bytes().into_iter().enumerate() {
            let at = std::ptr::with_exposed_provenance_mut(to as usize + offset);
            // SAFETY: a byte of a live host tensor, which is reached by atomics alone.
            unsafe { AtomicU8::from_ptr(at) }.store(byte, Ordering::Relaxed);
        }
    }

    /// The sums of two dense inputs, by another rule.
    fn recompute(&mut self, seen: &Seen, sum: impl Fn([u8; 4], [u8; 4]) -> [u8; 4]) {
        let dense = seen.tensors.iter().all(|tensor| tensor.is_contiguous() && tensor.start_offset() == 0);
        let ([a, b, _], true) = (seen.before.as_slice(), dense) else { return };
        let out = seen.tensors[2];
        let width = out.dtype().element_bytes() as usize;
        let whole = |bytes: &[u8], at: usize| {
            let mut word = [0; 4];
            word[..width].copy_from_slice(&bytes[at..at + width]);
            word
        };
        let len = out.extent() as usize * width;
        if a.len() < len || b.len() < len {
            return;
        }
        let sums: Vec<u8> =
            (0..len).step_by(width).flat_map(|at| sum(whole(a, at), whole(b, at)).into_iter().take(width)).collect();
        self.poke(out.addr(), &sums);
    }
}
