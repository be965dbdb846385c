//! [`Client`]: one method an RPC.

use std::sync::Arc;
use std::time::Duration;

use quorate_proto::v1;

use crate::call;
use crate::endpoint::Endpoint;
use crate::error::CallError;
use crate::hint::Hint;
use crate::options::{Options, OptionsError};
use crate::route::Route;
use crate::transport::Connections;

/// Reaches a cluster. Clones share connections and the leader hint.
///
/// Connections live in the tokio runtime in which a call first needed them: use one client with
/// one runtime, of whichever flavour.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) hint: Hint,
    pub(crate) connections: Connections,
}

impl Client {
    /// Checks the options and reads the hint file; connects nowhere, and needs no runtime.
    ///
    /// # Errors
    /// If the options could reach nobody, or not clearly.
    pub fn new(options: Options) -> Result<Client, OptionsError> {
        options.check()?;
        let hint = Hint::load(options.hint_file.clone(), &options.endpoints);
        let connections = Connections::default();
        Ok(Client { shared: Arc::new(Shared { options, hint, connections }) })
    }

    /// `GetStatus` of that replica and no other, in one attempt; the endpoint need not be among
    /// the options'. What it says of the leader is its own view, so that no hint is taken from it.
    ///
    /// # Errors
    /// [`CallError`], also if the replica cannot be reached within `budget`.
    pub async fn status_of(
        &self,
        endpoint: &Endpoint,
        budget: Duration,
    ) -> Result<v1::GetStatusResponse, CallError> {
        let route = Route::only(endpoint.clone());
        let policy = call::Policy { max_attempts: Some(1), hedge_after: None };
        call::run(&self.shared, v1::GetStatusRequest {}, budget, route, policy).await
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident($request:ident) -> $response:ident;)*) => {
        impl Client {
            $($(#[$doc])*
            ///
            /// # Errors
            /// [`CallError`], at the latest when `budget` has passed.
            pub async fn $method(
                &self,
                request: v1::$request,
                budget: Duration,
            ) -> Result<v1::$response, CallError> {
                call::any(&self.shared, request, budget).await
            })*
        }
    };
}

methods! {
    /// Gives the attachment one address a slot, all or nothing. Repeating it is safe.
    allocate(AllocateRequest) -> AllocateResponse;
    /// Ends an attachment (DEL). Succeeds also if there is nothing.
    release(ReleaseRequest) -> ReleaseResponse;
    /// Undoes an ADD whose outcome is unknown to its caller.
    abort(AbortRequest) -> AbortResponse;
    /// Releases attachments of one node that are gone, by attachment and revision.
    collect(CollectRequest) -> CollectResponse;
    /// One page of the attachments of a node.
    list_attachments(ListAttachmentsRequest) -> ListAttachmentsResponse;
    /// One attachment.
    get_attachment(GetAttachmentRequest) -> GetAttachmentResponse;
    /// Answers if a majority does.
    ping(PingRequest) -> PingResponse;
    /// Creates a pool; an equal one is success.
    create_pool(CreatePoolRequest) -> CreatePoolResponse;
    /// Replaces what may change of a pool. Not repeated after an unknown outcome.
    update_pool(UpdatePoolRequest) -> UpdatePoolResponse;
    /// Deletes a pool that holds nothing. Not repeated after an unknown outcome.
    delete_pool(DeletePoolRequest) -> DeletePoolResponse;
    /// One pool.
    get_pool(GetPoolRequest) -> GetPoolResponse;
    /// One page of pools.
    list_pools(ListPoolsRequest) -> ListPoolsResponse;
    /// One page of allocated addresses.
    list_addresses(ListAddressesRequest) -> ListAddressesResponse;
    /// Who has an address, and who had it.
    get_address(GetAddressRequest) -> GetAddressResponse;
    /// Creates a reservation; an equal one is success.
    create_reservation(CreateReservationRequest) -> CreateReservationResponse;
    /// Deletes a reservation. Not repeated after an unknown outcome.
    delete_reservation(DeleteReservationRequest) -> DeleteReservationResponse;
    /// All reservations of a space.
    list_reservations(ListReservationsRequest) -> ListReservationsResponse;
    /// What some replica, the leader if one is known, knows of the cluster.
    get_status(GetStatusRequest) -> GetStatusResponse;
    /// The one-time birth of a cluster. Not repeated after an unknown outcome.
    init_cluster(InitClusterRequest) -> InitClusterResponse;
}
