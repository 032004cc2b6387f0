//! The order of values.

/// The indices of the values, largest value first. Equal values keep their order.
pub fn best_first(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order
}

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    0.5 * low + 0.5 * high
}

/// Returns the quartiles of the values, with linear interpolation; zeros without values.
pub fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    if values.is_empty() {
        return [0.0; 3];
    }
    values.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|q| {
        let position = q * (values.len() - 1) as f64;
        let (i, part) = (position.floor() as usize, position.fract());
        let next = values[(i + 1).min(values.len() - 1)];
        values[i] * (1.0 - part) + next * part
    })
}
