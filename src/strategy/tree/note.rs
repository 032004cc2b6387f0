//! The note that is logged with a suggestion: the steps that led to the suggestion, as text separated by spaces.
//!
//! A step names a cell: an existing cell by its number, and a new cell by its parent's number and its side (`12l` or
//! `12r`). A step with a minus sign names a cell in which a feasible point was not found. Any other step is the turn of
//! an instance, in the order of the turns: the last step names the cell of the suggestion, and in the turns before,
//! instances shared evaluations of other instances.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::strategy::tree::region::Side;

/// An existing cell, by its number, or a new cell, as a half of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Old(u32),
    New { parent: u32, side: Side },
}

/// A step that leads to a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An instance took its turn in this cell.
    Turn(Place),
    /// A feasible point was not found in this cell.
    Empty(Place),
}

/// Returns the text of these steps.
pub fn to_text(steps: &[Step]) -> String {
    let mut text = String::with_capacity(8 * steps.len());
    for (i, step) in steps.iter().enumerate() {
        if i > 0 {
            text.push(' ');
        }
        let place = match step {
            Step::Turn(place) => place,
            Step::Empty(place) => {
                text.push('-');
                place
            }
        };
        // Writing to a string cannot fail.
        let _ = match place {
            Place::Old(node) => write!(text, "{node}"),
            Place::New { parent, side } => write!(text, "{parent}{}", ["l", "r"][*side]),
        };
    }
    text
}

/// Reads the steps from a text. The last step must be a turn.
pub fn from_text(text: &str) -> Result<Vec<Step>> {
    let steps: Option<Vec<Step>> = text.split(' ').map(step).collect();
    match steps {
        Some(steps) if matches!(steps.last(), Some(Step::Turn(_))) => Ok(steps),
        _ => Err(wrong(text)),
    }
}

/// The error for a text that is not a note.
pub fn wrong(text: &str) -> Error {
    Error::Corrupt(format!(
        "the note {text:?} does not name a cell of the tree"
    ))
}

fn step(text: &str) -> Option<Step> {
    match text.strip_prefix('-') {
        Some(text) => place(text).map(Step::Empty),
        None => place(text).map(Step::Turn),
    }
}

fn place(text: &str) -> Option<Place> {
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok(),
        false => None,
    };
    if let Some(digits) = text.strip_suffix('l') {
        return Some(Place::New {
            parent: number(digits)?,
            side: 0,
        });
    }
    if let Some(digits) = text.strip_suffix('r') {
        return Some(Place::New {
            parent: number(digits)?,
            side: 1,
        });
    }
    number(text).map(Place::Old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_place() -> impl Strategy<Value = Place> {
        prop_oneof![
            any::<u32>().prop_map(Place::Old),
            (any::<u32>(), 0..2usize).prop_map(|(parent, side)| Place::New { parent, side }),
        ]
    }

    proptest! {
        #[test]
        fn written_steps_are_read_back(
            before in prop::collection::vec((any::<bool>(), any_place()), 0..5), last in any_place(),
        ) {
            let step = |(empty, place): (bool, Place)| if empty { Step::Empty(place) } else { Step::Turn(place) };
            let mut steps: Vec<Step> = before.into_iter().map(step).collect();
            steps.push(Step::Turn(last));
            prop_assert_eq!(from_text(&to_text(&steps)).unwrap(), steps);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9lr -]{0,12}|.*") {
            if let Ok(steps) = from_text(&text) {
                prop_assert_eq!(from_text(&to_text(&steps)).unwrap(), steps);
            }
        }
    }

    #[test]
    fn text_that_does_not_name_a_cell_is_refused() {
        for text in [
            "",
            " ",
            "l",
            "-",
            "1 ",
            " 1",
            "-1",
            "1x",
            "+1",
            "1lr",
            "4294967296",
            "1  2",
        ] {
            assert!(from_text(text).is_err(), "{text:?}");
        }
    }
}
