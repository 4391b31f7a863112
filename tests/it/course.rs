//! The example course passes, the broken one shows each planted fault.
