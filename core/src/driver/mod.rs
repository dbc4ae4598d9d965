//! Engine and lanes behind one `step`.
