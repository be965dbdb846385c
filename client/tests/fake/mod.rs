//! A replica made of a script: what it answers to its first call, its second, and so on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use quorate_client::{Endpoint, Reason};
use quorate_proto::v1::{self, admin_server, ipam_server};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// What a replica does with a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Success; the header names this leader at this address.
    Leader(&'static str, &'static str),
    /// An error with a reason of ours.
    Fail(Code, Reason),
    /// An error as a transport or a proxy makes it.
    Bare(Code),
    /// No answer, for ever.
    Hang,
}

/// Success that names no leader.
pub(crate) const OK: Step = Step::Leader("", "");

/// A call as the replica saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) rpc: &'static str,
    pub(crate) incarnation: String,
    pub(crate) metadata: MetadataMap,
}

/// A replica on a loopback port of its own, until the test ends.
#[derive(Clone)]
pub(crate) struct Replica {
    script: Arc<Vec<Step>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) endpoint: Endpoint,
}

impl Replica {
    /// Starts it; the last step of the script answers all that follow.
    pub(crate) async fn start(name: &str, script: &[Step]) -> Replica {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let replica = Replica {
            script: Arc::new(script.to_vec()),
            seen: Arc::default(),
            endpoint: Endpoint { name: name.into(), address },
        };
        let server = tonic::transport::Server::builder()
            .add_service(ipam_server::IpamServer::new(replica.clone()))
            .add_service(admin_server::AdminServer::new(replica.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        replica
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many calls came.
    pub(crate) fn calls(&self) -> usize {
        self.seen().len()
    }

    async fn play(
        &self,
        rpc: &'static str,
        metadata: &MetadataMap,
        caller: Option<v1::Caller>,
    ) -> Result<Option<v1::Header>, Status> {
        let step = {
            let mut seen = self.seen.lock().unwrap();
            let incarnation = caller.unwrap_or_default().incarnation;
            seen.push(Seen { rpc, incarnation, metadata: metadata.clone() });
            self.script[(seen.len() - 1).min(self.script.len() - 1)]
        };
        match step {
            Step::Leader(leader, address) => Ok(Some(v1::Header {
                leader: leader.into(),
                leader_address: address.into(),
                ..v1::Header::default()
            })),
            Step::Fail(code, reason) => {
                let metadata = [("address".to_owned(), "10.0.0.7".to_owned())];
                let details = ErrorDetails::with_error_info(reason.as_str(), "quorate", metadata);
                Err(Status::with_error_details(code, format!("scripted {code:?}"), details))
            }
            Step::Bare(code) => Err(Status::new(code, "scripted")),
            Step::Hang => std::future::pending().await,
        }
    }
}

/// A port of loopback on which nobody listens.
pub(crate) async fn closed_port(name: &str) -> Endpoint {
    // Port 1 is privileged and unassigned here: binding one and letting it go could meet a
    // stranger who binds it next.
    format!("{name}=127.0.0.1:1").parse().unwrap()
}

/// A server that accepts and never says a word.
pub(crate) async fn black_hole(name: &str) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("{name}={}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    endpoint
}

/// What a relay does with its first connection; later ones are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Forward,
    /// Accepted, and left there.
    Swallow,
}

/// Something between client and replica that can cut what goes through it.
pub(crate) struct Relay {
    accepted: Arc<AtomicUsize>,
    cut: Arc<Notify>,
    pub(crate) endpoint: Endpoint,
}

impl Relay {
    pub(crate) async fn start(to: &Endpoint, first: First) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let relay = Relay {
            accepted: Arc::default(),
            cut: Arc::default(),
            endpoint: Endpoint { name: to.name.clone(), address },
        };
        let (to, accepted, cut) = (to.address.clone(), relay.accepted.clone(), relay.cut.clone());
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut near, _)) = listener.accept().await {
                if accepted.fetch_add(1, Ordering::SeqCst) == 0 && first == First::Swallow {
                    kept.push(near);
                    continue;
                }
                let mut far = TcpStream::connect(&to).await.unwrap();
                let cut = cut.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = cut.notified() => {}
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    }
                });
            }
        });
        relay
    }

    /// Closes every connection that is open now.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

macro_rules! service {
    ($trait:path: $($method:ident($request:ident) -> $response:ident $(, $caller:ident)?;)*) => {
        #[tonic::async_trait]
        impl $trait for Replica {
            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let caller = None;
                $(let caller = caller.or(request.get_ref().$caller.clone());)?
                let header = self.play(stringify!($method), request.metadata(), caller).await?;
                Ok(Response::new(v1::$response { header, ..Default::default() }))
            })*
        }
    };
}

service! { ipam_server::Ipam:
    allocate(AllocateRequest) -> AllocateResponse, caller;
    release(ReleaseRequest) -> ReleaseResponse, caller;
    abort(AbortRequest) -> AbortResponse, caller;
    collect(CollectRequest) -> CollectResponse, caller;
    list_attachments(ListAttachmentsRequest) -> ListAttachmentsResponse, caller;
    get_attachment(GetAttachmentRequest) -> GetAttachmentResponse, caller;
    ping(PingRequest) -> PingResponse, caller;
}

service! { admin_server::Admin:
    create_pool(CreatePoolRequest) -> CreatePoolResponse;
    update_pool(UpdatePoolRequest) -> UpdatePoolResponse;
    delete_pool(DeletePoolRequest) -> DeletePoolResponse;
    get_pool(GetPoolRequest) -> GetPoolResponse;
    list_pools(ListPoolsRequest) -> ListPoolsResponse;
    list_addresses(ListAddressesRequest) -> ListAddressesResponse;
    get_address(GetAddressRequest) -> GetAddressResponse;
    create_reservation(CreateReservationRequest) -> CreateReservationResponse;
    delete_reservation(DeleteReservationRequest) -> DeleteReservationResponse;
    list_reservations(ListReservationsRequest) -> ListReservationsResponse;
    get_status(GetStatusRequest) -> GetStatusResponse;
    init_cluster(InitClusterRequest) -> InitClusterResponse;
}
