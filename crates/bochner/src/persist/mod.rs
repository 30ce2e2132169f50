//! Files: what was learned and how to draw the map again, checked byte by byte on the way in.
//! [`Model`](crate::model::Model) is what most callers want of them.
//!
//! A file is a [safetensors](https://huggingface.co/docs/safetensors) container: arrays that any reader of that format
//! can open, and a JSON [`Header`] in its metadata under the key `bochner`. The header carries the SHA-256 of the whole
//! file (with the 64 digits of the hash itself read as zeros): a file with one changed byte is refused. SHA-256 because
//! it is the hash everyone can recompute, and `sha2` because it is plain Rust that uses the processor's own
//! instructions where they exist. The hash guards against damage, not against forgery.
//!
//! The header also says which version wrote the file, and carries a [`Fingerprint`] of the draw of its map: a version that
//! draws another map from the same description refuses the file.
//!
//! Files are written whole or not at all ([`WholeFile`]): into a temporary file beside the target, flushed to the disk, then
//! renamed.
//! Loading one runs no code and trusts no length: parameters are held to their domains in the catalogue, arrays are finite, and
//! a map whose draw would cost more than [`DrawCost::LIMIT`](crate::feature::DrawCost::LIMIT) is refused before it begins
//! ([`Model::load_within`](crate::model::Model::load_within) allows more).

mod classes;
mod container;
mod fingerprint;
mod gram;
mod label;
mod whole;

pub(crate) use container::{Drawable, malformed};
pub use container::{Header, Stored, Tensor, Values};
pub use fingerprint::Fingerprint;
pub(crate) use gram::{collect, shape, spread, triangle, triangle_len};
pub use label::Label;
pub use whole::WholeFile;
#[doc(hidden)]
pub use whole::{
    behind_links, folder_of, put_in_place, remove_temporary, remove_unfinished, temporaries, temporary_file,
};
