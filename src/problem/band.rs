//! Weighted sums of coordinates between bounds, of which a polytope consists.

/// Constraints hold up to this tolerance, in units of x. A constraint whose slack is nowhere larger is an equality.
pub const TOLERANCE: f64 = 1e-9;

/// Points with smaller violations are not moved.
pub const ROUNDING: f64 = 1e-12;

/// A linear constraint: the coefficients, and the interval of the weighted sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub coefficients: Vec<f64>,
    pub low: f64,
    pub high: f64,
}

impl Band {
    /// The band with coefficients of unit length, without negligible coefficients. An equality has equal bounds.
    pub fn normalised(&self) -> Self {
        // Two divisions, because the squares of large coefficients overflow.
        let largest = self
            .coefficients
            .iter()
            .fold(0.0, |most: f64, a| most.max(a.abs()));
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let scaled: Vec<f64> = self.coefficients.iter().map(|a| a / largest).collect();
        let size = length(&scaled);
        let size = if size > 0.0 { size } else { 1.0 };
        let coefficient = |a: f64| match (a / size).abs() > f64::EPSILON {
            true => a / size,
            false => 0.0,
        };
        let mut band = Self {
            coefficients: scaled.into_iter().map(coefficient).collect(),
            low: self.low / largest / size,
            high: self.high / largest / size,
        };
        if band.is_equality() {
            let middle = 0.5 * (band.low + band.high);
            (band.low, band.high) = (middle, middle);
        }
        band
    }

    pub fn is_equality(&self) -> bool {
        self.high - self.low <= TOLERANCE
    }

    /// The coordinates that have coefficients, with these.
    pub fn terms(&self) -> impl Iterator<Item = (usize, f64)> + Clone {
        let all = self.coefficients.iter().copied().enumerate();
        all.filter(|(_, a)| *a != 0.0)
    }

    /// The sum at a point.
    pub fn sum(&self, x: &[f64]) -> f64 {
        self.terms().map(|(i, a)| a * x[i]).sum()
    }

    /// Replaces z by the nearest point of the cube in this band, whose coefficients have unit length.
    pub fn project(&self, z: &mut [f64]) {
        let t = self.shift(z);
        self.add(-t, z);
        z.iter_mut().for_each(|z| *z = z.clamp(0.0, 1.0));
    }

    /// Adds t a to z.
    pub fn add(&self, t: f64, z: &mut [f64]) {
        if t != 0.0 {
            self.terms().for_each(|(i, a)| z[i] += t * a);
        }
    }

    /// The t for which clip(z − t a) is the nearest point of the cube in this band. The sum at this point is a
    /// decreasing function of t that is linear between its kinks.
    pub fn shift(&self, z: &[f64]) -> f64 {
        let sum = |t: f64| {
            let terms = self
                .terms()
                .map(|(i, a)| a * (z[i] - t * a).clamp(0.0, 1.0));
            terms.sum::<f64>()
        };
        let now = sum(0.0);
        let nearest = now.clamp(self.low, self.high);
        if (now - nearest).abs() <= ROUNDING {
            return 0.0;
        }
        let kinks = self.terms().flat_map(|(i, a)| [z[i] / a, (z[i] - 1.0) / a]);
        let mut kinks: Vec<f64> = kinks.collect();
        kinks.sort_unstable_by(f64::total_cmp);
        let after = kinks.partition_point(|&t| sum(t) > nearest);
        let end = kinks[after.min(kinks.len() - 1)];
        let start = after.checked_sub(1).map_or(end, |i| kinks[i]);
        let (high, low) = (sum(start), sum(end));
        match high > low {
            true => start + (end - start) * (high - nearest) / (high - low),
            false => end,
        }
    }

    /// Moves a vertex of the cube into the band at the least loss of cᵀx. The moves with the least loss per change of
    /// the sum come first, and the last one ends at the bound of the band.
    pub fn move_to_vertex(&self, c: &[f64], x: &mut [f64]) {
        let now = self.sum(x);
        let missing = now.clamp(self.low, self.high) - now;
        let to = |i: usize| 1.0 - 2.0 * x[i];
        let moves = self.terms().filter(|(i, a)| a * to(*i) * missing > 0.0);
        let mut moves: Vec<(usize, f64, f64)> = moves.map(|(i, a)| (i, a, to(i))).collect();
        let loss = |(i, a, _): &(usize, f64, f64)| (c[*i] / a).abs();
        moves.sort_by(|one, other| loss(one).total_cmp(&loss(other)));
        let mut left = missing.abs();
        for (i, a, to) in moves {
            let share = (left / a.abs()).min(1.0);
            x[i] += share * to;
            left -= share * a.abs();
        }
    }
}

/// The length of a vector.
pub fn length(a: &[f64]) -> f64 {
    a.iter().map(|a| a * a).sum::<f64>().sqrt()
}
