//! The result of a search.

/// A member of the domain and its value. `index` is the row number of the member if the domain is a list of candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Argmax {
    pub point: Vec<f64>,
    pub index: Option<usize>,
    pub value: f64,
}
