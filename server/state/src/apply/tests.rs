//! What a command comes to, case by case.

use std::net::IpAddr;

use super::{FENCE_LIFE_MS, FORCED_REUSE_AFTER_MS, MAX_FENCES_OF_NODE};
use crate::command::{
    Allocate, Collect, Command, InlineRange, PoolChoice, PoolSpec, Release, ReservationSpec, Slot,
};
use crate::outcome::{Done, EventKind, Outcome, Refusal};
use crate::state::{AddressStatus, At, State};
use crate::types::{
    AttachmentKey, ClusterTime, Dns, NodeKey, Order, Pod, PoolKey, Revision, Stamp,
};

/// A state with a clock, checked after each step.
struct Bench {
    state: State,
    ms: u64,
    index: u64,
    events: Vec<(EventKind, String)>,
}

impl Bench {
    fn new() -> Bench {
        Bench { state: State::new(), ms: 1_000_000, index: 0, events: Vec::new() }
    }

    fn with_pool(cidr: &str) -> Bench {
        let mut bench = Bench::new();
        bench.apply(Command::CreatePool(pool("p", cidr))).unwrap();
        bench
    }

    fn unchecked(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let at = At {
            revision: Revision { index: self.index, position: 0 },
            clock: ClusterTime(self.ms * 1_000_000),
            wall_ms: 7,
        };
        let (outcome, changes) = self.state.apply(&command, at);
        self.events = changes.events.iter().map(|e| (e.kind, e.address.to_string())).collect();
        outcome
    }

    fn apply(&mut self, command: Command) -> Outcome {
        let outcome = self.unchecked(command);
        self.state.check_invariants().unwrap();
        outcome
    }

    /// The addresses of a request, or why there are none.
    fn add(&mut self, request: Allocate) -> Result<Vec<String>, Refusal> {
        match self.apply(Command::Allocate(Box::new(request)))? {
            Done::Allocated { allocation, .. } => {
                Ok(allocation.addresses.iter().map(|a| a.address.addr().to_string()).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn del(&mut self, container: &str, ns: u64) -> Vec<IpAddr> {
        match self.apply(Command::Release(end(container, ns))) {
            Ok(Done::Released(addresses)) => addresses,
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, ms: u64) -> &mut Bench {
        self.ms += ms;
        self
    }
}

fn attachment(container: &str) -> AttachmentKey {
    AttachmentKey {
        node: NodeKey { cluster: "k".into(), name: "n".into() },
        container_id: container.into(),
        ifname: "net1".into(),
        network: "net".into(),
    }
}

fn stamp(boot_ns: u64) -> Stamp {
    Stamp { epoch: 1, boot_ns }
}

fn add(container: &str, ns: u64, pools: &[&str]) -> Allocate {
    let slot = |name: &&str| Slot { choices: vec![PoolChoice::Named((*name).into())] };
    Allocate {
        attachment: attachment(container),
        stamp: stamp(ns),
        space: "default".into(),
        slots: pools.iter().map(slot).collect(),
        machine_id: "m".into(),
        ..Allocate::default()
    }
}

fn of_pod(uid: &str, request: Allocate) -> Allocate {
    let pod = Pod { namespace: "ns".into(), name: "web-0".into(), uid: uid.into() };
    Allocate { pod, ..request }
}

fn asking(addresses: &[&str], request: Allocate) -> Allocate {
    let requested = addresses.iter().map(|a| a.parse().unwrap()).collect();
    Allocate { requested, ..request }
}

fn end(container: &str, ns: u64) -> Release {
    Release { attachment: attachment(container), stamp: stamp(ns), ..Release::default() }
}

fn key(name: &str) -> PoolKey {
    PoolKey { space: "default".into(), name: name.into() }
}

fn pool(name: &str, cidr: &str) -> PoolSpec {
    PoolSpec {
        key: key(name),
        cidr: cidr.parse().unwrap(),
        first: None,
        last: None,
        exclude: Vec::new(),
        gateway: None,
        allocate_gateway: false,
        whole_prefix: false,
        routes: Vec::new(),
        dns: Dns::default(),
        order: Order::Lowest,
        cool_down_ms: 30_000,
    }
}

fn inline(cidr: &str) -> InlineRange {
    InlineRange {
        cidr: cidr.parse().unwrap(),
        first: None,
        last: None,
        exclude: Vec::new(),
        gateway: None,
        whole_prefix: false,
        lenient: false,
    }
}

fn reservation(first: &str, last: &str, identity: Option<&str>) -> Command {
    Command::CreateReservation(ReservationSpec {
        space: "default".into(),
        first: first.parse().unwrap(),
        last: last.parse().unwrap(),
        identity: identity.map(str::to_owned),
        note: "rack".into(),
    })
}

fn ok(addresses: &[&str]) -> Result<Vec<String>, Refusal> {
    Ok(addresses.iter().map(|a| (*a).to_owned()).collect())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn lowest_goes_first_and_released_ones_rest() {
    let mut bench = Bench::with_pool("10.0.0.0/29");
    for n in 1..=3 {
        let address = format!("10.0.0.{n}");
        assert_eq!(bench.add(add(&format!("c{n}"), n, &["p"])), ok(&[&address]));
    }
    assert_eq!(bench.del("c2", 9), [ip("10.0.0.2")]);
    assert_eq!(bench.del("c2", 10), [] as [IpAddr; 0]);
    assert_eq!(bench.add(add("c4", 4, &["p"])), ok(&["10.0.0.4"]));
    assert!(matches!(bench.state.address("default", ip("10.0.0.2")), AddressStatus::Cooling(_)));
    assert_eq!(bench.pass(30_000).add(add("c5", 5, &["p"])), ok(&["10.0.0.2"]));
}

#[test]
fn the_one_released_longest_ago_goes_when_nothing_is_free_but_not_within_five_seconds() {
    let mut bench = Bench::with_pool("10.0.0.0/30");
    bench.add(add("a", 1, &["p"])).unwrap();
    bench.add(add("b", 1, &["p"])).unwrap();
    bench.del("b", 2);
    bench.pass(1_000).del("a", 2);
    bench.pass(FORCED_REUSE_AFTER_MS - 1_001);
    let refusal = bench.add(add("c", 3, &["p"])).unwrap_err();
    let exhausted = Refusal::PoolExhausted {
        slot: 0,
        pools: "default:p".into(),
        allocated: 0,
        capacity: 2,
        cooling: 2,
    };
    assert_eq!(refusal, exhausted);
    assert_eq!(bench.pass(1).add(add("c", 3, &["p"])), ok(&["10.0.0.2"]));
}

#[test]
fn a_resting_address_returns_to_its_attachment_pod_or_whoever_names_it() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(of_pod("u", add("a", 1, &["p"]))).unwrap();
    bench.del("a", 2);
    assert_eq!(bench.add(add("a", 3, &["p"])), ok(&["10.0.0.1"]));
    bench.del("a", 4);
    assert_eq!(bench.add(add("other", 5, &["p"])), ok(&["10.0.0.2"]));
    assert_eq!(bench.add(asking(&["10.0.0.1"], add("named", 5, &["p"]))), ok(&["10.0.0.1"]));
    bench.add(of_pod("u", add("b", 6, &["p"]))).unwrap();
    bench.del("b", 7);
    assert_eq!(bench.add(of_pod("u", add("c", 8, &["p"]))), ok(&["10.0.0.3"]));
}

#[test]
fn a_repeat_gets_the_same_and_a_del_before_it_does_nothing() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 1, &["p"])).unwrap();
    assert_eq!(bench.add(add("a", 5, &["p"])), ok(&["10.0.0.1"]));
    let allocation = bench.state.allocation(&attachment("a")).unwrap().clone();
    assert_eq!((allocation.made, allocation.latest), (stamp(1), stamp(5)));
    assert!(bench.events.is_empty());
    assert!(bench.del("a", 4).is_empty());
    assert_eq!(bench.add(add("a", 4, &["p"])), Err(Refusal::Fenced { fence: stamp(4) }));
    assert_eq!(bench.add(add("a", 5, &["p"])), ok(&["10.0.0.1"]));
}

#[test]
fn an_abort_undoes_the_add_of_its_stamp_only() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 1, &["p"])).unwrap();
    bench.add(add("a", 2, &["p"])).unwrap();
    for ns in [1, 2] {
        let outcome = bench.apply(Command::Abort(end("a", ns)));
        assert_eq!(outcome, Ok(Done::Released(Vec::new())));
    }
    bench.add(add("b", 3, &["p"])).unwrap();
    let outcome = bench.apply(Command::Abort(end("b", 3)));
    assert_eq!(outcome, Ok(Done::Released(vec![ip("10.0.0.2")])));
    assert_eq!(bench.events, [(EventKind::Aborted, "10.0.0.2".to_owned())]);
    assert_eq!(bench.add(add("b", 3, &["p"])), Err(Refusal::Fenced { fence: stamp(3) }));
}

#[test]
fn a_fence_outlives_itself_as_the_floor_of_its_node() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.del("a", 5);
    bench.pass(FENCE_LIFE_MS - 1);
    assert!(bench.add(add("b", 5, &["p"])).is_ok());
    bench.pass(1);
    assert_eq!(bench.add(add("a", 5, &["p"])), Err(Refusal::Fenced { fence: stamp(5) }));
    assert_eq!(bench.add(add("c", 4, &["p"])), Err(Refusal::Fenced { fence: stamp(5) }));
    assert!(bench.add(add("a", 6, &["p"])).is_ok());
}

#[test]
fn the_oldest_fence_folds_when_there_are_too_many() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    for n in 0..=MAX_FENCES_OF_NODE as u64 {
        bench.ms += 1;
        bench.unchecked(Command::Release(end(&n.to_string(), n + 1))).unwrap();
    }
    bench.state.check_invariants().unwrap();
    assert_eq!(bench.add(add("x", 1, &["p"])), Err(Refusal::Fenced { fence: stamp(1) }));
    assert!(bench.add(add("x", 2, &["p"])).is_ok());
}

#[test]
fn epochs_only_grow_and_only_the_spool_may_be_behind() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 1, &["p"])).unwrap();
    let mut refused = add("b", 1, &["nowhere"]);
    refused.stamp.epoch = 4;
    assert!(matches!(bench.add(refused), Err(Refusal::PoolNotFound(_))));
    let stale = Refusal::StaleEpoch { epoch: 4 };
    assert_eq!(bench.add(add("b", 9, &["p"])), Err(stale.clone()));
    assert_eq!(bench.apply(Command::Release(end("a", 9))), Err(stale.clone()));
    assert_eq!(bench.apply(Command::Abort(end("a", 9))), Err(stale));
    let spooled = Release { spooled: true, ..end("a", 9) };
    let outcome = bench.apply(Command::Release(spooled));
    assert_eq!(outcome, Ok(Done::Released(vec![ip("10.0.0.1")])));
}

#[test]
fn a_del_finds_its_interface_under_another_network_name() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 1, &["p"])).unwrap();
    let mut renamed = end("a", 5);
    renamed.attachment.network = "new-name".into();
    renamed.previous = vec![ip("10.0.0.1")];
    let mut other = renamed.clone();
    other.attachment.network = "third-name".into();
    let abort = bench.apply(Command::Abort(other));
    assert_eq!(abort, Ok(Done::Released(Vec::new())));
    let outcome = bench.apply(Command::Release(renamed.clone()));
    assert_eq!(outcome, Ok(Done::Released(vec![ip("10.0.0.1")])));
    assert_eq!(bench.add(add("a", 5, &["p"])), Err(Refusal::Fenced { fence: stamp(5) }));
    // Once more, when the interface belongs to a network again: that one is not its own.
    bench.add(add("a", 6, &["p"])).unwrap();
    renamed.stamp = stamp(7);
    assert_eq!(bench.apply(Command::Release(renamed)), Ok(Done::Released(Vec::new())));
}

#[test]
fn a_newer_sandbox_takes_over_and_an_older_one_is_refused() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(of_pod("u", add("a", 5, &["p"]))).unwrap();
    let superseded = Refusal::Superseded { container_id: "a".into() };
    assert_eq!(bench.add(of_pod("u", add("b", 5, &["p"]))), Err(superseded));
    assert_eq!(bench.add(of_pod("", add("b", 5, &["p"]))), ok(&["10.0.0.2"]));
    assert_eq!(bench.add(of_pod("u", add("c", 6, &["p"]))), ok(&["10.0.0.1"]));
    let moved = |kind| (kind, "10.0.0.1".to_owned());
    assert_eq!(bench.events, [moved(EventKind::TakenOver), moved(EventKind::Allocated)]);
    assert_eq!(bench.add(of_pod("u", add("a", 6, &["p"]))), {
        Err(Refusal::Fenced { fence: stamp(6) })
    });
    assert!(bench.del("a", 7).is_empty());
    assert_eq!(bench.state.allocation_count(), 2);
}

#[test]
fn a_repeat_for_another_pod_interface_takes_that_one_over() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(of_pod("u", add("a", 1, &["p"]))).unwrap();
    bench.add(of_pod("v", add("b", 2, &["p"]))).unwrap();
    assert_eq!(bench.add(of_pod("v", add("a", 3, &["p"]))), ok(&["10.0.0.1"]));
    assert_eq!(bench.events, [(EventKind::TakenOver, "10.0.0.2".to_owned())]);
    assert_eq!(bench.state.allocation(&attachment("b")), None);
    assert_eq!(bench.add(of_pod("u", add("c", 4, &["p"]))), ok(&["10.0.0.3"]));
}

#[test]
fn a_takeover_that_fails_leaves_the_older_sandbox_alone() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.apply(Command::CreatePool(pool("q", "10.1.0.0/30"))).unwrap();
    bench.add(add("x", 1, &["q"])).unwrap();
    bench.add(add("y", 1, &["q"])).unwrap();
    bench.add(of_pod("u", add("a", 5, &["p"]))).unwrap();
    let before = bench.state.clone();
    let refusal = bench.add(of_pod("u", add("b", 6, &["q"])));
    assert!(matches!(refusal, Err(Refusal::PoolExhausted { .. })));
    assert!(bench.events.is_empty());
    let cluster = bench.state.cluster.clone();
    assert_eq!(bench.state, State { cluster, ..before });
    assert_eq!(bench.add(of_pod("u", add("b", 6, &["p", "p"]))), ok(&["10.0.0.1", "10.0.0.2"]));
}

#[test]
fn all_slots_or_nothing() {
    let mut bench = Bench::with_pool("10.0.0.0/30");
    bench.add(add("a", 1, &["p"])).unwrap();
    let mut request = add("b", 1, &["p", "p"]);
    request.slots.push(Slot { choices: vec![PoolChoice::Inline(inline("10.9.0.0/24"))] });
    assert!(matches!(bench.add(request), Err(Refusal::PoolExhausted { slot: 1, .. })));
    assert_eq!(bench.state.pool(&key("10.9.0.0/24")), None);
    assert_eq!(bench.state.allocation_count(), 1);
}

#[test]
fn an_inline_range_binds_its_request_alone() {
    let mut bench = Bench::new();
    let mut range = inline("10.0.0.0/24");
    range.gateway = Some(ip("10.0.0.1"));
    range.exclude = vec!["10.0.0.2/31".parse().unwrap()];
    let mut request = add("a", 1, &[]);
    request.slots = vec![Slot { choices: vec![PoolChoice::Inline(range.clone())] }];
    assert_eq!(bench.add(asking(&["10.0.0.1"], request.clone())), {
        Err(Refusal::AddressIsGateway(ip("10.0.0.1")))
    });
    assert_eq!(bench.add(request.clone()), ok(&["10.0.0.4"]));
    let allocation = bench.state.allocation(&attachment("a")).unwrap();
    assert_eq!(allocation.addresses[0].gateway, range.gateway);
    assert!(bench.state.pool(&key("10.0.0.0/24")).unwrap().inline);
    assert_eq!(bench.add(add("b", 1, &["10.0.0.0/24"])), ok(&["10.0.0.1"]));
}

#[test]
fn reservations_are_for_nobody_or_one_identity() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.apply(reservation("10.0.0.1", "10.0.0.9", None)).unwrap();
    bench.apply(reservation("10.0.0.20", "10.0.0.20", Some("ns/web-0"))).unwrap();
    assert_eq!(bench.add(add("a", 1, &["p"])), ok(&["10.0.0.10"]));
    let taken = |address: &str, holder: &str| {
        Err(Refusal::AddressTaken { address: ip(address), holder: holder.into() })
    };
    let asked = bench.add(asking(&["10.0.0.5"], add("b", 1, &["p"])));
    assert_eq!(asked, taken("10.0.0.5", "reservation 10.0.0.1-10.0.0.9 rack"));
    let asked = bench.add(asking(&["10.0.0.10"], add("b", 1, &["p"])));
    assert_eq!(asked, taken("10.0.0.10", "k/n/net/a/net1"));
    assert_eq!(bench.add(of_pod("u1", add("w1", 1, &["p"]))), ok(&["10.0.0.20"]));
    bench.del("w1", 2);
    assert_eq!(bench.add(of_pod("u2", add("w2", 3, &["p"]))), ok(&["10.0.0.20"]));
    assert_eq!(bench.add(of_pod("u3", add("w3", 3, &["p"]))), ok(&["10.0.0.11"]));
    assert!(matches!(
        bench.apply(reservation("10.0.0.9", "10.0.0.12", None)),
        Err(Refusal::ReservationExists { .. })
    ));
}

#[test]
fn a_sequential_pool_goes_round() {
    let mut bench = Bench::new();
    let spec = PoolSpec {
        order: Order::Sequential,
        cool_down_ms: 0,
        gateway: Some(ip("10.0.0.3")),
        ..pool("p", "10.0.0.0/29")
    };
    bench.apply(Command::CreatePool(spec)).unwrap();
    for (n, last) in [1u64, 2, 4, 5, 6, 1, 2].into_iter().enumerate() {
        let container = format!("c{n}");
        assert_eq!(bench.add(add(&container, 1, &["p"])), ok(&[&format!("10.0.0.{last}")]));
        bench.del(&container, 2);
    }
}

#[test]
fn gateways_and_pools_in_use_are_protected() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 1, &["p"])).unwrap();
    let with_gateway =
        |gateway: &str| PoolSpec { gateway: Some(ip(gateway)), ..pool("q", "10.0.0.0/16") };
    assert!(matches!(
        bench.apply(Command::CreatePool(with_gateway("10.0.0.1"))),
        Err(Refusal::GatewayInUse { .. })
    ));
    assert!(matches!(
        bench.apply(Command::CreatePool(with_gateway("10.1.0.1"))),
        Err(Refusal::BadRange { field: "gateway", .. })
    ));
    bench.apply(Command::CreatePool(with_gateway("10.0.0.2"))).unwrap();
    assert_eq!(bench.add(add("b", 1, &["p"])), ok(&["10.0.0.3"]));
    assert_eq!(bench.apply(Command::DeletePool(key("q"))), Ok(Done::PoolDeleted));
    assert_eq!(bench.add(add("c", 1, &["p"])), ok(&["10.0.0.2"]));
    let in_use = Refusal::PoolInUse { pool: key("p"), allocated: 3 };
    assert_eq!(bench.apply(Command::DeletePool(key("p"))), Err(in_use));
}

#[test]
fn cool_down_is_the_longest_of_the_pools_over_an_address_and_follows_them() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    let long = PoolSpec { cool_down_ms: 90_000, ..pool("q", "10.0.0.0/16") };
    bench.apply(Command::CreatePool(long.clone())).unwrap();
    bench.add(add("a", 1, &["p"])).unwrap();
    bench.del("a", 2);
    bench.pass(60_000);
    let resting = |bench: &Bench| {
        matches!(bench.state.address("default", ip("10.0.0.1")), AddressStatus::Cooling(_))
    };
    bench.apply(reservation("10.9.0.1", "10.9.0.1", None)).unwrap();
    assert!(resting(&bench));
    let shorter = PoolSpec { cool_down_ms: 60_001, ..long };
    bench.apply(Command::UpdatePool { spec: shorter, if_revision: None }).unwrap();
    assert!(resting(&bench));
    let mut later = Bench { state: bench.state.clone(), ms: bench.ms + 1, ..Bench::new() };
    later.apply(reservation("10.9.0.2", "10.9.0.2", None)).unwrap();
    assert!(!resting(&later));
    bench.apply(Command::DeletePool(key("q"))).unwrap();
    assert!(!resting(&bench));
}

#[test]
fn collect_wants_the_same_node_machine_revision_and_nothing_newer() {
    let mut bench = Bench::with_pool("10.0.0.0/24");
    bench.add(add("a", 5, &["p"])).unwrap();
    let revision = bench.state.allocation(&attachment("a")).unwrap().revision;
    let right = Collect {
        node: attachment("a").node,
        stamp: stamp(6),
        machine_id: "m".into(),
        victims: vec![(attachment("a"), revision)],
        ..Collect::default()
    };
    let other_node = NodeKey { cluster: "k".into(), name: "other".into() };
    let wrong = [
        Collect { node: other_node, ..right.clone() },
        Collect { stamp: stamp(4), ..right.clone() },
        Collect { machine_id: "other".into(), ..right.clone() },
        Collect { machine_id: String::new(), ..right.clone() },
        Collect { victims: vec![(attachment("a"), Revision::default())], ..right.clone() },
    ];
    for collect in wrong {
        let outcome = bench.apply(Command::Collect(collect));
        assert_eq!(outcome, Ok(Done::Collected(Vec::new())));
    }
    let outcome = bench.apply(Command::Collect(right));
    assert_eq!(outcome, Ok(Done::Collected(vec![attachment("a")])));
    assert_eq!(bench.add(add("a", 6, &["p"])), Err(Refusal::Fenced { fence: stamp(6) }));
}

#[test]
fn a_whole_family_is_a_pool_like_any_other() {
    let mut bench = Bench::new();
    for (cidr, first, last) in [
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
    ] {
        let spec = PoolSpec { whole_prefix: true, order: Order::Sequential, ..pool(cidr, cidr) };
        bench.apply(Command::CreatePool(spec)).unwrap();
        assert_eq!(bench.add(add(&format!("1 {cidr}"), 1, &[cidr])), ok(&[first]));
        let request = asking(&[last], add(&format!("2 {cidr}"), 1, &[cidr]));
        assert_eq!(bench.add(request), ok(&[last]));
        assert!(bench.add(add(&format!("3 {cidr}"), 1, &[cidr])).is_ok());
        let counters = bench.state.counters(&key(cidr)).unwrap();
        assert_eq!(counters.allocated, 3);
        assert!(counters.capacity >= 1 << 32);
    }
}
