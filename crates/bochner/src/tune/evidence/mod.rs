//! Hyperparameters by evidence: how they act on rows ([`inlet`]), the evidence and its gradient ([`problem`], [`exact`]), and the search
//! ([`hunt`]).

pub(crate) mod exact;
pub(crate) mod hunt;
pub(crate) mod inlet;
pub(crate) mod problem;
#[cfg(test)]
mod tests;

pub(crate) use crate::model::kinds::LengthScaleSearch as Scales;
