//! The note that is logged with the first suggestion of a round: the number of the round, and the delay model at its
//! start.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ledger::View;
use crate::strategy::elimination::settings::SubExponential;

/// The note that begins a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The number of the round, counted from 1.
    pub round: usize,
    /// The delay model that determined the length of the previous round. It is given in the settings, or was estimated
    /// at the end of that round. `None` if no delay model was available.
    pub delay: Option<SubExponential>,
}

impl Note {
    pub fn to_text(self) -> Result<String> {
        Ok(serde_json::to_string(&self)?)
    }

    /// Reads a note. Returns an error if the text is not a note.
    pub fn from_text(text: &str) -> Result<Self> {
        let note: Note = serde_json::from_str(text)?;
        let numbers = note
            .delay
            .map_or([0.0; 3], |delay| [delay.mean, delay.xi, delay.b]);
        if numbers.iter().any(|x| !(*x >= 0.0 && x.is_finite())) {
            return Err(Error::Corrupt(format!(
                "the note {text} does not name a round"
            )));
        }
        Ok(note)
    }

    /// Returns an error if a note is not valid for the next suggestion after this log.
    pub fn check(text: &str, log: View) -> Result<()> {
        let note = Self::from_text(text)?;
        // The rounds in the notes of a log are numbered 1, 2, … without gaps.
        let last = (0..log.n_trials())
            .rev()
            .find_map(|number| log.note(number));
        let begun = last.map_or(Ok(0), |last| Self::from_text(&last).map(|last| last.round))?;
        if note.round != begun + 1 {
            return Err(Error::Corrupt(format!(
                "the note {text} begins a round that is not the next one"
            )));
        }
        Ok(())
    }
}
