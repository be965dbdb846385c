//! `quorate.v1.Ipam`: what nodes call.

use quorate_proto::reason::Reason;
use quorate_proto::storage::v1::command::Command;
use quorate_proto::v1::ipam_client::IpamClient;
use quorate_proto::v1::{self, ipam_server::Ipam};
use quorate_state::Done;
use quorate_state::types::AttachmentKey;
use tonic::{Code, Request, Response, Status};

use super::route::{Call, Edge};
use super::{pages, status};
use crate::codec::{parse, view};

type Answer<T> = Result<Response<T>, Status>;

/// Passes a call on to the leader by its own name.
macro_rules! to_leader {
    ($method:ident) => {
        |channel, request| async move { IpamClient::new(channel).$method(request).await }
    };
}

#[tonic::async_trait]
impl Ipam for Edge {
    async fn allocate(
        &self,
        request: Request<v1::AllocateRequest>,
    ) -> Answer<v1::AllocateResponse> {
        let local = |message, call| self.do_allocate(message, call);
        self.lead(request, local, to_leader!(allocate)).await
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Answer<v1::ReleaseResponse> {
        let local = |message, call| self.do_release(message, call);
        self.lead(request, local, to_leader!(release)).await
    }

    async fn abort(&self, request: Request<v1::AbortRequest>) -> Answer<v1::AbortResponse> {
        let local = |message, call| self.do_abort(message, call);
        self.lead(request, local, to_leader!(abort)).await
    }

    async fn collect(&self, request: Request<v1::CollectRequest>) -> Answer<v1::CollectResponse> {
        let local = |message, call| self.do_collect(message, call);
        self.lead(request, local, to_leader!(collect)).await
    }

    async fn list_attachments(
        &self,
        request: Request<v1::ListAttachmentsRequest>,
    ) -> Answer<v1::ListAttachmentsResponse> {
        let local = |message, call| self.do_list_attachments(message, call);
        self.lead(request, local, to_leader!(list_attachments)).await
    }

    async fn get_attachment(
        &self,
        request: Request<v1::GetAttachmentRequest>,
    ) -> Answer<v1::GetAttachmentResponse> {
        let local = |message, call| self.do_get_attachment(message, call);
        self.lead(request, local, to_leader!(get_attachment)).await
    }

    async fn ping(&self, request: Request<v1::PingRequest>) -> Answer<v1::PingResponse> {
        let local = |message, call| self.do_ping(message, call);
        self.lead(request, local, to_leader!(ping)).await
    }
}

impl Edge {
    async fn do_allocate(
        &self,
        request: v1::AllocateRequest,
        call: Call,
    ) -> Result<v1::AllocateResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let (revision, done) = self.write(Command::Allocate(request), call).await?;
        let Done::Allocated { allocation, fresh } = done else { return Err(unexpected(&done)) };
        let allocation = Some(view::allocation(&allocation));
        Ok(v1::AllocateResponse { header: self.header(revision), allocation, fresh })
    }

    async fn do_release(
        &self,
        request: v1::ReleaseRequest,
        call: Call,
    ) -> Result<v1::ReleaseResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let (revision, done) = self.write(Command::Release(request), call).await?;
        let released = released(done)?;
        Ok(v1::ReleaseResponse { header: self.header(revision), released })
    }

    async fn do_abort(
        &self,
        request: v1::AbortRequest,
        call: Call,
    ) -> Result<v1::AbortResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let (revision, done) = self.write(Command::Abort(request), call).await?;
        let released = released(done)?;
        Ok(v1::AbortResponse { header: self.header(revision), released })
    }

    async fn do_collect(
        &self,
        request: v1::CollectRequest,
        call: Call,
    ) -> Result<v1::CollectResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let (revision, done) = self.write(Command::Collect(request), call).await?;
        let Done::Collected(released) = done else { return Err(unexpected(&done)) };
        let released = released.iter().map(view::attachment).collect();
        Ok(v1::CollectResponse { header: self.header(revision), released })
    }

    async fn do_list_attachments(
        &self,
        request: v1::ListAttachmentsRequest,
        call: Call,
    ) -> Result<v1::ListAttachmentsResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let node = parse::node("node", &request.node).map_err(|e| status::malformed(&e))?;
        let after =
            pages::split::<3>(&request.page_token)?.map(|[container_id, ifname, network]| {
                AttachmentKey {
                    node: node.clone(),
                    container_id: container_id.to_owned(),
                    ifname: ifname.to_owned(),
                    network: network.to_owned(),
                }
            });
        self.linearize(call).await?;
        let size = pages::size(request.page_size);
        let (header, (page, next_page_token)) = self.read(|state| {
            let found = state.allocations_of_node(&node, after.as_ref()).filter(|allocation| {
                request.network.is_empty() || allocation.attachment.network == request.network
            });
            pages::cut(found.cloned(), size, |allocation| {
                let key = &allocation.attachment;
                pages::join(&[&key.container_id, &key.ifname, &key.network])
            })
        });
        let allocations = page.iter().map(|allocation| view::allocation(allocation)).collect();
        Ok(v1::ListAttachmentsResponse { header, allocations, next_page_token })
    }

    async fn do_get_attachment(
        &self,
        request: v1::GetAttachmentRequest,
        call: Call,
    ) -> Result<v1::GetAttachmentResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        let key = parse::attachment("attachment", &request.attachment)
            .map_err(|e| status::malformed(&e))?;
        self.linearize(call).await?;
        let (header, found) = self.read(|state| state.allocation(&key).cloned());
        let allocation = found.map(|allocation| view::allocation(&allocation));
        Ok(v1::GetAttachmentResponse { header, allocation })
    }

    async fn do_ping(
        &self,
        request: v1::PingRequest,
        call: Call,
    ) -> Result<v1::PingResponse, Status> {
        self.check_caller(request.caller.as_ref())?;
        self.linearize(call).await?;
        let (header, ()) = self.read(|_state| ());
        Ok(v1::PingResponse { header })
    }
}

fn released(done: Done) -> Result<Vec<String>, Status> {
    match done {
        Done::Released(addresses) => Ok(addresses.iter().map(ToString::to_string).collect()),
        other => Err(unexpected(&other)),
    }
}

/// A command came to what another kind of command comes to: a fault of ours, never of the caller.
pub(super) fn unexpected(done: &Done) -> Status {
    tracing::error!(?done, "a command came to an outcome of another kind");
    status::refused(Code::Internal, Reason::NoMajority, &"the outcome does not fit the request")
}
