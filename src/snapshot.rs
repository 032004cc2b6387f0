//! Saved optimizers: a header with the number of the format and a checksum, the definition, and the events of the log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Error, Result, refuse};
use crate::ledger::Event;
use crate::optimizer::{Definition, Optimizer};
use crate::problem::Problem;

/// The first bytes of a saved optimizer, followed by the number of the format and eight bytes of checksum.
const NAME: &[u8] = b"belated";

/// The number of the format. Bytes in another format are refused.
pub const FORMAT: u8 = 16;

/// The data that precede the events in a saved optimizer.
#[derive(Serialize, Deserialize)]
struct Preamble {
    problem: Arc<Problem>,
    seed: u64,
    /// The strategy and the rule that stops trials, as JSON.
    settings: String,
    n_events: usize,
}

/// FNV-1a over words of 8 bytes. Every step is a bijection, so a change of one word is always detected. Any other
/// change is missed with probability 2⁻⁶⁴.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(0xCBF2_9CE4_8422_2325, |hash, word| {
        step(hash, u64::from_le_bytes(*word))
    });
    let hash = rest
        .iter()
        .fold(hash, |hash, byte| step(hash, u64::from(*byte)));
    step(hash, bytes.len() as u64)
}

fn corrupt(error: postcard::Error) -> Error {
    Error::Corrupt(error.to_string())
}

impl Optimizer {
    /// Returns the definition and the log as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.ledger().era() > 0 {
            return Err(refuse(
                "log",
                "the log of a study whose problem was revised",
                "such a study is only kept in its store",
            ));
        }
        let definition = self.definition();
        let preamble = Preamble {
            problem: definition.problem.clone(),
            seed: definition.seed,
            settings: json!([definition.strategy, definition.stopping]).to_string(),
            n_events: self.ledger().len(),
        };
        let head = [NAME, &[FORMAT], &[0; 8]].concat();
        let start = head.len();
        let mut bytes = postcard::to_extend(&preamble, head).map_err(corrupt)?;
        bytes.extend(self.ledger().bytes());
        let sum = checksum(&bytes[start..]);
        bytes[start - 8..start].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Restores an optimizer from bytes. The events are checked and replayed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let refuse = |what: &str| Error::Corrupt(what.to_string());
        let (format, rest) = bytes
            .strip_prefix(NAME)
            .and_then(<[u8]>::split_first)
            .ok_or_else(|| refuse("it does not begin with the header of a saved optimizer"))?;
        if *format != FORMAT {
            return Err(Error::UnknownFormat {
                found: *format,
                known: FORMAT,
            });
        }
        let (sum, body) = rest
            .split_first_chunk()
            .ok_or_else(|| refuse("it is truncated"))?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(refuse("its checksum does not match"));
        }
        let (preamble, mut rest): (Preamble, _) =
            postcard::take_from_bytes(body).map_err(corrupt)?;
        let (problem, seed) = (preamble.problem, preamble.seed);
        let settings = serde_json::from_str(&preamble.settings);
        let (strategy, stopping) = settings.map_err(|error| refuse(&error.to_string()))?;
        let mut optimizer = Self::new(Definition {
            problem,
            seed,
            strategy,
            stopping,
        })?;
        // An event takes more than four bytes, so the number of bytes bounds the number of events. If the stored number
        // of events is damaged, the bound limits the memory that is reserved.
        optimizer.reserve(preamble.n_events.min(rest.len() / 4), rest.len());
        for _ in 0..preamble.n_events {
            let (event, after): (Event, _) = postcard::take_from_bytes(rest).map_err(corrupt)?;
            let (written, _) = rest.split_at(rest.len() - after.len());
            optimizer.append_written(&event, written)?;
            rest = after;
        }
        match rest.is_empty() {
            true => Ok(optimizer),
            false => Err(refuse("there are bytes after its last event")),
        }
    }
}
