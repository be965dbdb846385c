//! An `Ipam` server that keeps what it is told, and answers as the test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use quorate_proto::reason::{DOMAIN, Reason};
use quorate_proto::v1;
use quorate_proto::v1::ipam_server::{Ipam, IpamServer};
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Allocate(Box<v1::AllocateRequest>),
    Release(v1::ReleaseRequest),
    Abort(v1::AbortRequest),
    Collect(v1::CollectRequest),
    List,
    Get,
    Ping,
}

impl Call {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Call::Allocate(_) => "allocate",
            Call::Release(_) => "release",
            Call::Abort(_) => "abort",
            Call::Collect(_) => "collect",
            Call::List => "list",
            Call::Get => "get",
            Call::Ping => "ping",
        }
    }
}

/// What to do with a request.
pub(crate) enum Reply {
    /// As a healthy cluster would.
    Healthy,
    /// Never answer.
    Silence,
    /// Healthy, but that much later.
    After(Duration),
    /// An error with a reason.
    Refuse(Code, Reason, Vec<(&'static str, &'static str)>),
    /// Addresses as they are, whatever was asked for.
    Addresses(Vec<v1::Address>),
}

type Script = Box<dyn FnMut(&Call) -> Reply + Send>;

struct Shared {
    script: Mutex<Script>,
    calls: Mutex<Vec<Call>>,
    allocations: Mutex<BTreeMap<String, v1::Allocation>>,
}

/// Stops when it is dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn healthy() -> Server {
        Server::with(|_| Reply::Healthy)
    }

    pub(crate) fn with(script: impl FnMut(&Call) -> Reply + Send + 'static) -> Server {
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            calls: Mutex::default(),
            allocations: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let service = Service(Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = tonic::transport::Server::builder()
                    .add_service(IpamServer::new(service))
                    .serve_with_incoming(TcpListenerStream::new(listener));
                // Whatever is still unanswered is cut off.
                tokio::select! {
                    served = serving => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Server { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Requests so far, in order of arrival.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// Their names, joined by blanks.
    pub(crate) fn names(&self) -> String {
        self.calls().iter().map(Call::name).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn set_script(&self, script: impl FnMut(&Call) -> Reply + Send + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// What attachments hold.
    pub(crate) fn allocations(&self) -> Vec<v1::Allocation> {
        self.shared.allocations.lock().unwrap().values().cloned().collect()
    }

    pub(crate) fn insert(&self, allocation: v1::Allocation) {
        let key = key(allocation.attachment.as_ref());
        self.shared.allocations.lock().unwrap().insert(key, allocation);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dropping the sender is the signal.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn key(attachment: Option<&v1::Attachment>) -> String {
    let attachment = attachment.cloned().unwrap_or_default();
    let node = attachment.node.unwrap_or_default();
    let parts =
        [node.cluster, node.name, attachment.network, attachment.container_id, attachment.ifname];
    parts.join(" ")
}

struct Service(Arc<Shared>);

impl Service {
    /// `Ok(None)` means: go on as a healthy cluster.
    async fn scripted(&self, call: Call) -> Result<Option<Vec<v1::Address>>, Status> {
        let reply = (self.0.script.lock().unwrap())(&call);
        self.0.calls.lock().unwrap().push(call);
        match reply {
            Reply::Healthy => Ok(None),
            Reply::Silence => std::future::pending().await,
            Reply::After(time) => {
                tokio::time::sleep(time).await;
                Ok(None)
            }
            Reply::Refuse(code, reason, metadata) => {
                let mut details = ErrorDetails::new();
                let pairs = metadata.iter().map(|(key, value)| ((*key).into(), (*value).into()));
                details.set_error_info(
                    reason.as_str(),
                    DOMAIN,
                    pairs.collect::<std::collections::HashMap<String, String>>(),
                );
                Err(Status::with_error_details(code, "in the server's words", details))
            }
            Reply::Addresses(addresses) => Ok(Some(addresses)),
        }
    }

    fn remove(&self, attachment: Option<&v1::Attachment>) -> Vec<String> {
        let gone = self.0.allocations.lock().unwrap().remove(&key(attachment));
        let addresses = gone.map(|gone| gone.addresses).unwrap_or_default();
        addresses.iter().map(|held| held.cidr.split('/').next().unwrap().to_owned()).collect()
    }
}

/// The fifth address of each slot's first range; a named pool is 10.9.0.0/16.
fn addresses(request: &v1::AllocateRequest) -> Vec<v1::Address> {
    let of_slot = |slot: &v1::Slot| {
        use v1::pool_choice::Choice;
        match slot.choices[0].choice.as_ref().unwrap() {
            Choice::Pool(name) => v1::Address {
                cidr: "10.9.0.5/16".into(),
                gateway: "10.9.0.1".into(),
                pool: name.clone(),
                space: "default".into(),
                routes: vec![v1::Route { dst: "10.0.0.0/8".into(), ..v1::Route::default() }],
                dns: Some(v1::Dns { nameservers: vec!["10.9.0.2".into()], ..v1::Dns::default() }),
            },
            Choice::Range(range) => {
                let (network, length) = range.cidr.split_once('/').unwrap();
                let first: std::net::IpAddr = network.parse().unwrap();
                let fifth: std::net::IpAddr = match first {
                    std::net::IpAddr::V4(ip) => std::net::Ipv4Addr::from(u32::from(ip) + 5).into(),
                    std::net::IpAddr::V6(ip) => std::net::Ipv6Addr::from(u128::from(ip) + 5).into(),
                };
                v1::Address {
                    cidr: format!("{fifth}/{length}"),
                    gateway: range.gateway.clone(),
                    pool: range.cidr.clone(),
                    space: "default".into(),
                    ..v1::Address::default()
                }
            }
        }
    };
    request.slots.iter().map(of_slot).collect()
}

#[tonic::async_trait]
impl Ipam for Service {
    async fn allocate(
        &self,
        request: Request<v1::AllocateRequest>,
    ) -> Result<Response<v1::AllocateResponse>, Status> {
        let request = request.into_inner();
        let scripted = self.scripted(Call::Allocate(Box::new(request.clone()))).await?;
        let (key, stamp) = (key(request.attachment.as_ref()), request.stamp);
        let mut allocations = self.0.allocations.lock().unwrap();
        let fresh = !allocations.contains_key(&key);
        let allocation = allocations.entry(key).or_insert_with(|| v1::Allocation {
            addresses: scripted.unwrap_or_else(|| addresses(&request)),
            attachment: request.attachment,
            pod: request.pod,
            netns: request.netns,
            boot_id: request.boot_id,
            machine_id: request.machine_id,
            made: request.stamp,
            latest: request.stamp,
            ..v1::Allocation::default()
        });
        allocation.latest = stamp;
        let allocation = Some(allocation.clone());
        Ok(Response::new(v1::AllocateResponse { header: None, allocation, fresh }))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseResponse>, Status> {
        let request = request.into_inner();
        self.scripted(Call::Release(request.clone())).await?;
        let released = self.remove(request.attachment.as_ref());
        Ok(Response::new(v1::ReleaseResponse { header: None, released }))
    }

    async fn abort(
        &self,
        request: Request<v1::AbortRequest>,
    ) -> Result<Response<v1::AbortResponse>, Status> {
        let request = request.into_inner();
        self.scripted(Call::Abort(request.clone())).await?;
        let released = self.remove(request.attachment.as_ref());
        Ok(Response::new(v1::AbortResponse { header: None, released }))
    }

    async fn collect(
        &self,
        request: Request<v1::CollectRequest>,
    ) -> Result<Response<v1::CollectResponse>, Status> {
        let request = request.into_inner();
        self.scripted(Call::Collect(request.clone())).await?;
        let victims = request.victims.iter().map(|victim| v1::Attachment {
            node: request.node.clone(),
            network: victim.network.clone(),
            container_id: victim.container_id.clone(),
            ifname: victim.ifname.clone(),
        });
        let released: Vec<v1::Attachment> = victims.collect();
        for attachment in &released {
            self.remove(Some(attachment));
        }
        Ok(Response::new(v1::CollectResponse { header: None, released }))
    }

    async fn list_attachments(
        &self,
        request: Request<v1::ListAttachmentsRequest>,
    ) -> Result<Response<v1::ListAttachmentsResponse>, Status> {
        let request = request.into_inner();
        self.scripted(Call::List).await?;
        // Pages of two, so that every test that lists more turns them.
        let skip: usize = request.page_token.parse().unwrap_or(0);
        let all: Vec<v1::Allocation> = {
            let allocations = self.0.allocations.lock().unwrap();
            let of_network = |allocation: &&v1::Allocation| {
                let attachment = allocation.attachment.as_ref().unwrap();
                attachment.network == request.network && attachment.node == request.node
            };
            allocations.values().filter(of_network).cloned().collect()
        };
        let page: Vec<v1::Allocation> = all.iter().skip(skip).take(2).cloned().collect();
        let next = skip + page.len();
        let next_page_token = if next < all.len() { next.to_string() } else { String::new() };
        Ok(Response::new(v1::ListAttachmentsResponse {
            header: None,
            allocations: page,
            next_page_token,
        }))
    }

    async fn get_attachment(
        &self,
        request: Request<v1::GetAttachmentRequest>,
    ) -> Result<Response<v1::GetAttachmentResponse>, Status> {
        let request = request.into_inner();
        self.scripted(Call::Get).await?;
        let key = key(request.attachment.as_ref());
        let allocation = self.0.allocations.lock().unwrap().get(&key).cloned();
        Ok(Response::new(v1::GetAttachmentResponse { header: None, allocation }))
    }

    async fn ping(
        &self,
        _request: Request<v1::PingRequest>,
    ) -> Result<Response<v1::PingResponse>, Status> {
        self.scripted(Call::Ping).await?;
        Ok(Response::new(v1::PingResponse { header: None }))
    }
}
