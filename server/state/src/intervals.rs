//! A set of numbers as disjoint intervals with gaps between them.

use std::collections::BTreeMap;

/// First number of an interval to its last. Neighbours are joined, so that what is densely taken
/// costs one entry, and the end of an interval is the place before a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals(BTreeMap<u128, u128>);

impl Intervals {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last number of the interval that holds `number`.
    pub(crate) fn last_of(&self, number: u128) -> Option<u128> {
        let (_, &last) = self.0.range(..=number).next_back()?;
        (number <= last).then_some(last)
    }

    /// Adds `first..=last`; parts of it may be in the set.
    pub(crate) fn insert(&mut self, first: u128, last: u128) {
        let (mut start, mut end) = (first, last);
        if let Some((&before, &before_last)) = self.0.range(..=first).next_back()
            && before_last >= first.saturating_sub(1)
        {
            start = before;
            end = end.max(before_last);
        }
        while let Some((&next, &next_last)) =
            self.0.range(start.saturating_add(1)..=end.saturating_add(1)).next()
        {
            self.0.remove(&next);
            end = end.max(next_last);
        }
        self.0.insert(start, end);
    }

    /// Takes one number out.
    pub(crate) fn remove(&mut self, number: u128) {
        let Some((&first, last)) = self.0.range_mut(..=number).next_back() else { return };
        let end = *last;
        if number > end {
            return;
        }
        match number.checked_sub(1).filter(|before| *before >= first) {
            Some(before) => *last = before,
            None => {
                self.0.remove(&first);
            }
        }
        if let Some(after) = number.checked_add(1).filter(|after| *after <= end) {
            self.0.insert(after, end);
        }
    }

    /// How many numbers of `first..=last` are in the set, saturating.
    pub(crate) fn covered(&self, first: u128, last: u128) -> u128 {
        if first > last {
            return 0;
        }
        let before = self.0.range(..first).next_back();
        before
            .into_iter()
            .chain(self.0.range(first..=last))
            .filter_map(|(&start, &end)| end.min(last).checked_sub(start.max(first)))
            .fold(0u128, |sum, distance| sum.saturating_add(distance).saturating_add(1))
    }

    /// The intervals in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, u128)> + '_ {
        self.0.iter().map(|(&first, &last)| (first, last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn list(intervals: &Intervals) -> Vec<(u128, u128)> {
        intervals.iter().collect()
    }

    #[test]
    fn neighbours_join_and_split() {
        let mut set = Intervals::default();
        set.insert(1, 1);
        set.insert(3, 3);
        assert_eq!(list(&set), [(1, 1), (3, 3)]);
        set.insert(2, 2);
        assert_eq!(list(&set), [(1, 3)]);
        set.remove(2);
        assert_eq!(list(&set), [(1, 1), (3, 3)]);
        set.insert(0, 9);
        assert_eq!(list(&set), [(0, 9)]);
        set.remove(0);
        set.remove(9);
        set.remove(9);
        assert_eq!(list(&set), [(1, 8)]);
        assert_eq!(set.covered(0, 4), 4);
    }

    #[test]
    fn the_ends_of_the_numbers_do_not_overflow() {
        let mut set = Intervals::default();
        set.insert(u128::MAX, u128::MAX);
        set.insert(0, 0);
        set.insert(u128::MAX - 1, u128::MAX - 1);
        assert_eq!(list(&set), [(0, 0), (u128::MAX - 1, u128::MAX)]);
        set.remove(u128::MAX);
        set.remove(0);
        assert_eq!(list(&set), [(u128::MAX - 1, u128::MAX - 1)]);
        set.insert(0, u128::MAX);
        assert_eq!(set.covered(0, u128::MAX), u128::MAX);
        assert_eq!(set.last_of(7), Some(u128::MAX));
    }

    proptest! {
        #[test]
        fn equals_a_plain_set(
            steps in prop::collection::vec((any::<bool>(), 0u128..40, 0u128..4), 0..120),
        ) {
            let (mut set, mut plain) = (Intervals::default(), BTreeSet::new());
            for (add, first, more) in steps {
                if add {
                    set.insert(first, first + more);
                    plain.extend(first..=first + more);
                } else {
                    set.remove(first);
                    plain.remove(&first);
                }
            }
            for number in 0..48 {
                prop_assert_eq!(set.last_of(number).is_some(), plain.contains(&number));
            }
            let joined: Vec<_> = set.iter().collect();
            prop_assert!(joined.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            prop_assert_eq!(set.covered(5, 30), plain.range(5..=30).count() as u128);
        }
    }
}
