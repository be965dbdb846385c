//! The edge of the service: what it says to requests that are wrong, and what every answer carries.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use quorate_client::{CallError, Client};
use quorate_jepsen::cluster::{Cluster, Config};
use quorate_jepsen::requests::{allocate, attachment, release};
use quorate_proto::reason::{Effect, Reason};
use quorate_proto::v1::{
    self, AllocateRequest, CreatePoolRequest, InlineRange, PoolChoice, PoolSpec, Slot,
    pool_choice::Choice,
};
use tonic::Code;

const BUDGET: Duration = Duration::from_secs(5);

async fn one_replica() -> Result<Cluster> {
    Cluster::start(Config { replicas: 1, ..Config::default() }).await
}

fn good() -> AllocateRequest {
    allocate(&attachment("node-1", "blue", "web"), "blue")
}

fn inline(range: InlineRange) -> AllocateRequest {
    let choice = PoolChoice { choice: Some(Choice::Range(range)) };
    AllocateRequest { slots: vec![Slot { choices: vec![choice] }], ..good() }
}

fn cidr(cidr: &str) -> InlineRange {
    InlineRange { cidr: cidr.to_owned(), ..InlineRange::default() }
}

fn with(change: impl FnOnce(&mut AllocateRequest)) -> AllocateRequest {
    let mut request = good();
    change(&mut request);
    request
}

fn of(change: impl FnOnce(&mut v1::Attachment)) -> AllocateRequest {
    with(|request| change(request.attachment.get_or_insert_default()))
}

fn at_epoch(epoch: u64) -> AllocateRequest {
    with(|request| request.stamp.get_or_insert_default().epoch = epoch)
}

/// A request and the field that its refusal must name.
fn malformed() -> Vec<(&'static str, AllocateRequest)> {
    vec![
        ("attachment", with(|r| r.attachment = None)),
        ("attachment.node", of(|a| a.node = None)),
        ("attachment.container_id", of(|a| a.container_id = "a b".to_owned())),
        ("attachment.ifname", of(|a| a.ifname = String::new())),
        ("attachment.network", of(|a| a.network = "x".repeat(300))),
        ("stamp", with(|r| r.stamp = None)),
        ("stamp.epoch", at_epoch(0)),
        ("stamp.epoch", at_epoch(u64::MAX)),
        ("slots", with(|r| r.slots.clear())),
        ("slots", with(|r| r.slots = vec![r.slots[0].clone(); 17])),
        ("slots[0].choices", with(|r| r.slots[0].choices.clear())),
        ("slots[0].choices[0]", with(|r| r.slots[0].choices[0].choice = None)),
        ("requested[0]", with(|r| r.requested = vec!["10.0.0".to_owned()])),
        ("requested", with(|r| r.requested = vec!["10.0.0.1".to_owned(); 1000])),
        ("slots[0].choices[0].range.cidr", inline(cidr("10.1.2.5/24"))),
        ("slots[0].choices[0].range.cidr", inline(cidr("10.1.2.0/99"))),
        (
            "slots[0].choices[0].range.exclude[0]",
            inline(InlineRange { exclude: vec!["192.168.0.1/123".into()], ..cidr("10.1.2.0/24") }),
        ),
        (
            "slots[0].choices[0].range.first",
            inline(InlineRange { first: "not-an-ip".into(), ..cidr("10.1.2.0/24") }),
        ),
    ]
}

fn refused(error: &CallError, code: Code, reason: Reason) -> Result<()> {
    ensure!(error.code == code && error.reason == Some(reason), "{error:?}");
    ensure!(error.effect == Effect::Refused && error.attempts == 1, "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_is_told_its_field() -> Result<()> {
    let cluster = one_replica().await?;
    for (field, request) in malformed() {
        let Err(error) = cluster.client().allocate(request, BUDGET).await else {
            bail!("{field}: accepted");
        };
        refused(&error, Code::InvalidArgument, Reason::InvalidArgument).context(field)?;
        let named = error.metadata.get("field").map(String::as_str);
        ensure!(named == Some(field), "expected {field}: {error:?}");
    }
    let all = quorate_jepsen::left::addresses(cluster.client()).await?;
    ensure!(all.is_empty(), "{all:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_makes_no_sense_is_told_why() -> Result<()> {
    let cluster = one_replica().await?;
    let client = cluster.client();
    let cases = [
        (inline(cidr("10.1.2.0/31")), Code::InvalidArgument, Reason::InvalidArgument),
        (
            inline(InlineRange {
                first: "10.1.2.9".into(),
                last: "10.1.2.3".into(),
                ..cidr("10.1.2.0/24")
            }),
            Code::InvalidArgument,
            Reason::InvalidArgument,
        ),
        (good(), Code::NotFound, Reason::PoolNotFound),
        (
            AllocateRequest { requested: vec!["10.9.9.9".into()], ..inline(cidr("10.1.2.0/24")) },
            Code::OutOfRange,
            Reason::AddressOutsidePools,
        ),
    ];
    for (request, code, reason) in cases {
        let Err(error) = client.allocate(request, BUDGET).await else { bail!("accepted") };
        refused(&error, code, reason)?;
    }
    let bad =
        PoolSpec { name: "10.9.0.0/16".into(), cidr: "10.8.0.0/16".into(), ..PoolSpec::default() };
    let request = CreatePoolRequest { spec: Some(bad) };
    let Err(error) = client.create_pool(request, BUDGET).await else { bail!("accepted") };
    ensure!(error.metadata.get("field").is_some_and(|field| field == "spec.name"), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_large_is_refused_and_the_replica_lives() -> Result<()> {
    let cluster = one_replica().await?;
    let request = AllocateRequest { boot_id: "x".repeat(5 << 20), ..good() };
    let Err(error) = cluster.client().allocate(request, BUDGET).await else { bail!("accepted") };
    refused(&error, Code::InvalidArgument, Reason::InvalidArgument)?;
    cluster.client().ping(v1::PingRequest::default(), BUDGET).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_its_revision_and_the_leader() -> Result<()> {
    let cluster = Cluster::start(Config::default()).await?;
    let client = cluster.client();
    let web = attachment("node-1", "blue", "web");
    let spec = PoolSpec { name: "blue".into(), cidr: "10.2.0.0/24".into(), ..PoolSpec::default() };
    let created = client.create_pool(CreatePoolRequest { spec: Some(spec) }, BUDGET).await?;
    let allocated = client.allocate(allocate(&web, "blue"), BUDGET).await?;
    let listed = client.list_pools(v1::ListPoolsRequest::default(), BUDGET).await?;
    let released = client.release(release(&web), BUDGET).await?;
    let headers = [created.header, allocated.header, listed.header, released.header];
    let mut before = (0, 0);
    for header in headers {
        let header = header.context("no header")?;
        let revision = header.revision.context("no revision")?;
        let revision = (revision.index, revision.position);
        ensure!(revision >= before && revision.0 > 0, "{revision:?} after {before:?}");
        ensure!(!header.leader.is_empty() && !header.incarnation.is_empty(), "{header:?}");
        before = revision;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_incarnation_is_refused_naming_both() -> Result<()> {
    let cluster = one_replica().await?;
    let mut options = quorate_client::Options::new(cluster.endpoints());
    options.incarnation = "of-another-life".to_owned();
    let stranger = Client::new(options)?;
    let Err(error) = stranger.allocate(inline(cidr("10.1.2.0/24")), BUDGET).await else {
        bail!("accepted");
    };
    refused(&error, Code::FailedPrecondition, Reason::WrongIncarnation)?;
    ensure!(error.message.contains("of-another-life"), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_whole_over_their_pages() -> Result<()> {
    let cluster = one_replica().await?;
    let client = cluster.client();
    for number in 0..25 {
        let web = attachment("node-1", "blue", &format!("web-{number}"));
        let request = AllocateRequest {
            attachment: Some(web),
            stamp: Some(quorate_jepsen::requests::stamp()),
            ..inline(cidr("10.1.2.0/24"))
        };
        client.allocate(request, BUDGET).await?;
    }
    let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let request = v1::ListAddressesRequest {
            page_size: 10,
            page_token: token,
            ..v1::ListAddressesRequest::default()
        };
        let answer = client.list_addresses(request, BUDGET).await?;
        seen.extend(answer.addresses.into_iter().map(|info| info.address));
        pages += 1;
        token = answer.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (1..=25).map(|last| format!("10.1.2.{last}")).collect();
    ensure!(seen == expected && pages == 3, "{pages} pages: {seen:?}");
    Ok(())
}

/// The status line and the body of a GET, spoken by hand.
fn get(address: &str, path: &str) -> Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(BUDGET))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no end of the head")?;
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn http_says_whether_it_lives_and_is_ready_and_what_it_counts() -> Result<()> {
    let unborn = Cluster::start(Config { replicas: 1, born: false, ..Config::default() }).await?;
    let (status, body) = get(unborn.http(0), "/readyz")?;
    ensure!(status.contains("503") && body.contains("cluster init"), "{status} {body}");
    ensure!(get(unborn.http(0), "/livez")?.0.contains("200"));

    let cluster = one_replica().await?;
    cluster.client().allocate(inline(cidr("10.1.2.0/24")), BUDGET).await?;
    ensure!(get(cluster.http(0), "/readyz")?.0.contains("200"));
    let (status, metrics) = get(cluster.http(0), "/metrics")?;
    ensure!(status.contains("200"), "{status}");
    for line in [
        "quorate_calls_total{method=\"Ipam/Allocate\",code=\"0\"} 1",
        "quorate_raft_is_leader 1",
        "quorate_allocations 1",
        "quorate_pool_allocated{space=\"default\",pool=\"10.1.2.0/24\"} 1",
    ] {
        ensure!(metrics.lines().any(|found| found == line), "no {line} in\n{metrics}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_tools_find_health_and_the_services() -> Result<()> {
    use tonic_health::pb::health_client::HealthClient;
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

    let cluster = one_replica().await?;
    let address = format!("http://{}", cluster.endpoint(0).address);
    let channel = tonic::transport::Endpoint::from_shared(address)?.connect().await?;
    let request = HealthCheckRequest { service: "quorate.v1.Ipam".to_owned() };
    let health = HealthClient::new(channel.clone()).check(request).await?.into_inner();
    ensure!(health.status() == ServingStatus::Serving, "{health:?}");

    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = ServerReflectionClient::new(channel)
        .server_reflection_info(futures::stream::iter([list]))
        .await?;
    let answer: Option<ServerReflectionResponse> = answers.into_inner().message().await?;
    let Some(MessageResponse::ListServicesResponse(services)) =
        answer.and_then(|answer| answer.message_response)
    else {
        bail!("no list of services");
    };
    let names: Vec<String> = services.service.into_iter().map(|service| service.name).collect();
    for name in ["quorate.v1.Ipam", "quorate.v1.Admin", "grpc.health.v1.Health"] {
        ensure!(names.iter().any(|found| found == name), "{names:?}");
    }
    Ok(())
}
