//! Programs: which kernels run over which arguments, packed as a callable.
//!
//! The orchestration binary of a simulated callable is a table, and each child of it is a kernel known by its name:
//!
//! ```text
//! 0   8 bytes    magic "laneway1"
//! 8   u32        step count, at most 256
//! 12  u32        0
//! 16  12 bytes per step: i32 func id · u8 × 3 tensor arguments, 255 = none · u8 scalar argument, 255 = none · u32 0
//! ```

use laneway_core::chip::{Arity, ChipError, Reason};
use laneway_core::wire::{ArgDirection, ChipCallable, ChipCallableSource, CoreCallableSource};

use crate::kernel::{Kernel, MAX_OPERANDS};

/// Most steps of a program.
pub(crate) const MAX_STEPS: usize = 256;

const MAGIC: &[u8; 8] = b"laneway1";
const HEADER_BYTES: usize = 16;
const STEP_BYTES: usize = 12;
const NONE: u8 = u8::MAX;

/// One kernel over some arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    kernel: Kernel,
    tensors: [u8; MAX_OPERANDS],
    scalar: Option<u8>,
}

impl Step {
    /// The kernel.
    #[must_use]
    pub const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Which tensor arguments are its operands.
    #[must_use]
    pub fn tensors(&self) -> &[u8] {
        &self.tensors[..self.kernel.operands().len()]
    }

    /// Which scalar argument it takes.
    #[must_use]
    pub const fn scalar(&self) -> Option<u8> {
        self.scalar
    }
}

/// What a callable of the simulator does: steps that run one after the other over the arguments of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    name: String,
    tensors: Vec<ArgDirection>,
    scalars: usize,
    steps: Vec<Step>,
}

/// The callable of one kernel, whose arguments are its operands: a `ChipCallable` blob to register.
#[must_use]
pub fn callable(kernel: Kernel) -> Vec<u8> {
    Program::of(kernel).to_callable()
}

/// Operand n is tensor argument n.
fn operands_in_order(kernel: Kernel) -> [u8; MAX_OPERANDS] {
    let used = kernel.operands().len() as u8;
    [0, 1, 2].map(|index| if index < used { index } else { NONE })
}

impl Program {
    /// A program without steps over tensors of these directions and this many scalars, called `name`.
    ///
    /// # Errors
    /// [`ChipError::CallableRefused`] for more than 255 tensors, 128 scalars or 256 of both, or a name longer than 63
    /// bytes.
    pub fn new(name: &str, tensors: &[ArgDirection], scalars: usize) -> Result<Self, ChipError> {
        let refused = |reason| Err(ChipError::CallableRefused { reason: Reason::new(reason) });
        if tensors.len() > usize::from(NONE) || scalars > 128 || tensors.len() + scalars > 256 {
            let reason = "at most 255, 128 and 256 together";
            return refused(format_args!("{} tensors and {scalars} scalars: {reason}", tensors.len()));
        }
        if name.len() > 63 || name.contains('\0') {
            return refused(format_args!("name {name:?} has {} bytes, at most 63, none of them NUL", name.len()));
        }
        if tensors.contains(&ArgDirection::Scalar) {
            return refused(format_args!("scalars are counted, not listed among the tensors"));
        }
        Ok(Self { name: name.to_owned(), tensors: tensors.to_vec(), scalars, steps: Vec::new() })
    }

    /// The program of one kernel: its operands are the arguments.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let scalar = kernel.takes_scalar().then_some(0);
        Self {
            name: kernel.name().to_owned(),
            tensors: kernel.operands().to_vec(),
            scalars: usize::from(kernel.takes_scalar()),
            steps: vec![Step { kernel, tensors: operands_in_order(kernel), scalar }],
        }
    }

    /// Adds a kernel over the tensor arguments with these indices, and the scalar argument if it takes one.
    ///
    /// # Errors
    /// [`ChipError::CallableRefused`] if there is no such argument, if it would write an input, or after 256 steps.
    pub fn step(mut self, kernel: Kernel, tensors: &[u8], scalar: Option<u8>) -> Result<Self, ChipError> {
        let number = self.steps.len();
        let refused = |reason: std::fmt::Arguments<'_>| {
            Err(ChipError::CallableRefused { reason: Reason::new(format_args!("step {number}: {reason}")) })
        };
        if number == MAX_STEPS {
            return refused(format_args!("a program has at most {MAX_STEPS} steps"));
        }
        let operands = kernel.operands();
        if tensors.len() != operands.len() {
            return refused(format_args!("{kernel} takes {} tensors, {} given", operands.len(), tensors.len()));
        }
        for (&index, &direction) in tensors.iter().zip(operands) {
            match self.tensors.get(usize::from(index)) {
                None => return refused(format_args!("tensor {index} of {}", self.tensors.len())),
                Some(ArgDirection::In) if direction == ArgDirection::Out => {
                    return refused(format_args!("{kernel} writes tensor {index}, which is an input"));
                }
                Some(_) => {}
            }
        }
        match scalar {
            Some(index) if kernel.takes_scalar() && usize::from(index) < self.scalars => {}
            None if !kernel.takes_scalar() => {}
            Some(index) if kernel.takes_scalar() => {
                return refused(format_args!("scalar {index} of {}", self.scalars));
            }
            Some(_) => return refused(format_args!("{kernel} takes no scalar")),
            None => return refused(format_args!("{kernel} takes a scalar")),
        }
        let mut padded = [NONE; MAX_OPERANDS];
        padded[..tensors.len()].copy_from_slice(tensors);
        self.steps.push(Step { kernel, tensors: padded, scalar });
        Ok(self)
    }

    /// The steps, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What the program does with each tensor argument.
    pub(crate) fn tensor_directions(&self) -> &[ArgDirection] {
        &self.tensors
    }

    /// What the callable is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many arguments it takes.
    pub(crate) fn arity(&self) -> Arity {
        Arity::new(self.tensors.len(), self.scalars)
    }

    /// Tensor directions, then one SCALAR per scalar.
    fn signature(&self) -> Vec<ArgDirection> {
        let scalars = std::iter::repeat_n(ArgDirection::Scalar, self.scalars);
        self.tensors.iter().copied().chain(scalars).collect()
    }

    /// The kernels that it uses; a func id is a position in it.
    fn kernels(&self) -> Vec<Kernel> {
        let mut kernels = Vec::new();
        for step in &self.steps {
            if !kernels.contains(&step.kernel) {
                kernels.push(step.kernel);
            }
        }
        kernels
    }

    fn orchestration(&self, kernels: &[Kernel]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + STEP_BYTES * self.steps.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(self.steps.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for step in &self.steps {
            let func_id = kernels.iter().position(|&kernel| kernel == step.kernel).unwrap_or_default() as i32;
            bytes.extend_from_slice(&func_id.to_le_bytes());
            bytes.extend_from_slice(&step.tensors);
            bytes.push(step.scalar.unwrap_or(NONE));
            bytes.extend_from_slice(&[0; 4]);
        }
        bytes
    }

    /// Adds the steps of an orchestration binary, whose kernels `kernel_of` finds by their func ids.
    fn read_orchestration(
        mut self,
        bytes: &[u8],
        kernel_of: impl Fn(i32) -> Option<Kernel>,
    ) -> Result<Self, ChipError> {
        let refused = |reason: std::fmt::Arguments<'_>| ChipError::CallableRefused { reason: Reason::new(reason) };
        let Some(([magic @ .., s0, s1, s2, s3, 0, 0, 0, 0], rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(refused(format_args!("the orchestration binary has no header of this simulator")));
        };
        if magic != MAGIC {
            return Err(refused(format_args!("the orchestration binary is not one of this simulator")));
        }
        let count = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
        let (steps, tail) = rest.as_chunks::<STEP_BYTES>();
        if steps.len() as u64 != u64::from(count) || !tail.is_empty() {
            return Err(refused(format_args!("{count} steps announced in {} bytes", rest.len())));
        }
        for (number, &[f0, f1, f2, f3, t0, t1, t2, scalar, z0, z1, z2, z3]) in steps.iter().enumerate() {
            let func_id = i32::from_le_bytes([f0, f1, f2, f3]);
            let kernel = kernel_of(func_id)
                .ok_or_else(|| refused(format_args!("step {number}: no kernel has func id {func_id}")))?;
            if [z0, z1, z2, z3] != [0; 4] {
                return Err(refused(format_args!("step {number}: reserved bytes are not 0")));
            }
            let tensors = [t0, t1, t2];
            let (used, unused) = tensors.split_at(kernel.operands().len());
            if unused.iter().any(|&index| index != NONE) {
                return Err(refused(format_args!("step {number}: {kernel} takes {} tensors", used.len())));
            }
            self = self.step(kernel, used, (scalar != NONE).then_some(scalar))?;
        }
        Ok(self)
    }

    /// Packs the program as the `ChipCallable` blob that a worker registers.
    ///
    /// # Panics
    /// Never: a program's own limits are within those of a callable.
    #[must_use]
    pub fn to_callable(&self) -> Vec<u8> {
        let kernels = self.kernels();
        let signatures: Vec<Vec<ArgDirection>> = kernels.iter().map(|kernel| kernel_signature(*kernel)).collect();
        let children: Vec<CoreCallableSource<'_>> = (0..)
            .zip(kernels.iter().zip(&signatures))
            .map(|(func_id, (kernel, signature))| CoreCallableSource {
                func_id,
                signature,
                resolved_addr: 0,
                binary: kernel.name().as_bytes(),
            })
            .collect();
        let source = ChipCallableSource {
            func_name: &self.name,
            config_name: "",
            signature: &self.signature(),
            binary: &self.orchestration(&kernels),
            children: &children,
        };
        let within = "the limits of a program are within those of a callable";
        let mut blob = vec![0; source.encoded_len().expect(within)];
        source.encode(&mut blob).expect(within);
        blob
    }

    /// Reads a blob from an untrusted source (C-14).
    ///
    /// # Errors
    /// [`ChipError::CallableRefused`] names what is wrong with it, or what this device does not have.
    pub(crate) fn from_callable(blob: &[u8]) -> Result<Self, ChipError> {
        let refused = |reason: std::fmt::Arguments<'_>| ChipError::CallableRefused { reason: Reason::new(reason) };
        let callable = ChipCallable::parse(blob).map_err(|error| refused(format_args!("{error}")))?;
        let signature: Vec<ArgDirection> = callable.signature().collect();
        let tensors = signature.iter().take_while(|direction| **direction != ArgDirection::Scalar).count();
        if signature[tensors..].iter().any(|direction| *direction != ArgDirection::Scalar) {
            return Err(refused(format_args!("the signature has a tensor after a scalar")));
        }
        let mut kernels = Vec::new();
        for child in callable.children() {
            let name = child.binary();
            let kernel = Kernel::ALL.into_iter().find(|kernel| kernel.name().as_bytes() == name).ok_or_else(|| {
                refused(format_args!("kernel {} with func id {} is unknown here", name.escape_ascii(), child.func_id()))
            })?;
            kernels.push((child.func_id(), kernel));
        }
        Self::new(callable.func_name(), &signature[..tensors], signature.len() - tensors)?
            .read_orchestration(callable.binary(), |func_id| {
                kernels.iter().find(|(id, _)| *id == func_id).map(|(_, kernel)| *kernel)
            })
    }
}

/// Operand directions, then SCALAR if it takes one.
fn kernel_signature(kernel: Kernel) -> Vec<ArgDirection> {
    let scalar = kernel.takes_scalar().then_some(ArgDirection::Scalar);
    kernel.operands().iter().copied().chain(scalar).collect()
}

#[cfg(test)]
mod tests {
    use ArgDirection::{In, InOut, Out};

    use super::*;

    fn chain() -> Program {
        Program::new("chain", &[In, In, Out, InOut], 2)
            .and_then(|program| program.step(Kernel::Add, &[0, 1, 2], None))
            .and_then(|program| program.step(Kernel::Scale, &[2, 3], Some(1)))
            .and_then(|program| program.step(Kernel::Wait, &[], Some(0)))
            .and_then(|program| program.step(Kernel::Add, &[2, 3, 3], None))
            .unwrap()
    }

    #[test]
    fn a_program_is_read_back_from_its_callable() {
        for program in Kernel::ALL.map(Program::of).into_iter().chain([chain()]) {
            assert_eq!(Program::from_callable(&program.to_callable()), Ok(program));
        }
    }

    #[test]
    fn steps_that_cannot_run_are_refused() {
        let program = || Program::new("p", &[In, Out], 1).unwrap();
        assert!(program().step(Kernel::Copy, &[0, 2], None).is_err(), "no such tensor");
        assert!(program().step(Kernel::Copy, &[1, 0], None).is_err(), "writes an input");
        assert!(program().step(Kernel::Copy, &[0], None).is_err(), "too few");
        assert!(program().step(Kernel::Copy, &[0, 1], Some(0)).is_err(), "takes no scalar");
        assert!(program().step(Kernel::Scale, &[0, 1], None).is_err(), "takes a scalar");
        assert!(program().step(Kernel::Scale, &[0, 1], Some(1)).is_err(), "no such scalar");
        assert!(Program::new("p", &[In; 256], 0).is_err() && Program::new("p", &[], 129).is_err());
        assert!(Program::new("p", &[In; 200], 57).is_err() && Program::new(&"n".repeat(64), &[], 0).is_err());
        let full = (0..MAX_STEPS).try_fold(program(), |program, _| program.step(Kernel::Noop, &[], None)).unwrap();
        assert_eq!(Program::from_callable(&full.to_callable()), Ok(full.clone()));
        assert!(full.step(Kernel::Noop, &[], None).is_err());
    }

    /// C-14: whatever single byte of a blob is changed, the answer is a program or a refusal, never a panic.
    #[test]
    fn a_blob_with_any_byte_changed_is_read_or_refused() {
        let blob = chain().to_callable();
        let mut refused = 0;
        for at in 0..blob.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = blob.clone();
                changed[at] ^= flip;
                refused += usize::from(Program::from_callable(&changed).is_err());
            }
        }
        assert!(refused > 300, "only {refused} of them were refused");
        for length in 0..blob.len() {
            assert!(Program::from_callable(&blob[..length]).is_err(), "{length} bytes");
        }
    }
}
