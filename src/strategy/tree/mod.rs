//! Optimistic tree search: the domain is halved again and again, and the part with the largest upper bound is tried next.
//!
//! * [`tree_search`]: the strategy; [`settings`]: what can be chosen
//! * [`fold`]: the log folded into the partition and its instances; [`note`]: what is written with a suggestion
//! * [`partition`]: the cells so far, with what was observed in each; [`region`]: the part of the domain that a cell is
//! * [`instance`]: statistics of subtrees and their B values, for one pair of smoothness parameters
//! * [`front`]: the best cells of every size, for the turns that need no such parameters
//! * [`bias`]: how far values of low fidelity may be off
//! * [`moments`]: counts, means and variances; [`bounds`]: upper confidence bounds from them
//!
//! Notation (Wang et al. 2022): a node (h, l) at depth h covers a cell; its U is an upper confidence bound on the mean of
//! f over the cell, from s observations in t steps, and ν·ρ^h bounds how much f varies there:
//!
//! B(h, l) = min{ U(h, l) + ν·ρ^h, max over both children of B }, +∞ where nothing is observed and nothing has failed.

mod bias;
mod bounds;
mod fold;
mod front;
mod instance;
mod moments;
mod note;
mod partition;
mod region;
pub mod settings;
#[cfg(test)]
mod tests;
mod tree_search;

pub use tree_search::TreeSearch;
