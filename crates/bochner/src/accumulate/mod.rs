//! Placeholder page, replaced with the room's contents.
