//! The retry policy, against replicas that follow a script.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a panic is the failed test")]
#![allow(clippy::needless_update, reason = "some responses have nothing but a header")]

mod fake;

use std::time::{Duration, Instant};

use fake::{First, Relay};
use fake::{OK, Replica, Step, black_hole, closed_port};
use quorate_client::{CallError, Client, Effect, Endpoint, Options, Reason};
use quorate_proto::v1;
use tonic::Code;

/// Enough for any call that is going to succeed on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);
/// For calls that are going to fail: each such test takes this long.
const SHORT: Duration = Duration::from_millis(300);
/// More than a busy machine delays a timer; far less than any other limit here.
const SLACK: Duration = Duration::from_secs(5);

/// A client that asks `first` first: the others are in random order.
fn client(first: &Endpoint, others: &[&Endpoint], tune: impl FnOnce(&mut Options)) -> Client {
    let folder = tempfile::tempdir().unwrap();
    let hint_file = folder.path().join("leader");
    std::fs::write(&hint_file, format!("{first}\n")).unwrap();
    let endpoints = others.iter().copied().chain([first]).cloned().collect();
    let mut options = Options::new(endpoints);
    options.hint_file = Some(hint_file);
    tune(&mut options);
    Client::new(options).unwrap()
}

async fn allocate(client: &Client, budget: Duration) -> Result<v1::AllocateResponse, CallError> {
    client.allocate(v1::AllocateRequest::default(), budget).await
}

async fn ping(client: &Client, budget: Duration) -> Result<v1::PingResponse, CallError> {
    client.ping(v1::PingRequest::default(), budget).await
}

#[tokio::test]
async fn the_named_leader_is_asked_next_and_stored_for_the_next_process() {
    let follower = Replica::start("q1", &[Step::Leader("q2", "10.9.9.9:1")]).await;
    let leader = Replica::start("q2", &[OK]).await;
    let folder = tempfile::tempdir().unwrap();
    let hint_file = folder.path().join("leader");
    std::fs::write(&hint_file, format!("{}\n", follower.endpoint)).unwrap();
    let endpoints = vec![leader.endpoint.clone(), follower.endpoint.clone()];
    let options =
        || Options { hint_file: Some(hint_file.clone()), ..Options::new(endpoints.clone()) };

    let first = Client::new(options()).unwrap();
    for _ in 0..3 {
        ping(&first, AMPLE).await.unwrap();
    }
    assert_eq!((follower.calls(), leader.calls()), (1, 2));
    let written = std::fs::read_to_string(&hint_file).unwrap();
    // By its name among the endpoints, not the address that it advertises.
    assert_eq!(written, format!("{}\n", leader.endpoint));

    let second = Client::new(options()).unwrap();
    ping(&second, AMPLE).await.unwrap();
    assert_eq!((follower.calls(), leader.calls()), (1, 3));
}

#[tokio::test]
async fn a_leader_that_is_not_listed_is_reached_at_its_address() {
    let leader = Replica::start("q2", &[OK]).await;
    let address: &'static str = leader.endpoint.address.clone().leak();
    let follower = Replica::start("q1", &[Step::Leader("q2", address)]).await;
    let client = client(&follower.endpoint, &[], |_| {});
    ping(&client, AMPLE).await.unwrap();
    ping(&client, AMPLE).await.unwrap();
    assert_eq!((follower.calls(), leader.calls()), (1, 1));
}

#[tokio::test]
async fn a_refusal_is_returned_at_once_with_all_that_it_says() {
    let refuse = Step::Fail(Code::ResourceExhausted, Reason::PoolExhausted);
    let first = Replica::start("q1", &[refuse]).await;
    let other = Replica::start("q2", &[OK]).await;
    let client = client(&first.endpoint, &[&other.endpoint], |_| {});
    let error = allocate(&client, AMPLE).await.unwrap_err();
    assert_eq!(error.code, Code::ResourceExhausted);
    assert_eq!(error.reason, Some(Reason::PoolExhausted));
    assert_eq!(error.message, "scripted ResourceExhausted");
    assert_eq!(error.metadata["address"], "10.0.0.7");
    assert_eq!(error.attempts, 1);
    assert_eq!(error.effect, Effect::Refused);
    assert_eq!(error.endpoint, first.endpoint.to_string());
    assert_eq!((first.calls(), other.calls()), (1, 0));
}

#[tokio::test]
async fn what_was_not_proposed_is_repeated_until_it_succeeds() {
    let no_leader = Step::Fail(Code::Unavailable, Reason::NoLeader);
    let overloaded = Step::Fail(Code::ResourceExhausted, Reason::Overloaded);
    let replica = Replica::start("q1", &[no_leader, overloaded, no_leader, OK]).await;
    // An RPC that may be sent once only, since nothing was proposed.
    let client = client(&replica.endpoint, &[], |_| {});
    client.delete_pool(v1::DeletePoolRequest::default(), AMPLE).await.unwrap();
    assert_eq!(replica.calls(), 4);
}

#[tokio::test]
async fn what_is_never_proposed_ends_with_the_budget_and_says_why() {
    let replica = Replica::start("q1", &[Step::Fail(Code::Unavailable, Reason::NoLeader)]).await;
    let client = client(&replica.endpoint, &[], |_| {});
    let started = Instant::now();
    let error = allocate(&client, SHORT).await.unwrap_err();
    assert!(started.elapsed() < SHORT + SLACK);
    assert_eq!(error.reason, Some(Reason::NoLeader));
    assert!(error.message.contains("scripted Unavailable"), "{error}");
    assert!(error.attempts >= 2, "{error}");
    // Back-off: without it a loopback server answers thousands of times in this budget.
    assert!(error.attempts < 100, "{error}");
}

#[tokio::test]
async fn what_is_never_proposed_is_known_to_be_nothing() {
    let overloaded = Step::Fail(Code::ResourceExhausted, Reason::Overloaded);
    let replica = Replica::start("q1", &[overloaded]).await;
    let client = client(&replica.endpoint, &[], |options| options.max_attempts = Some(4));
    let error = allocate(&client, AMPLE).await.unwrap_err();
    assert_eq!((error.code, error.reason), (Code::ResourceExhausted, Some(Reason::Overloaded)));
    assert_eq!((error.effect, error.attempts), (Effect::NotProposed, 4), "{error}");
}

#[tokio::test]
async fn the_budget_is_kept_where_nobody_answers() {
    let hole = black_hole("q1").await;
    let client = client(&hole, &[], |_| {});
    let started = Instant::now();
    let error = allocate(&client, SHORT).await.unwrap_err();
    let took = started.elapsed();
    assert!(SHORT <= took && took < SHORT + SLACK, "{took:?}");
    assert_eq!((error.code, error.reason), (Code::DeadlineExceeded, None));
    assert_eq!((error.effect, error.attempts), (Effect::Unknown, 1), "{error}");
    assert_eq!(error.endpoint, hole.to_string());
}

#[tokio::test]
async fn a_read_without_an_answer_has_changed_nothing() {
    let client = client(&black_hole("q1").await, &[], |_| {});
    let error = ping(&client, SHORT).await.unwrap_err();
    assert_eq!((error.code, error.effect), (Code::DeadlineExceeded, Effect::NotProposed));
}

#[tokio::test]
async fn a_closed_port_proves_that_nothing_was_sent() {
    let client = client(&closed_port("q1").await, &[], |_| {});
    let started = Instant::now();
    let error = client.update_pool(v1::UpdatePoolRequest::default(), SHORT).await.unwrap_err();
    assert!(started.elapsed() < SHORT + SLACK);
    assert_eq!((error.code, error.effect), (Code::Unavailable, Effect::NotProposed), "{error}");
    assert!(error.message.contains("no connection"), "{error}");
    assert!(error.message.contains("refused"), "{error}");
    assert!(error.attempts >= 2, "{error}");
}

#[tokio::test]
async fn after_a_closed_port_the_next_replica_is_asked_at_once() {
    let replica = Replica::start("q2", &[OK]).await;
    let client = client(&closed_port("q1").await, &[&replica.endpoint], |_| {});
    client.update_pool(v1::UpdatePoolRequest::default(), AMPLE).await.unwrap();
    assert_eq!(replica.calls(), 1);
}

#[tokio::test]
async fn a_hedge_wins_where_the_first_replica_hangs() {
    let first = Replica::start("q1", &[Step::Hang]).await;
    let second = Replica::start("q2", &[OK]).await;
    let client = client(&first.endpoint, &[&second.endpoint], |options| {
        options.hedge_after = Some(Duration::from_millis(20));
    });
    allocate(&client, AMPLE).await.unwrap();
    assert_eq!((first.calls(), second.calls()), (1, 1));
}

#[tokio::test]
async fn a_refusal_beside_a_hanging_attempt_leaves_the_outcome_unknown() {
    let first = Replica::start("q1", &[Step::Hang]).await;
    let refuse = Step::Fail(Code::ResourceExhausted, Reason::PoolExhausted);
    let second = Replica::start("q2", &[refuse]).await;
    let client = client(&first.endpoint, &[&second.endpoint], |options| {
        options.hedge_after = Some(Duration::from_millis(20));
    });
    let error = allocate(&client, AMPLE).await.unwrap_err();
    assert_eq!(error.reason, Some(Reason::PoolExhausted));
    assert_eq!((error.effect, error.attempts), (Effect::Unknown, 2));
}

#[tokio::test]
async fn at_most_two_requests_are_in_flight() {
    let mut replicas = Vec::new();
    for name in ["q1", "q2", "q3", "q4"] {
        replicas.push(Replica::start(name, &[Step::Hang]).await);
    }
    let endpoints = replicas.iter().map(|replica| replica.endpoint.clone()).collect();
    let mut options = Options::new(endpoints);
    options.hedge_after = Some(Duration::from_millis(1));
    let error = allocate(&Client::new(options).unwrap(), SHORT).await.unwrap_err();
    assert_eq!((error.attempts, error.effect), (2, Effect::Unknown));
    // On a busy machine the second may not have arrived when the budget ended.
    assert!(replicas.iter().map(Replica::calls).sum::<usize>() <= 2);
}

#[tokio::test]
async fn a_replica_that_hangs_does_not_take_the_attempts_of_the_others() {
    let first = Replica::start("q1", &[Step::Hang]).await;
    let no_leader = Step::Fail(Code::Unavailable, Reason::NoLeader);
    let second = Replica::start("q2", &[no_leader, no_leader, no_leader, OK]).await;
    let client = client(&first.endpoint, &[&second.endpoint], |options| {
        options.hedge_after = Some(Duration::from_millis(20));
    });
    ping(&client, AMPLE).await.unwrap();
    assert_eq!((first.calls(), second.calls()), (1, 4));
}

#[tokio::test]
async fn an_unknown_outcome_is_repeated_only_where_that_is_safe() {
    for step in [
        Step::Fail(Code::Unavailable, Reason::NoMajority),
        Step::Fail(Code::Internal, Reason::StorageFailed),
        Step::Bare(Code::Unavailable),
        Step::Bare(Code::DeadlineExceeded),
        Step::Bare(Code::Cancelled),
        Step::Bare(Code::Internal),
    ] {
        let replica = Replica::start("q1", &[step, OK]).await;
        let once = client(&replica.endpoint, &[], |_| {});
        let error = once.update_pool(v1::UpdatePoolRequest::default(), AMPLE).await.unwrap_err();
        assert_eq!((error.effect, error.attempts), (Effect::Unknown, 1), "{step:?}");
        assert_eq!(replica.calls(), 1, "{step:?}");

        let replica = Replica::start("q1", &[step, OK]).await;
        let safe = client(&replica.endpoint, &[], |_| {});
        safe.create_pool(v1::CreatePoolRequest::default(), AMPLE).await.unwrap();
        assert_eq!(replica.calls(), 2, "{step:?}");
    }
}

#[tokio::test]
async fn once_rpcs_are_not_hedged() {
    let first = Replica::start("q1", &[Step::Hang]).await;
    let second = Replica::start("q2", &[OK]).await;
    let client = client(&first.endpoint, &[&second.endpoint], |options| {
        options.hedge_after = Some(Duration::from_millis(1));
    });
    let error = client.init_cluster(v1::InitClusterRequest::default(), SHORT).await.unwrap_err();
    assert_eq!((error.effect, error.attempts), (Effect::Unknown, 1));
    assert_eq!(second.calls(), 0);
}

#[tokio::test]
async fn attempts_can_be_capped_in_number_and_time() {
    let hole = black_hole("q1").await;
    let capped = client(&hole, &[], |options| {
        options.attempt_timeout = Some(Duration::from_millis(20));
        options.max_attempts = Some(3);
    });
    let error = allocate(&capped, AMPLE).await.unwrap_err();
    assert_eq!((error.attempts, error.effect), (3, Effect::Unknown));

    let closed = client(&closed_port("q1").await, &[], |options| options.max_attempts = Some(1));
    let error = allocate(&closed, AMPLE).await.unwrap_err();
    assert_eq!((error.attempts, error.effect), (1, Effect::NotProposed));
    assert_eq!(error.code, Code::Unavailable);
}

#[tokio::test]
async fn requests_carry_incarnation_deadline_and_trace() {
    let replica = Replica::start("q1", &[OK]).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let client = client(&replica.endpoint, &[], |options| {
        options.incarnation = "pinned".into();
        options.traceparent = Some(trace.into());
    });
    let own = Some(v1::Caller { incarnation: "own".into() });
    client.release(v1::ReleaseRequest::default(), AMPLE).await.unwrap();
    client.abort(v1::AbortRequest { caller: own, ..Default::default() }, AMPLE).await.unwrap();
    client.get_pool(v1::GetPoolRequest::default(), AMPLE).await.unwrap();
    let seen = replica.seen();
    let told: Vec<_> = seen.iter().map(|seen| (seen.rpc, seen.incarnation.as_str())).collect();
    assert_eq!(told, [("release", "pinned"), ("abort", "own"), ("get_pool", "")]);
    for call in &seen {
        assert_eq!(call.metadata.get("traceparent").unwrap(), trace);
        let timeout = call.metadata.get("grpc-timeout").unwrap().to_str().unwrap();
        // In microseconds, since 30 s of nanoseconds do not fit into eight digits.
        let micros: u128 = timeout.strip_suffix('u').unwrap().parse().unwrap();
        assert!(micros <= AMPLE.as_micros() && micros > AMPLE.as_micros() / 2, "{timeout}");
    }
}

#[tokio::test]
async fn status_of_asks_that_replica_once_and_believes_no_one() {
    let leader = Replica::start("q1", &[OK]).await;
    let other =
        Replica::start("q2", &[Step::Leader("q2", ""), Step::Bare(Code::Unavailable)]).await;
    let client = client(&leader.endpoint, &[&other.endpoint], |_| {});
    client.status_of(&other.endpoint, AMPLE).await.unwrap();
    let error = client.status_of(&other.endpoint, AMPLE).await.unwrap_err();
    assert_eq!((error.attempts, other.calls()), (1, 2));
    ping(&client, AMPLE).await.unwrap();
    assert_eq!(leader.calls(), 1);
}

#[tokio::test]
async fn a_connection_that_broke_is_made_anew() {
    let replica = Replica::start("q1", &[OK]).await;
    let relay = Relay::start(&replica.endpoint, First::Forward).await;
    let client = client(&relay.endpoint, &[], |_| {});
    ping(&client, AMPLE).await.unwrap();
    ping(&client, AMPLE).await.unwrap();
    assert_eq!(relay.accepted(), 1);
    relay.cut();
    ping(&client, AMPLE).await.unwrap();
    assert_eq!((relay.accepted(), replica.calls()), (2, 3));
}

#[tokio::test]
async fn a_connection_that_did_not_answer_is_not_trusted_again() {
    let replica = Replica::start("q1", &[OK]).await;
    let relay = Relay::start(&replica.endpoint, First::Swallow).await;
    let client = client(&relay.endpoint, &[], |options| {
        options.attempt_timeout = Some(Duration::from_secs(1));
        // Long before keep-alive would have found out.
        options.max_attempts = Some(2);
    });
    ping(&client, AMPLE).await.unwrap();
    assert_eq!(relay.accepted(), 2);
}

#[test]
fn errors_read_as_sentences() {
    let error = CallError {
        code: Code::ResourceExhausted,
        reason: Some(Reason::PoolExhausted),
        message: "no free address for slot 0".into(),
        metadata: [].into(),
        attempts: 1,
        effect: Effect::Refused,
        endpoint: "q1=h:1".into(),
    };
    assert_eq!(error.to_string(), "no free address for slot 0 (POOL_EXHAUSTED from q1=h:1)");
    let unknown = CallError {
        code: Code::DeadlineExceeded,
        reason: None,
        message: "no answer within 10s".into(),
        attempts: 2,
        effect: Effect::Unknown,
        ..error
    };
    assert_eq!(
        unknown.to_string(),
        "no answer within 10s (DEADLINE_EXCEEDED from q1=h:1, 2 attempts; it may or may not have \
         taken effect)"
    );
}
