//! Which replica is asked next.

use rand::seq::SliceRandom as _;

use crate::endpoint::Endpoint;

/// The order of one call: the leader if one is known, then the others by chance (many plugins
/// start at once, and must not all ask the same follower), and round again.
#[derive(Debug)]
pub(crate) struct Route {
    order: Vec<Endpoint>,
    next: usize,
}

impl Route {
    pub(crate) fn new(endpoints: &[Endpoint], leader: Option<Endpoint>) -> Route {
        let mut order = endpoints.to_vec();
        order.shuffle(&mut rand::rng());
        if let Some(leader) = leader {
            order.retain(|endpoint| *endpoint != leader);
            order.insert(0, leader);
        }
        Route { order, next: 0 }
    }

    /// Only that replica.
    pub(crate) fn only(endpoint: Endpoint) -> Route {
        Route { order: vec![endpoint], next: 0 }
    }

    /// The replica to ask now: the next that is not being asked already, since one that hangs
    /// would else take all attempts.
    pub(crate) fn advance(&mut self, asked: &[Endpoint]) -> Endpoint {
        if self.has_other_than(asked) {
            while asked.contains(self.peek()) {
                self.next += 1;
            }
        }
        let endpoint = self.peek().clone();
        self.next += 1;
        endpoint
    }

    fn peek(&self) -> &Endpoint {
        // Never empty: options without an endpoint are refused.
        &self.order[self.next % self.order.len()]
    }

    /// Is there one that is not among `asked`?
    pub(crate) fn has_other_than(&self, asked: &[Endpoint]) -> bool {
        self.order.iter().any(|endpoint| !asked.contains(endpoint))
    }

    /// Is there one that this call has not asked?
    pub(crate) fn has_untried(&self) -> bool {
        self.next < self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Route;
    use crate::endpoint::Endpoint;

    fn endpoints() -> Vec<Endpoint> {
        ["a=h:1", "b=h:2", "c=h:3"].map(|text| text.parse().unwrap()).to_vec()
    }

    #[test]
    fn the_leader_goes_first_and_everyone_has_a_turn() {
        let leader = endpoints()[1].clone();
        let mut route = Route::new(&endpoints(), Some(leader.clone()));
        assert_eq!(route.advance(&[]), leader);
        assert!(route.has_untried());
        let mut rest = vec![route.advance(&[]), route.advance(&[])];
        rest.sort();
        assert_eq!(rest, [endpoints()[0].clone(), endpoints()[2].clone()]);
        assert!(!route.has_untried());
        assert_eq!(route.advance(&[]), leader);
    }

    #[test]
    fn a_leader_that_is_not_listed_is_asked_too() {
        let leader: Endpoint = "d=h:4".parse().unwrap();
        let mut route = Route::new(&endpoints(), Some(leader.clone()));
        assert_eq!(route.advance(&[]), leader);
        let mut rest: Vec<_> = (0..3).map(|_| route.advance(&[])).collect();
        rest.sort();
        assert_eq!(rest, endpoints());
    }

    #[test]
    fn without_a_leader_the_first_differs_from_call_to_call() {
        let first = || Route::new(&endpoints(), None).advance(&[]);
        let one = first();
        // 100 calls that agree by chance: 3^-100.
        assert!((0..100).any(|_| first() != one));
    }

    #[test]
    fn one_that_is_being_asked_is_passed_over() {
        let leader = endpoints()[0].clone();
        let mut route = Route::new(&endpoints(), Some(leader.clone()));
        let hanging = [route.advance(&[])];
        assert_eq!(hanging[0], leader);
        for _ in 0..10 {
            assert_ne!(route.advance(&hanging), leader);
        }
        // Unless there is no other.
        assert!(Route::only(leader.clone()).advance(&hanging) == leader);
    }
}
