//! Tests that saved optimizers are restored bit for bit, and that damaged bytes are refused.

use std::sync::OnceLock;

use belated::{Clock, Error, Optimizer};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::cases;
use crate::domains::cube;
use crate::histories::{Step, case, definition, go_on, is_consistent};

/// The size of the header in bytes: 8 for the name and the version, and 8 for the checksum.
const HEAD: usize = 8 + 8;

/// A way to damage saved bytes. Positions are taken modulo the number of bytes.
#[derive(Debug, Clone)]
enum Damage {
    Changed(usize, u8),
    CutOff(usize),
    Lost(usize),
    Inserted(usize, u8),
    /// Replaces several bytes by bytes that encode a large number.
    Flooded(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Changed(at, byte)),
        at().prop_map(Damage::CutOff),
        at().prop_map(Damage::Lost),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Inserted(at, byte)),
        at().prop_map(Damage::Flooded),
    ]
}

fn apply(damage: &Damage, bytes: &mut Vec<u8>) {
    let n = bytes.len().max(1);
    match *damage {
        Damage::Changed(at, byte) => bytes
            .iter_mut()
            .skip(at % n)
            .take(1)
            .for_each(|b| *b = byte),
        Damage::CutOff(at) => bytes.truncate(at % n),
        Damage::Lost(at) => drop(bytes.drain(at % n..(at % n + 1).min(bytes.len()))),
        Damage::Inserted(at, byte) => bytes.insert(at % n % (bytes.len() + 1), byte),
        Damage::Flooded(at) => bytes
            .iter_mut()
            .skip(at % n)
            .take(9)
            .for_each(|b| *b = 0xFF),
    }
}

/// The checksum, independently of the core: FNV-1a over all words of 8 bytes, the remaining bytes and the length.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    let mut mix = |word: u64| {
        hash ^= word;
        hash = hash.wrapping_mul(1_099_511_628_211);
    };
    for chunk in bytes.chunks(8) {
        match <[u8; 8]>::try_from(chunk) {
            Ok(word) => mix(u64::from_le_bytes(word)),
            Err(_) => chunk.iter().for_each(|byte| mix(u64::from(*byte))),
        }
    }
    mix(bytes.len() as u64);
    hash
}

/// Returns the bytes of a saved optimizer.
fn saved() -> Vec<u8> {
    let definition = definition(cube(1), 0, Clock::Iterations, 3, None).unwrap();
    Optimizer::new(definition).unwrap().to_bytes().unwrap()
}

/// Returns the format number, which is the byte after the name.
fn format() -> u8 {
    static FORMAT: OnceLock<u8> = OnceLock::new();
    *FORMAT.get_or_init(|| saved()[7])
}

/// Returns a header with the right checksum, followed by the body.
fn with_header(body: &[u8]) -> Vec<u8> {
    [
        b"belated".as_slice(),
        &[format()],
        &checksum(body).to_le_bytes(),
        body,
    ]
    .concat()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_restored_copy_continues_as_the_original(case in case(25)) {
        let mut original = Optimizer::new(case.definition).unwrap();
        let mut copy = Optimizer::from_bytes(&original.to_bytes().unwrap()).unwrap();
        for (i, step) in case.steps.iter().enumerate() {
            let (one, other) = (step.take(&mut original, &mut go_on()), step.take(&mut copy, &mut go_on()));
            prop_assert_eq!(one, other);
            let bytes = original.to_bytes().unwrap();
            prop_assert!(copy.to_bytes().unwrap() == bytes, "the copy differs at {step:?}");
            prop_assert_eq!(copy.ledger().trials(), original.ledger().trials());
            if i % 3 == 0 {
                copy = Optimizer::from_bytes(&bytes).unwrap();
            }
        }
    }

    #[test]
    fn damage_is_detected(case in case(8), damages in vec(damage(), 1..4)) {
        let bytes = bytes_after(&case);
        let mut damaged = bytes.clone();
        damages.iter().for_each(|damage| apply(damage, &mut damaged));
        match Optimizer::from_bytes(&damaged) {
            Ok(_) => prop_assert_eq!(damaged, bytes),
            Err(error) => prop_assert!(matches!(error, Error::Corrupt(_) | Error::UnknownFormat { .. }), "{error}"),
        }
    }

    /// If damaged bytes with a right checksum are accepted, the restored optimizer is consistent.
    #[test]
    fn a_restored_optimizer_is_consistent(case in case(8), damages in vec(damage(), 1..4)) {
        let bytes = bytes_after(&case);
        let mut body = bytes[HEAD..].to_vec();
        damages.iter().for_each(|damage| apply(damage, &mut body));
        let forged = with_header(&body);
        if let Ok(optimizer) = Optimizer::from_bytes(&forged) {
            prop_assert!(is_consistent(&optimizer));
            let again = Optimizer::from_bytes(&optimizer.to_bytes().unwrap()).unwrap();
            prop_assert_eq!(again.ledger().trials(), optimizer.ledger().trials());
        }
    }

    /// Random bytes are refused, even after a header with the right checksum.
    #[test]
    fn random_bytes_are_refused(noise in vec(any::<u8>(), 0..300), forged: bool) {
        let bytes = if forged { with_header(&noise) } else { noise };
        prop_assert!(Optimizer::from_bytes(&bytes).is_err());
    }
}

#[test]
fn the_header_of_the_tests_equals_the_header_of_the_core() {
    let bytes = saved();
    assert_eq!(with_header(&bytes[HEAD..]), bytes);
}

#[test]
fn a_different_format_is_refused() {
    let mut bytes = with_header(b"anything");
    bytes[7] = 2;
    let refused = Optimizer::from_bytes(&bytes).map(|_| ());
    assert_eq!(
        refused,
        Err(Error::UnknownFormat {
            found: 2,
            known: format()
        })
    );
}

/// Returns the saved bytes of an optimizer after the steps of a case.
fn bytes_after(case: &crate::histories::Case) -> Vec<u8> {
    let mut optimizer = Optimizer::new(case.definition.clone()).unwrap();
    for step in &case.steps {
        // Steps that save and restore the optimizer are skipped, because they do not change the bytes.
        if !matches!(step, Step::Restore) {
            step.take(&mut optimizer, &mut go_on()).ok();
        }
    }
    optimizer.to_bytes().unwrap()
}
