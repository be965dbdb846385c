//! What the policy must know of each RPC: how it is sent, whether it may be repeated after an
//! unknown outcome, and where its response names the leader.

use quorate_proto::v1;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// What sending a request a second time does, if the first may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing changes by it, however often it is sent: no outcome of it is unknown.
    Read,
    /// A second time changes nothing, and answers as the first would have.
    Idempotent,
    /// A second time could answer otherwise, or undo what somebody did in between.
    Once,
}

/// A request message, and through it its RPC.
pub(crate) trait Rpc: Clone + Send + Sync + 'static {
    type Response: Send;
    const REPEAT: Repeat;

    /// The caller's part, of the RPCs that have one.
    fn caller(&mut self) -> Option<&mut Option<v1::Caller>>;
    fn header(response: &Self::Response) -> Option<&v1::Header>;
    fn send(
        channel: Channel,
        request: Request<Self>,
    ) -> impl Future<Output = Result<Self::Response, Status>> + Send;
}

/// The largest response that is read: a page of addresses is below 2 MiB.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

macro_rules! rpcs {
    ($client:ident: $($method:ident($request:ident) -> $response:ident, $repeat:ident, $caller:ident;)*) => {
        $(impl Rpc for v1::$request {
            type Response = v1::$response;
            const REPEAT: Repeat = Repeat::$repeat;

            fn caller(&mut self) -> Option<&mut Option<v1::Caller>> {
                rpcs!(@caller self, $caller)
            }

            fn header(response: &v1::$response) -> Option<&v1::Header> {
                response.header.as_ref()
            }

            async fn send(channel: Channel, request: Request<Self>) -> Result<v1::$response, Status> {
                let mut client = $client::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
                client.$method(request).await.map(tonic::Response::into_inner)
            }
        })*
    };
    (@caller $self:ident, caller) => { Some(&mut $self.caller) };
    (@caller $self:ident, none) => { None };
}

use v1::admin_client::AdminClient;
use v1::ipam_client::IpamClient;

rpcs! { IpamClient:
    allocate(AllocateRequest) -> AllocateResponse, Idempotent, caller;
    release(ReleaseRequest) -> ReleaseResponse, Idempotent, caller;
    abort(AbortRequest) -> AbortResponse, Idempotent, caller;
    collect(CollectRequest) -> CollectResponse, Idempotent, caller;
    list_attachments(ListAttachmentsRequest) -> ListAttachmentsResponse, Read, caller;
    get_attachment(GetAttachmentRequest) -> GetAttachmentResponse, Read, caller;
    ping(PingRequest) -> PingResponse, Read, caller;
}

// A pool or reservation that is there already and equal is a success, so creating repeats well.
// Updating and deleting do not: somebody may have acted in between.
rpcs! { AdminClient:
    create_pool(CreatePoolRequest) -> CreatePoolResponse, Idempotent, none;
    update_pool(UpdatePoolRequest) -> UpdatePoolResponse, Once, none;
    delete_pool(DeletePoolRequest) -> DeletePoolResponse, Once, none;
    get_pool(GetPoolRequest) -> GetPoolResponse, Read, none;
    list_pools(ListPoolsRequest) -> ListPoolsResponse, Read, none;
    list_addresses(ListAddressesRequest) -> ListAddressesResponse, Read, none;
    get_address(GetAddressRequest) -> GetAddressResponse, Read, none;
    create_reservation(CreateReservationRequest) -> CreateReservationResponse, Idempotent, none;
    delete_reservation(DeleteReservationRequest) -> DeleteReservationResponse, Once, none;
    list_reservations(ListReservationsRequest) -> ListReservationsResponse, Read, none;
    get_status(GetStatusRequest) -> GetStatusResponse, Read, none;
    init_cluster(InitClusterRequest) -> InitClusterResponse, Once, none;
}
