//! The hypervolume of points in two or three objectives, and the boxes that make up the region above a reference that
//! the points do not dominate.
//!
//! All objectives are maximised. A point counts if it exceeds the reference r in every objective. The hypervolume is
//! the volume of the points above r that are dominated.
//!
//! Shapes: points (n, M) with M = 2 or 3; reference (M,).

use ndarray::{ArrayView1, ArrayView2, Axis};

/// Returns the indices of the points that no other point dominates, in their order. Equal points do not dominate each
/// other.
pub fn non_dominated(points: ArrayView2<f64>) -> Vec<usize> {
    let dominates =
        |q: ArrayView1<f64>, p: ArrayView1<f64>| q != p && q.iter().zip(p).all(|(q, p)| q >= p);
    let is_dominated = |p| points.rows().into_iter().any(|q| dominates(q, p));
    (0..points.nrows())
        .filter(|&i| !is_dominated(points.row(i)))
        .collect()
}

/// Returns the hypervolume of the points.
pub fn hypervolume(points: ArrayView2<f64>, reference: &[f64]) -> f64 {
    Cells::new(points, reference).hypervolume()
}

/// Returns for each point by how much the hypervolume would decrease without this point.
pub fn contributions(points: ArrayView2<f64>, reference: &[f64]) -> Vec<f64> {
    let without = |i: usize| -> Vec<usize> { (0..points.nrows()).filter(|&j| j != i).collect() };
    (0..points.nrows())
        .map(|i| {
            let others = points.select(Axis(0), &without(i));
            Cells::new(others.view(), reference).improvement(points.row(i))
        })
        .collect()
}

/// The region above the reference that points do not dominate, as disjoint boxes Π_i (l_i, u_i]. Every box is unbounded
/// in the last objective. For n non-dominated points, there are n + 1 boxes with two objectives and at most 2n + 1
/// boxes with three.
#[derive(Debug, Clone)]
pub struct Cells {
    /// The sides of the boxes in each objective.
    pub sides: Vec<Sides>,
}

/// The sides of all boxes in one objective. Boxes share bounds, so that a function of a bound is computed once.
#[derive(Debug, Clone)]
pub struct Sides {
    /// The bounds: the reference, infinity, and the values of the non-dominated points.
    pub levels: Vec<f64>,
    /// The indices of the bounds l of all boxes in `levels`.
    pub lower: Vec<usize>,
    /// The indices of the bounds u of all boxes in `levels`.
    pub upper: Vec<usize>,
}

/// The index of the reference in the levels of an objective.
const BOTTOM: usize = 0;

/// The index of infinity.
const TOP: usize = 1;

impl Cells {
    /// Sweeps the points from the largest to the smallest value of the last objective (Yang et al. 2019).
    ///
    /// With three objectives, the points that have been passed dominate a region below a staircase in the first two
    /// objectives. A point (x, y, z) extends the region. The extension is divided into rectangles at the values of x of
    /// the steps that the point covers. Where the first two objectives lie in these rectangles, values of the third are
    /// not dominated above z. In the end, the rectangles above the staircase are added, where all values above the
    /// reference are not dominated. Every point starts one step, and every step ends one rectangle when it is covered
    /// or at the end.
    ///
    /// Two objectives x and z are treated as three, where y lies in (0, 1] and is 1 at all points.
    pub fn new(points: ArrayView2<f64>, reference: &[f64]) -> Self {
        let last = reference.len() - 1;
        let has_middle = last == 2;
        assert!(last == 1 || has_middle, "there are two or three objectives");
        let levels = |i: usize| vec![reference[i], f64::INFINITY];
        let mut sweep = Sweep {
            xs: levels(0),
            ys: if has_middle {
                levels(1)
            } else {
                vec![0.0, 1.0]
            },
            zs: levels(last),
            boxes: Vec::new(),
        };
        let exceeds = |p: &ArrayView1<f64>| p.iter().zip(reference).all(|(p, r)| p > r);
        let rows = points.rows().into_iter().filter(exceeds);
        let mut order: Vec<[f64; 3]> = rows
            .map(|p| [p[last], p[0], if has_middle { p[1] } else { 1.0 }])
            .collect();
        // Of points with equal z, those that dominate others come first.
        order.sort_by(|p, q| {
            let keys = q.iter().zip(p).map(|(q, p)| q.total_cmp(p));
            keys.fold(std::cmp::Ordering::Equal, |first, next| first.then(next))
        });
        sweep.run(&order);
        let Sweep { xs, ys, zs, boxes } = sweep;
        let sides = |levels: Vec<f64>, axis: usize| {
            let (lower, upper) = boxes.iter().map(|sides| sides[axis]).unzip();
            Sides {
                levels,
                lower,
                upper,
            }
        };
        let mut all = vec![sides(xs, 0)];
        if has_middle {
            all.push(sides(ys, 1));
        }
        all.push(sides(zs, 2));
        Self { sides: all }
    }

    /// The number of boxes.
    pub fn len(&self) -> usize {
        self.sides[0].lower.len()
    }

    /// The hypervolume of the points. A box that starts at z leaves the values from the reference to z dominated.
    pub fn hypervolume(&self) -> f64 {
        let (last, others) = self.sides.split_last().expect("there are objectives");
        let dominated = (0..self.len()).filter(|&k| last.lower[k] != BOTTOM);
        let volume = |k: usize| {
            let height = last.levels[last.lower[k]] - last.levels[BOTTOM];
            let widths = others.iter().map(|side| {
                let (lower, upper) = side.bounds(k);
                upper - lower
            });
            height * widths.product::<f64>()
        };
        // An empty sum would be −0.
        dominated.map(volume).fold(0.0, |sum, part| sum + part)
    }

    /// By how much the point would increase the hypervolume: Σ_k Π_i (min(p_i, u_ki) − l_ki)+.
    pub fn improvement(&self, point: ArrayView1<f64>) -> f64 {
        let part = |k: usize| -> f64 {
            let sides = self.sides.iter().zip(point).map(|(side, p)| {
                let (lower, upper) = side.bounds(k);
                (p.min(upper) - lower).max(0.0)
            });
            sides.product()
        };
        (0..self.len()).map(part).sum()
    }
}

impl Sides {
    /// The bounds of box k.
    fn bounds(&self, k: usize) -> (f64, f64) {
        (self.levels[self.lower[k]], self.levels[self.upper[k]])
    }
}

/// The boxes found so far. Every point that is not dominated adds a level to each objective, with the same index.
struct Sweep {
    xs: Vec<f64>,
    ys: Vec<f64>,
    zs: Vec<f64>,
    /// The indices of the lower and upper bounds of x, y and z.
    boxes: Vec<[(usize, usize); 3]>,
}

impl Sweep {
    /// Sweeps points (z, x, y), sorted by z, x and y, largest values first.
    fn run(&mut self, points: &[[f64; 3]]) {
        // The indices of the steps, by increasing x and decreasing y.
        let mut stairs: Vec<usize> = Vec::new();
        for &[z, x, y] in points {
            let n_above = stairs.partition_point(|&s| self.ys[s] >= y);
            if n_above > 0 && self.xs[stairs[n_above - 1]] >= x {
                continue;
            }
            let p = self.xs.len();
            self.xs.push(x);
            self.ys.push(y);
            self.zs.push(z);
            let first = stairs.partition_point(|&s| self.ys[s] > y);
            let end = stairs.partition_point(|&s| self.xs[s] <= x);
            let mut left = if first == 0 {
                BOTTOM
            } else {
                stairs[first - 1]
            };
            for &s in &stairs[first..end] {
                self.add([(left, s), (s, p), (p, TOP)]);
                left = s;
            }
            let right = stairs.get(end).copied().unwrap_or(BOTTOM);
            self.add([(left, p), (right, p), (p, TOP)]);
            stairs.splice(first..end, [p]);
        }
        let mut left = BOTTOM;
        for s in stairs {
            self.add([(left, s), (s, TOP), (BOTTOM, TOP)]);
            left = s;
        }
        self.add([(left, TOP), (BOTTOM, TOP), (BOTTOM, TOP)]);
    }

    /// Adds a box unless it is empty.
    fn add(&mut self, sides: [(usize, usize); 3]) {
        let [(left, right), (low, high), _] = sides;
        if self.xs[left] < self.xs[right] && self.ys[low] < self.ys[high] {
            self.boxes.push(sides);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array, concatenate};
    use proptest::prelude::*;

    /// Points and a reference. Small integers make equal coordinates, equal points and points on the reference common.
    fn cases() -> impl Strategy<Value = (Array2<f64>, Vec<f64>)> {
        (2usize..=3, 0usize..=8, prop::bool::ANY).prop_flat_map(|(m, n, integers)| {
            let coordinate = move || match integers {
                true => (0..5).prop_map(f64::from).boxed(),
                false => (-0.3f64..2.0).boxed(),
            };
            let points = prop::collection::vec(coordinate(), n * m)
                .prop_map(move |points| Array2::from_shape_vec((n, m), points).unwrap());
            let reference = prop::collection::vec(if integers { 0.0..=1.0 } else { 0.0..=0.5 }, m);
            let round = move |r: Vec<f64>| match integers {
                true => r.iter().map(|r| r.round()).collect(),
                false => r,
            };
            (points, reference.prop_map(round))
        })
    }

    /// The volume of the union of the boxes between the reference and a point, by inclusion and exclusion.
    fn by_inclusion_and_exclusion(points: &Array2<f64>, reference: &[f64]) -> f64 {
        let mut total = 0.0;
        for subset in 1u32..1 << points.nrows() {
            let chosen = (0..points.nrows()).filter(|i| subset >> i & 1 == 1);
            let chosen = points.select(Axis(0), &chosen.collect::<Vec<_>>());
            let smallest = chosen.fold_axis(Axis(0), f64::INFINITY, |a, b| a.min(*b));
            let widths = smallest
                .iter()
                .zip(reference)
                .map(|(a, r)| (a - r).max(0.0));
            let sign = if subset.count_ones() % 2 == 1 {
                1.0
            } else {
                -1.0
            };
            total += sign * widths.product::<f64>();
        }
        total
    }

    /// The boxes as pairs of lower and upper bounds.
    fn boxes(cells: &Cells) -> Vec<Vec<(f64, f64)>> {
        let sides = |k| cells.sides.iter().map(|side| side.bounds(k)).collect();
        (0..cells.len()).map(sides).collect()
    }

    fn volume(sides: impl Iterator<Item = (f64, f64)>) -> f64 {
        sides.map(|(lower, upper)| upper - lower).product()
    }

    proptest! {
        #[test]
        fn hypervolumes_equal_inclusion_and_exclusion((points, reference) in cases()) {
            let expected = by_inclusion_and_exclusion(&points, &reference);
            let found = hypervolume(points.view(), &reference);
            prop_assert!((found - expected).abs() <= 1e-12 * expected.max(1.0), "{found} {expected}");
        }

        #[test]
        fn boxes_are_disjoint_and_fill_the_region_that_is_not_dominated((points, reference) in cases()) {
            let cells = Cells::new(points.view(), &reference);
            let boxes = boxes(&cells);
            for (k, first) in boxes.iter().enumerate() {
                prop_assert!(first.iter().all(|(lower, upper)| lower < upper));
                prop_assert_eq!(first[reference.len() - 1].1, f64::INFINITY);
                for second in &boxes[..k] {
                    let overlap = |(p, q): (&(f64, f64), &(f64, f64))| p.0.max(q.0) < p.1.min(q.1);
                    prop_assert!(!first.iter().zip(second).all(overlap));
                }
            }
            let end = 10.0;
            let inside = boxes.iter().map(|sides| {
                volume(sides.iter().map(|&(lower, upper)| (lower, upper.min(end))))
            });
            let all = volume(reference.iter().map(|&r| (r, end)));
            let total = inside.sum::<f64>() + hypervolume(points.view(), &reference);
            prop_assert!((total - all).abs() <= 1e-12 * all, "{total} {all}");
        }

        #[test]
        fn every_non_dominated_point_adds_one_box_or_two((points, reference) in cases()) {
            let mut front = non_dominated(points.view());
            front.retain(|&i| points.row(i).iter().zip(&reference).all(|(p, r)| p > r));
            let mut distinct: Vec<usize> = Vec::new();
            for i in front {
                if distinct.iter().all(|&j| points.row(i) != points.row(j)) {
                    distinct.push(i);
                }
            }
            let (n, n_boxes) = (distinct.len(), Cells::new(points.view(), &reference).len());
            match reference.len() {
                2 => prop_assert_eq!(n_boxes, n + 1),
                _ => prop_assert!((n + 1..=2 * n + 1).contains(&n_boxes), "{} {}", n, n_boxes),
            }
        }

        #[test]
        fn improvements_are_differences_of_hypervolumes((points, reference) in cases()) {
            let whole = hypervolume(points.view(), &reference);
            let found = contributions(points.view(), &reference);
            for (i, contribution) in found.into_iter().enumerate() {
                let others: Vec<usize> = (0..points.nrows()).filter(|&j| j != i).collect();
                let rest = by_inclusion_and_exclusion(&points.select(Axis(0), &others), &reference);
                prop_assert!((contribution - (whole - rest)).abs() < 1e-11, "{contribution}");
            }
        }
    }

    #[test]
    fn equal_points_do_not_dominate_each_other() {
        let points = array![[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [0.0, 2.0], [3.0, 0.0]];
        assert_eq!(non_dominated(points.view()), [0, 1, 4]);
        let twice = concatenate![Axis(0), points, points];
        assert_eq!(non_dominated(twice.view()), [0, 1, 4, 5, 6, 9]);
        assert_eq!(contributions(twice.view(), &[0.0, 0.0]), [0.0; 10]);
    }

    #[test]
    fn points_that_do_not_exceed_the_reference_dominate_nothing() {
        for points in [Array2::zeros((0, 2)), array![[1.0, 0.0], [-1.0, 3.0]]] {
            let found = hypervolume(points.view(), &[0.0, 0.0]);
            assert_eq!(found.to_bits(), 0.0f64.to_bits());
        }
    }

    #[test]
    fn contributions_have_no_cancellation() {
        // The first point exceeds the second by 1e-30 in both objectives, which differ by 1 in the third.
        let points = array![[1e-30, 1e-30, 1.0], [1e10, 1e10, 0.5]];
        let found = contributions(points.view(), &[0.0; 3]);
        assert!((found[0] / 0.5e-60 - 1.0).abs() < 1e-15);
    }
}
