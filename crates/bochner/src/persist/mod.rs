//! Model files: what was learned and how to draw the map again, checked byte by byte on the way in.
//!
//! A file is a [safetensors](https://huggingface.co/docs/safetensors) container: arrays that any reader of that format
//! can open, and a JSON [`Header`] in its metadata under the key `bochner`. The header carries the SHA-256 of the whole
//! file (with the 64 digits of the hash itself read as zeros): a file with one changed byte is refused. SHA-256 because
//! it is the hash everyone can recompute, and `sha2` because it is plain Rust that uses the processor's own
//! instructions where they exist. The hash guards against damage, not against forgery.
//!
//! Files are written whole or not at all: into a temporary file beside the target, flushed to the disk, then renamed.
//! Loading one runs no code and trusts no length.

mod classes;
mod container;
mod exact;
mod gaussian_process;
mod gram;
mod kernel_svm;
mod local_gp;
mod operator;
mod ridge;
mod svm;

pub use container::{Header, Stored, Tensor, Values};
