//! The order of passes: arms interleaved A B B A …, so that a drift of the machine hits
//! every arm alike, and which arm begins is drawn by the seed. Pure.

use crate::bench::plan::Random;

/// One measured pass to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Index of the arm.
    pub arm: usize,
    /// Repeat, from 1.
    pub repeat: u32,
}

/// Every measured pass in its order. Repeats go forwards and backwards through the arms
/// in turn; the seed draws the order of the first one.
pub fn order(arms: usize, repeats: u32, seed: u64) -> Vec<Slot> {
    let mut row: Vec<usize> = (0..arms).collect();
    let mut random = Random::new(seed);
    for index in (1..row.len()).rev() {
        row.swap(index, (random.unit() * (index + 1) as f64) as usize);
    }
    let mut slots = Vec::new();
    for repeat in 1..=repeats {
        slots.extend(row.iter().map(|arm| Slot { arm: *arm, repeat }));
        row.reverse();
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_arms_are_measured_in_the_order_a_b_b_a() {
        let arms: Vec<usize> = order(2, 4, 1).iter().map(|slot| slot.arm).collect();
        let (a, b) = (arms[0], arms[1]);
        assert_ne!(a, b);
        assert_eq!(arms, [a, b, b, a, a, b, b, a]);
        let first: Vec<usize> = (0..64).map(|seed| order(2, 1, seed)[0].arm).collect();
        assert!(first.contains(&0) && first.contains(&1), "the seed draws who begins");
    }

    proptest! {
        #[test]
        fn every_arm_is_measured_in_every_repeat_once(arms in 1usize..6, repeats in 1u32..7, seed: u64) {
            let slots = order(arms, repeats, seed);
            prop_assert_eq!(slots.clone(), order(arms, repeats, seed));
            for repeat in 1..=repeats {
                let mut seen: Vec<usize> = slots.iter().filter(|slot| slot.repeat == repeat).map(|slot| slot.arm).collect();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..arms).collect::<Vec<_>>());
            }
        }
    }
}
