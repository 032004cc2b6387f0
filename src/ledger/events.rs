//! The events of a log as bytes, in the binary form of saved optimizers.

use crate::ledger::event::Event;

/// The events. Stored as bytes, a million events take less memory than as [`Event`]s.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Events {
    bytes: Vec<u8>,
    /// The position in `bytes` after each event.
    ends: Vec<usize>,
}

impl Events {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn reserve(&mut self, n_events: usize, n_bytes: usize) {
        self.ends.reserve(n_events);
        self.bytes.reserve(n_bytes);
    }

    /// All events, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn push(&mut self, event: &Event) {
        let written = postcard::to_extend(event, std::mem::take(&mut self.bytes));
        self.bytes = written.expect("every event has a binary form");
        self.ends.push(self.bytes.len());
    }

    /// Appends an event whose bytes are known.
    pub fn push_written(&mut self, written: &[u8]) {
        self.bytes.extend_from_slice(written);
        self.ends.push(self.bytes.len());
    }

    fn start(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Returns event number i. The returned event equals the event that was pushed.
    pub fn get(&self, i: usize) -> Event {
        let written = &self.bytes[self.start(i)..self.ends[i]];
        postcard::from_bytes(written).expect("the bytes contain an event")
    }

    /// Removes the last event.
    pub fn pop(&mut self) {
        self.bytes.truncate(self.start(self.len() - 1));
        self.ends.pop();
    }
}
