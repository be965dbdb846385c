//! A replica whose answers are fixed, and the real program run against it.

use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use quorate_client::Reason;
use quorate_proto::v1::{self, admin_server};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// What the replica answers, and what it was asked. Methods that no test needs are refused.
#[derive(Clone, Default)]
pub(crate) struct Replica {
    pub(crate) pools: Vec<v1::PoolStatus>,
    pub(crate) addresses: Vec<v1::AddressInfo>,
    pub(crate) address: v1::GetAddressResponse,
    pub(crate) reservations: Vec<v1::Reservation>,
    pub(crate) status: Arc<Mutex<v1::GetStatusResponse>>,
    /// Status after `InitCluster`; without it a birth is refused as a repetition.
    pub(crate) after_init: Option<v1::GetStatusResponse>,
    /// Every write ends like this.
    pub(crate) refusal: Option<(Code, Reason, &'static str)>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Replica {
    /// Serves on a loopback port until the test ends; returns `HOST:PORT`.
    pub(crate) async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tonic::transport::Server::builder()
            .add_service(admin_server::AdminServer::new(self.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        address
    }

    /// The requests so far, in their debug form.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn note<T: std::fmt::Debug>(&self, request: &Request<T>) {
        self.asked.lock().unwrap().push(format!("{:?}", request.get_ref()));
    }

    fn write(&self) -> Result<(), Status> {
        let Some((code, reason, message)) = self.refusal else { return Ok(()) };
        let metadata = [("pool".to_owned(), "prod".to_owned())];
        let details = ErrorDetails::with_error_info(reason.as_str(), "quorate", metadata);
        Err(Status::with_error_details(code, message, details))
    }

    fn pool(&self, name: &str) -> Result<v1::PoolStatus, Status> {
        let of = |pool: &&v1::PoolStatus| pool.spec.as_ref().is_some_and(|spec| spec.name == name);
        self.pools.iter().find(of).cloned().ok_or_else(|| {
            let details = ErrorDetails::with_error_info(
                "POOL_NOT_FOUND",
                "quorate",
                [("pool".into(), name.into())],
            );
            Status::with_error_details(Code::NotFound, format!("no pool default/{name}"), details)
        })
    }
}

/// One page, whose token is the position of the next; two items a page, so that there are some.
fn page<T: Clone>(items: &[T], token: &str) -> (Vec<T>, String) {
    let start: usize = if token.is_empty() { 0 } else { token.parse().unwrap() };
    let end = (start + 2).min(items.len());
    let next = if end < items.len() { end.to_string() } else { String::new() };
    (items[start..end].to_vec(), next)
}

fn header() -> Option<v1::Header> {
    let revision = Some(v1::Revision { index: 99, position: 1 });
    Some(v1::Header { revision, ..v1::Header::default() })
}

#[tonic::async_trait]
impl admin_server::Admin for Replica {
    async fn create_pool(
        &self,
        request: Request<v1::CreatePoolRequest>,
    ) -> Result<Response<v1::CreatePoolResponse>, Status> {
        self.note(&request);
        self.write()?;
        let pool = v1::PoolStatus { spec: request.into_inner().spec, ..Default::default() };
        Ok(Response::new(v1::CreatePoolResponse { header: header(), pool: Some(pool) }))
    }

    async fn update_pool(
        &self,
        request: Request<v1::UpdatePoolRequest>,
    ) -> Result<Response<v1::UpdatePoolResponse>, Status> {
        self.note(&request);
        self.write()?;
        let pool = v1::PoolStatus { spec: request.into_inner().spec, ..Default::default() };
        Ok(Response::new(v1::UpdatePoolResponse { header: header(), pool: Some(pool) }))
    }

    async fn delete_pool(
        &self,
        request: Request<v1::DeletePoolRequest>,
    ) -> Result<Response<v1::DeletePoolResponse>, Status> {
        self.note(&request);
        self.write()?;
        Ok(Response::new(v1::DeletePoolResponse { header: header() }))
    }

    async fn get_pool(
        &self,
        request: Request<v1::GetPoolRequest>,
    ) -> Result<Response<v1::GetPoolResponse>, Status> {
        let pool = Some(self.pool(&request.get_ref().name)?);
        Ok(Response::new(v1::GetPoolResponse { header: header(), pool }))
    }

    async fn list_pools(
        &self,
        request: Request<v1::ListPoolsRequest>,
    ) -> Result<Response<v1::ListPoolsResponse>, Status> {
        self.note(&request);
        let (pools, next_page_token) = page(&self.pools, &request.get_ref().page_token);
        Ok(Response::new(v1::ListPoolsResponse { header: header(), pools, next_page_token }))
    }

    async fn list_addresses(
        &self,
        request: Request<v1::ListAddressesRequest>,
    ) -> Result<Response<v1::ListAddressesResponse>, Status> {
        self.note(&request);
        let (addresses, next_page_token) = page(&self.addresses, &request.get_ref().page_token);
        let header = header();
        Ok(Response::new(v1::ListAddressesResponse { header, addresses, next_page_token }))
    }

    async fn get_address(
        &self,
        _request: Request<v1::GetAddressRequest>,
    ) -> Result<Response<v1::GetAddressResponse>, Status> {
        Ok(Response::new(self.address.clone()))
    }

    async fn create_reservation(
        &self,
        request: Request<v1::CreateReservationRequest>,
    ) -> Result<Response<v1::CreateReservationResponse>, Status> {
        self.note(&request);
        self.write()?;
        let reservation = request.into_inner().reservation;
        Ok(Response::new(v1::CreateReservationResponse { header: header(), reservation }))
    }

    async fn delete_reservation(
        &self,
        request: Request<v1::DeleteReservationRequest>,
    ) -> Result<Response<v1::DeleteReservationResponse>, Status> {
        self.note(&request);
        self.write()?;
        Ok(Response::new(v1::DeleteReservationResponse { header: header() }))
    }

    async fn list_reservations(
        &self,
        _request: Request<v1::ListReservationsRequest>,
    ) -> Result<Response<v1::ListReservationsResponse>, Status> {
        let reservations = self.reservations.clone();
        Ok(Response::new(v1::ListReservationsResponse { header: header(), reservations }))
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(self.status.lock().unwrap().clone()))
    }

    async fn init_cluster(
        &self,
        request: Request<v1::InitClusterRequest>,
    ) -> Result<Response<v1::InitClusterResponse>, Status> {
        self.note(&request);
        self.write()?;
        let unborn = self.status.lock().unwrap().role == "unborn";
        match &self.after_init {
            Some(after) if unborn => {
                *self.status.lock().unwrap() = after.clone();
                Ok(Response::new(v1::InitClusterResponse::default()))
            }
            _ => {
                let details = ErrorDetails::with_error_info("ALREADY_INITIALIZED", "quorate", []);
                Err(Status::with_error_details(Code::FailedPrecondition, "born before", details))
            }
        }
    }
}

/// The program's end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the real program with these arguments and nothing from the environment.
pub(crate) async fn quoratectl(arguments: &[&str]) -> Ended {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_quoratectl"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let Output { status, stdout, stderr } = output.await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) }
}

/// Compares with `tests/snapshots/NAME`, or writes it where `UPDATE_SNAPSHOTS` is set.
pub(crate) fn snapshot(name: &str, text: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(file, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == text, "{name}: expected\n{expected}\ngot\n{text}");
}
