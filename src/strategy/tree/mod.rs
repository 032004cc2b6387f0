//! Optimistic tree search: the domain is halved repeatedly, and the cell with the largest upper bound is evaluated
//! next.
//!
//! * [`tree_search`]: the strategy; [`settings`]: its settings
//! * [`fold`]: the partition and the instances, computed from the log; [`note`]: the note logged with a suggestion
//! * [`partition`]: the cells and the observations in each cell; [`region`]: the region of a cell
//! * [`instance`]: the statistics of subtrees and their B values, for one pair ν, ρ
//! * [`front`]: the best cells of every size, independent of ν and ρ
//! * [`bias`]: the bias of evaluations at low fidelity
//! * [`moments`]: counts, means and variances; [`bounds`]: upper confidence bounds computed from the moments
//!
//! Notation (Wang et al. 2022): a node (h, l) of the tree has depth h and represents a cell. U is an upper confidence
//! bound on the mean of f over the cell, computed from s observations after t steps. ν·ρ^h bounds the variation of f in
//! the cell. Then
//!
//! B(h, l) = min{ U(h, l) + ν·ρ^h, max over both children of B }.
//!
//! B is +∞ until a trial in the cell has been observed or has failed.

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
