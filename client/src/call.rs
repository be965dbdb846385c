//! The policy: attempts, back-off, hedging, all within one budget.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use quorate_proto::reason::Effect;
use rand::Rng as _;
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::{Code, Request};

use crate::classify::{Failure, chain};
use crate::client::Shared;
use crate::endpoint::Endpoint;
use crate::error::CallError;
use crate::route::Route;
use crate::rpc::{Repeat, Rpc};

/// Back-off before the first repetition; it doubles with each.
const BACK_OFF_START: Duration = Duration::from_millis(10);
/// Where doubling ends: below a fail-over (0.5 to 0.7 s), so that the new leader is found soon.
const BACK_OFF_CAP: Duration = Duration::from_millis(250);
/// With less time left than this nothing is sent: it could hardly be answered, and would only make
/// the outcome unknown.
const LEAST_TIME: Duration = Duration::from_millis(5);
/// Attempts of one call that may be under way at once.
const MAX_IN_FLIGHT: usize = 2;

/// What differs between calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) max_attempts: Option<u32>,
    pub(crate) hedge_after: Option<Duration>,
}

/// A call to whichever replica answers, by the options of the client.
pub(crate) async fn any<R: Rpc>(
    shared: &Shared,
    request: R,
    budget: Duration,
) -> Result<R::Response, CallError> {
    let options = &shared.options;
    let route = Route::new(&options.endpoints, shared.hint.leader());
    let policy = Policy { max_attempts: options.max_attempts, hedge_after: options.hedge_after };
    let response = run(shared, request, budget, route, policy).await?;
    shared.hint.learn(R::header(&response), &options.endpoints);
    Ok(response)
}

/// A call along that route.
pub(crate) async fn run<R: Rpc>(
    shared: &Shared,
    mut request: R,
    budget: Duration,
    route: Route,
    policy: Policy,
) -> Result<R::Response, CallError> {
    pin(&mut request, &shared.options.incarnation);
    // A budget beyond what the clock can count is as good as a day.
    let now = Instant::now();
    let deadline = now.checked_add(budget).unwrap_or_else(|| now + Duration::from_secs(86_400));
    let unresolved = AtomicU32::new(0);
    let mut call = Call {
        shared,
        deadline,
        budget,
        policy,
        repeat: R::REPEAT,
        route,
        asked: Vec::new(),
        attempts: 0,
        waits: 0,
        unresolved: &unresolved,
        last: None,
    };
    // The outer limit, whatever the attempts do.
    match timeout_at(deadline, call.drive(&request)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(call.out_of_time()),
    }
}

fn pin<R: Rpc>(request: &mut R, incarnation: &str) {
    if incarnation.is_empty() {
        return;
    }
    if let Some(caller) = request.caller() {
        let caller = caller.get_or_insert_default();
        if caller.incarnation.is_empty() {
            incarnation.clone_into(&mut caller.incarnation);
        }
    }
}

/// One call under way.
struct Call<'a> {
    shared: &'a Shared,
    deadline: Instant,
    budget: Duration,
    policy: Policy,
    repeat: Repeat,
    route: Route,
    /// Replicas of the attempts in flight.
    asked: Vec<Endpoint>,
    attempts: u32,
    /// Repetitions that had to wait: back-off grows with them.
    waits: u32,
    /// Requests that were sent and of which nothing proves that they were not proposed.
    unresolved: &'a AtomicU32,
    /// The failure that says most of those so far: the last with a reason, else the last.
    last: Option<(Endpoint, Failure)>,
}

impl<'a> Call<'a> {
    /// Starts attempts until one decides the call, or none may follow.
    async fn drive<R: Rpc>(&mut self, request: &R) -> Result<R::Response, CallError> {
        let mut flights = FuturesUnordered::new();
        flights.push(self.launch(request));
        let mut next = self.hedge_at::<R>();
        loop {
            tokio::select! {
                Some((endpoint, result)) = flights.next() => {
                    let failure = match result {
                        Ok(response) => return Ok(response),
                        Err(failure) => failure,
                    };
                    self.asked.retain(|asked| *asked != endpoint);
                    tracing::debug!(%endpoint, ?failure, "attempt failed");
                    if ends::<R>(failure.effect) {
                        return Err(self.decided(&endpoint, failure));
                    }
                    next = self.repeat_at(&failure, next);
                    self.remember(endpoint, failure);
                }
                () = sleep_until(next.unwrap_or(self.deadline)), if next.is_some() => {
                    flights.push(self.launch(request));
                    next = self.hedge_at::<R>();
                }
                // Nothing in flight, and nothing may follow.
                else => return Err(self.given_up()),
            }
        }
    }

    fn launch<R: Rpc>(
        &mut self,
        request: &R,
    ) -> impl Future<Output = (Endpoint, Result<R::Response, Failure>)> + use<'a, R> {
        let endpoint = self.route.advance(&self.asked);
        self.attempts = self.attempts.saturating_add(1);
        self.asked.push(endpoint.clone());
        let (shared, unresolved, deadline) = (self.shared, self.unresolved, self.deadline);
        let request = request.clone();
        async move {
            let result = attempt(shared, unresolved, &endpoint, request, deadline).await;
            (endpoint, result)
        }
    }

    /// When another replica is asked as well, if none has answered by then.
    fn hedge_at<R: Rpc>(&self) -> Option<Instant> {
        let allowed = R::REPEAT != Repeat::Once
            && self.may_attempt()
            && self.asked.len() < MAX_IN_FLIGHT
            && self.route.has_other_than(&self.asked);
        Instant::now().checked_add(self.policy.hedge_after.filter(|_| allowed)?)
    }

    /// When the next attempt follows this failure. A replica that was not reached says nothing of
    /// the cluster, so one that was not asked yet is asked at once; a cluster that said no, or a
    /// second round, waits.
    fn repeat_at(&mut self, failure: &Failure, planned: Option<Instant>) -> Option<Instant> {
        if !self.may_attempt() {
            return None;
        }
        let now = Instant::now();
        let at = if failure.reason.is_none() && self.route.has_untried() {
            now
        } else {
            self.waits = self.waits.saturating_add(1);
            now + back_off(self.waits)
        };
        if at + LEAST_TIME > self.deadline {
            return planned;
        }
        Some(planned.map_or(at, |planned| planned.min(at)))
    }

    fn may_attempt(&self) -> bool {
        self.policy.max_attempts.is_none_or(|most| self.attempts < most)
    }

    fn remember(&mut self, endpoint: Endpoint, failure: Failure) {
        let says_more = |last: &Failure| failure.reason.is_some() || last.reason.is_none();
        if self.last.as_ref().is_none_or(|(_, last)| says_more(last)) {
            self.last = Some((endpoint, failure));
        }
    }

    /// What is proved of the call as a whole, if its last word proves `effect`.
    fn effect(&self, effect: Effect) -> Effect {
        match (self.repeat, effect) {
            (Repeat::Read, Effect::NotProposed | Effect::Unknown) => Effect::NotProposed,
            (Repeat::Read, Effect::Refused) => Effect::Refused,
            (Repeat::Idempotent | Repeat::Once, _) if self.unresolved() => Effect::Unknown,
            (Repeat::Idempotent | Repeat::Once, effect) => effect,
        }
    }

    /// Was a request sent of which it is not known whether it was proposed?
    fn unresolved(&self) -> bool {
        self.unresolved.load(Ordering::Relaxed) > 0
    }

    /// The end by an answer after which no other may be asked for.
    fn decided(&self, endpoint: &Endpoint, failure: Failure) -> CallError {
        CallError {
            code: failure.code,
            reason: failure.reason,
            message: failure.message,
            metadata: failure.metadata,
            attempts: self.attempts,
            effect: self.effect(failure.effect),
            endpoint: endpoint.to_string(),
        }
    }

    /// The end because no more attempts are allowed, or fit.
    fn given_up(&mut self) -> CallError {
        match self.last.take() {
            Some((endpoint, failure)) if !self.may_attempt() => self.decided(&endpoint, failure),
            last => {
                self.last = last;
                self.out_of_time()
            }
        }
    }

    /// The end because time is up.
    fn out_of_time(&mut self) -> CallError {
        let effect = self.effect(Effect::NotProposed);
        let budget = self.budget;
        let Some((endpoint, failure)) = self.last.take() else {
            return CallError {
                code: Code::DeadlineExceeded,
                reason: None,
                message: format!("no answer within {budget:.1?}"),
                metadata: BTreeMap::new(),
                attempts: self.attempts,
                effect,
                endpoint: self.asked.last().map(Endpoint::to_string).unwrap_or_default(),
            };
        };
        CallError {
            code: if self.unresolved() { Code::DeadlineExceeded } else { Code::Unavailable },
            message: format!("no success within {budget:.1?}; the last cause: {}", failure.message),
            ..self.decided(&endpoint, Failure { effect, ..failure })
        }
    }
}

/// Does that outcome of an attempt end the call?
fn ends<R: Rpc>(effect: Effect) -> bool {
    match (effect, R::REPEAT) {
        (Effect::Refused, _) | (Effect::Unknown, Repeat::Once) => true,
        (Effect::NotProposed, _) | (Effect::Unknown, Repeat::Read | Repeat::Idempotent) => false,
    }
}

/// Exponential, with full jitter: those that failed together do not come back together.
fn back_off(waits: u32) -> Duration {
    let doubled = BACK_OFF_START.saturating_mul(1 << waits.saturating_sub(1).min(16));
    rand::rng().random_range(Duration::ZERO..=doubled.min(BACK_OFF_CAP))
}

/// One request to one replica, within the attempt's and the call's time.
async fn attempt<R: Rpc>(
    shared: &Shared,
    unresolved: &AtomicU32,
    endpoint: &Endpoint,
    message: R,
    deadline: Instant,
) -> Result<R::Response, Failure> {
    let options = &shared.options;
    let started = Instant::now();
    let until = |limit: Duration| started.checked_add(limit).unwrap_or(deadline).min(deadline);
    let end = options.attempt_timeout.map_or(deadline, until);

    let connecting = shared.connections.get(endpoint, options.connect_timeout);
    let connected = until(options.connect_timeout).min(end);
    let channel = match timeout_at(connected, connecting).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => {
            // Its own words are only "transport error".
            let cause = error.source().map_or_else(|| error.to_string(), chain);
            return Err(Failure::not_connected(cause));
        }
        // The call is over, and what ends it says more than that this attempt was cut off.
        Err(_elapsed) if connected == deadline => return std::future::pending().await,
        Err(_elapsed) => {
            let waited = started.elapsed();
            return Err(Failure::not_connected(format!("none was made within {waited:.1?}")));
        }
    };

    let mut request = Request::new(message);
    request.set_timeout(end.saturating_duration_since(Instant::now()));
    if let Some(text) = &options.traceparent
        && let Ok(value) = text.parse()
    {
        request.metadata_mut().insert("traceparent", value);
    }
    // From here on it may have left.
    unresolved.fetch_add(1, Ordering::Relaxed);
    let failure = match timeout_at(end, R::send(channel, request)).await {
        Ok(Ok(response)) => return Ok(response),
        Ok(Err(status)) => Failure::from_status(&status),
        Err(_elapsed) if end == deadline => return std::future::pending().await,
        Err(_elapsed) => Failure::no_answer(started.elapsed()),
    };
    match failure.effect {
        Effect::Refused | Effect::NotProposed => {
            unresolved.fetch_sub(1, Ordering::Relaxed);
        }
        // The connection is not trusted again if it is what failed.
        Effect::Unknown if failure.reason.is_none() => shared.connections.forget(endpoint),
        Effect::Unknown => {}
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::{BACK_OFF_CAP, BACK_OFF_START, Effect, back_off, ends};
    use quorate_proto::v1;

    #[test]
    fn only_decisive_outcomes_end_a_call() {
        type Safe = v1::AllocateRequest;
        type Read = v1::PingRequest;
        type Once = v1::UpdatePoolRequest;
        assert!(ends::<Safe>(Effect::Refused) && ends::<Once>(Effect::Refused));
        assert!(!ends::<Safe>(Effect::NotProposed) && !ends::<Once>(Effect::NotProposed));
        assert!(ends::<Read>(Effect::Refused));
        assert!(!ends::<Read>(Effect::NotProposed) && !ends::<Read>(Effect::Unknown));
        assert!(!ends::<Safe>(Effect::Unknown));
        assert!(ends::<Once>(Effect::Unknown));
    }

    #[test]
    fn back_off_doubles_up_to_its_cap_with_full_jitter() {
        let longest = |waits| (0..2_000).map(|_| back_off(waits)).max().unwrap();
        for (waits, most) in
            [(1, BACK_OFF_START), (2, BACK_OFF_START * 2), (5, BACK_OFF_START * 16)]
        {
            // 2,000 draws all below nine tenths by chance: 0.9^2000.
            assert!(longest(waits) <= most && longest(waits) > most * 9 / 10, "{waits}");
        }
        assert!(longest(u32::MAX) <= BACK_OFF_CAP);
    }
}
