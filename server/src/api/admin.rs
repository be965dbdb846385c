//! `quorate.v1.Admin`: what people and tools call.

use std::net::IpAddr;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use quorate_proto::reason::Reason;
use quorate_proto::storage::v1::command::Command;
use quorate_proto::storage::v1::{PoolKey as PoolKeyMessage, ReservationKey, UpdatePool};
use quorate_proto::v1::admin_client::AdminClient;
use quorate_proto::v1::{self, Consistency, admin_server::Admin};
use quorate_state::types::PoolKey;
use quorate_state::{AddressStatus, Done, State};
use tonic::{Code, Request, Response, Status};

use super::ipam::unexpected;
use super::route::{Call, Edge};
use super::{pages, status};
use crate::codec::{Malformed, command, parse, view};
use crate::raft::birth::{self, BirthError};
use crate::raft::replica::Leading;
use crate::raft::types::Member;
use crate::settings::PeerAddress;

type Answer<T> = Result<Response<T>, Status>;

/// Most lines of history in an answer.
const HISTORY: usize = 100;
/// Time for the birth of a cluster.
const BIRTH_TIME: Duration = Duration::from_secs(10);

/// Passes a call on to the leader by its own name.
macro_rules! to_leader {
    ($method:ident) => {
        |channel, request| async move { AdminClient::new(channel).$method(request).await }
    };
}

/// Answers a read here if it asked for staleness by name, else from the leader.
macro_rules! read {
    ($self:ident, $request:ident, $view:ident, $method:ident) => {{
        if $request.get_ref().consistency == i32::from(Consistency::Stale) {
            return $self.$view($request.get_ref()).map(Response::new);
        }
        let local = |message, call| async move {
            $self.linearize(call).await?;
            $self.$view(&message)
        };
        $self.lead($request, local, to_leader!($method)).await
    }};
}

#[tonic::async_trait]
impl Admin for Edge {
    async fn create_pool(
        &self,
        r: Request<v1::CreatePoolRequest>,
    ) -> Answer<v1::CreatePoolResponse> {
        let local = |message: v1::CreatePoolRequest, call| async move {
            let command = Command::CreatePool(message.spec.unwrap_or_default());
            let (header, pool) = self.write_pool(command, call).await?;
            Ok(v1::CreatePoolResponse { header, pool })
        };
        self.lead(r, local, to_leader!(create_pool)).await
    }

    async fn update_pool(
        &self,
        r: Request<v1::UpdatePoolRequest>,
    ) -> Answer<v1::UpdatePoolResponse> {
        let local = |message: v1::UpdatePoolRequest, call| async move {
            let (spec, if_revision) = (message.spec, message.if_revision);
            let command = Command::UpdatePool(UpdatePool { spec, if_revision });
            let (header, pool) = self.write_pool(command, call).await?;
            Ok(v1::UpdatePoolResponse { header, pool })
        };
        self.lead(r, local, to_leader!(update_pool)).await
    }

    async fn delete_pool(
        &self,
        r: Request<v1::DeletePoolRequest>,
    ) -> Answer<v1::DeletePoolResponse> {
        let local = |message: v1::DeletePoolRequest, call| async move {
            let key = PoolKeyMessage { space: message.space, name: message.name };
            let (revision, _deleted) = self.write(Command::DeletePool(key), call).await?;
            Ok(v1::DeletePoolResponse { header: self.header(revision) })
        };
        self.lead(r, local, to_leader!(delete_pool)).await
    }

    async fn get_pool(&self, r: Request<v1::GetPoolRequest>) -> Answer<v1::GetPoolResponse> {
        read!(self, r, view_pool, get_pool)
    }

    async fn list_pools(&self, r: Request<v1::ListPoolsRequest>) -> Answer<v1::ListPoolsResponse> {
        read!(self, r, view_pools, list_pools)
    }

    async fn list_addresses(
        &self,
        r: Request<v1::ListAddressesRequest>,
    ) -> Answer<v1::ListAddressesResponse> {
        read!(self, r, view_addresses, list_addresses)
    }

    async fn get_address(
        &self,
        r: Request<v1::GetAddressRequest>,
    ) -> Answer<v1::GetAddressResponse> {
        read!(self, r, view_address, get_address)
    }

    async fn create_reservation(
        &self,
        r: Request<v1::CreateReservationRequest>,
    ) -> Answer<v1::CreateReservationResponse> {
        let local = |message: v1::CreateReservationRequest, call| async move {
            let command = Command::CreateReservation(message.reservation.unwrap_or_default());
            let (revision, done) = self.write(command, call).await?;
            let Done::Reservation(reservation) = done else { return Err(unexpected(&done)) };
            let reservation = Some(view::reservation(&reservation));
            Ok(v1::CreateReservationResponse { header: self.header(revision), reservation })
        };
        self.lead(r, local, to_leader!(create_reservation)).await
    }

    async fn delete_reservation(
        &self,
        r: Request<v1::DeleteReservationRequest>,
    ) -> Answer<v1::DeleteReservationResponse> {
        let local = |message: v1::DeleteReservationRequest, call| async move {
            let v1::DeleteReservationRequest { space, first, last } = message;
            let command = Command::DeleteReservation(ReservationKey { space, first, last });
            let (revision, _deleted) = self.write(command, call).await?;
            Ok(v1::DeleteReservationResponse { header: self.header(revision) })
        };
        self.lead(r, local, to_leader!(delete_reservation)).await
    }

    async fn list_reservations(
        &self,
        r: Request<v1::ListReservationsRequest>,
    ) -> Answer<v1::ListReservationsResponse> {
        read!(self, r, view_reservations, list_reservations)
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Answer<v1::GetStatusResponse> {
        Ok(Response::new(self.view_status()))
    }

    async fn init_cluster(
        &self,
        request: Request<v1::InitClusterRequest>,
    ) -> Answer<v1::InitClusterResponse> {
        let named = request.into_inner().members;
        parse::bounded("members", &named, crate::codec::raft::MAX_MEMBERS)
            .map_err(|e| status::malformed(&e))?;
        let mut members = Vec::with_capacity(named.len());
        for member in named {
            let name =
                parse::name("members.name", &member.name).map_err(|e| status::malformed(&e))?;
            members.push(PeerAddress { name, address: member.address });
        }
        let deadline = tokio::time::Instant::now() + BIRTH_TIME;
        let found = birth::init(&self.replica, members, deadline).await.map_err(birth_failed)?;
        let members = found.iter().map(|(id, member)| view_member(*id, member, true, None));
        let members = members.collect();
        let (header, ()) = self.read(|_state| ());
        Ok(Response::new(v1::InitClusterResponse { header, members }))
    }
}

impl Edge {
    async fn write_pool(
        &self,
        command: Command,
        call: Call,
    ) -> Result<(Option<v1::Header>, Option<v1::PoolStatus>), Status> {
        let (revision, done) = self.write(command, call).await?;
        let Done::Pool(pool) = done else { return Err(unexpected(&done)) };
        let counters = self.replica.machine.read(|state| state.counters(&pool.spec.key));
        Ok((self.header(revision), Some(view::pool(&pool, counters.unwrap_or_default()))))
    }

    fn view_pool(&self, request: &v1::GetPoolRequest) -> Result<v1::GetPoolResponse, Status> {
        let key =
            command::pool_key(&request.space, &request.name).map_err(|e| status::malformed(&e))?;
        let (header, pool) = self.read(|state| pool_status(state, &key));
        let pool = pool.ok_or_else(|| no_pool(key))?;
        Ok(v1::GetPoolResponse { header, pool: Some(pool) })
    }

    fn view_pools(&self, request: &v1::ListPoolsRequest) -> Result<v1::ListPoolsResponse, Status> {
        let after = pages::pool(&request.page_token)?;
        let space = (!request.space.is_empty()).then_some(request.space.as_str());
        let (header, (pools, next_page_token)) = self.read(|state| {
            let keys = state.pools(space, after.as_ref()).map(|pool| pool.spec.key.clone());
            let (keys, next) = pages::cut(keys, pages::size(request.page_size), |key| {
                pages::join(&[&key.space, &key.name])
            });
            (keys.iter().filter_map(|key| pool_status(state, key)).collect(), next)
        });
        Ok(v1::ListPoolsResponse { header, pools, next_page_token })
    }

    fn view_addresses(
        &self,
        request: &v1::ListAddressesRequest,
    ) -> Result<v1::ListAddressesResponse, Status> {
        let space = parse::space("space", &request.space).map_err(|e| status::malformed(&e))?;
        let node = match &request.node {
            Some(_) => Some(parse::node("node", &request.node).map_err(|e| status::malformed(&e))?),
            None => None,
        };
        let after: Option<IpAddr> = match request.page_token.as_str() {
            "" => None,
            token => Some(token.parse().map_err(|_not| pages::bad_token(token))?),
        };
        let size = pages::size(request.page_size);
        let (header, listed) = self.read(|state| {
            let net = match request.pool.as_str() {
                "" => None,
                name => {
                    let key = PoolKey { space: space.clone(), name: name.to_owned() };
                    Some(state.pool(&key).ok_or_else(|| no_pool(key.clone()))?.spec.cidr)
                }
            };
            let lowest = net.map_or(IpAddr::from([0, 0, 0, 0]), |net| net.network());
            let from = after.map_or(lowest, |after| after.max(lowest));
            let found = state
                .owners_from(&space, from)
                .skip_while(|(address, _)| after == Some(*address))
                .take_while(|(address, _)| net.is_none_or(|net| *address <= net.broadcast()))
                .filter(|(address, allocation)| {
                    net.is_none_or(|net| net.contains(address))
                        && node.as_ref().is_none_or(|node| allocation.attachment.node == *node)
                })
                .map(|(address, allocation)| (address, allocation.clone()));
            Ok::<_, Status>(pages::cut(found, size, |(address, _)| address.to_string()))
        });
        let (page, next_page_token) = listed?;
        let addresses = page.iter().map(|(address, allocation)| v1::AddressInfo {
            address: address.to_string(),
            space: space.clone(),
            allocation: Some(view::allocation(allocation)),
        });
        let addresses = addresses.collect();
        Ok(v1::ListAddressesResponse { header, addresses, next_page_token })
    }

    fn view_address(
        &self,
        request: &v1::GetAddressRequest,
    ) -> Result<v1::GetAddressResponse, Status> {
        let space = parse::space("space", &request.space).map_err(|e| status::malformed(&e))?;
        let address =
            parse::address("address", &request.address).map_err(|e| status::malformed(&e))?;
        let (header, (revision, found, reservation, pools)) = self.read(|state| {
            (
                state.cluster().revision,
                state.address(&space, address),
                state.reservation_of(&space, address).cloned(),
                state.pools_of_address(&space, address),
            )
        });
        let (state, allocation) = match found {
            AddressStatus::Free => (v1::AddressState::Free, None),
            AddressStatus::Allocated(allocation) => {
                (v1::AddressState::Allocated, Some(view::allocation(&allocation)))
            }
            AddressStatus::Cooling(_) => (v1::AddressState::Cooling, None),
            AddressStatus::Reserved(_) => (v1::AddressState::Reserved, None),
            AddressStatus::Gateway => (v1::AddressState::Gateway, None),
        };
        let history = self.replica.machine.history(&space, address, HISTORY);
        // Lines that came after the state was read are not part of this answer.
        let history = history.map_err(history_failed)?;
        let history = history.iter().filter(|event| event.revision <= revision);
        Ok(v1::GetAddressResponse {
            header,
            state: state.into(),
            allocation,
            reservation: reservation.map(|reservation| view::reservation(&reservation)),
            pools: pools.into_iter().map(|key| key.name).collect(),
            history: history.map(view::event).collect(),
        })
    }

    fn view_reservations(
        &self,
        request: &v1::ListReservationsRequest,
    ) -> Result<v1::ListReservationsResponse, Status> {
        let space = (!request.space.is_empty()).then_some(request.space.as_str());
        let (header, reservations) = self.read(|state| {
            state.reservations(space).map(|reservation| view::reservation(reservation)).collect()
        });
        Ok(v1::ListReservationsResponse { header, reservations })
    }

    fn view_status(&self) -> v1::GetStatusResponse {
        let metrics = self.replica.raft.metrics().borrow_watched().clone();
        let role = match metrics.state {
            _ if self.replica.identity.cluster_id().is_empty() => "unborn",
            openraft::ServerState::Leader if !self.replica.has_majority() => "isolated",
            openraft::ServerState::Leader => "leader",
            openraft::ServerState::Follower => "follower",
            openraft::ServerState::Candidate => "candidate",
            openraft::ServerState::Learner => "learner",
            openraft::ServerState::Shutdown => "stopped",
        };
        let membership = metrics.membership_config.membership();
        let voters: Vec<u64> = membership.voter_ids().collect();
        let matched = |id: &u64| {
            let matched = metrics.replication.as_ref()?.get(id)?.as_ref();
            Some(matched.map_or(0, |log_id| log_id.index))
        };
        let members = membership.nodes();
        let members =
            members.map(|(id, member)| view_member(*id, member, voters.contains(id), matched(id)));
        // Both under one lock, so that equal indexes mean comparable digests.
        let (applied, revision, digest, allocations, clock) =
            self.replica.machine.read_applied(|applied, state| {
                let revision = state.cluster().revision;
                (applied, revision, state.digest(), state.allocation_count(), state.clock())
            });
        v1::GetStatusResponse {
            header: self.header(revision),
            id: self.replica.identity.id,
            name: self.replica.identity.name.clone(),
            role: role.to_owned(),
            term: metrics.current_term,
            last_log_index: metrics.last_log_index.unwrap_or(0),
            committed_index: metrics.local_committed.map_or(0, |log_id| log_id.index),
            applied_index: applied.map_or(0, |log_id| log_id.index),
            checkpoint_index: self.replica.machine.checkpoint_index(),
            purged_index: metrics.purged.map_or(0, |log_id| log_id.index),
            members: members.collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allocations: u64::try_from(allocations).unwrap_or(u64::MAX),
            digest: format!("{digest:032x}"),
            cluster_clock_ms: clock.0 / 1_000_000,
        }
    }

    /// Whether this replica can serve, and if not, why.
    pub fn readiness(&self) -> Result<(), &'static str> {
        if self.replica.identity.cluster_id().is_empty() {
            return Err("not born: run `quoratectl cluster init` once");
        }
        match self.replica.leading() {
            Leading::Nobody => Err("no leader is known"),
            Leading::Here | Leading::There(_) => Ok(()),
        }
    }
}

fn pool_status(state: &State, key: &PoolKey) -> Option<v1::PoolStatus> {
    Some(view::pool(state.pool(key)?, state.counters(key)?))
}

fn no_pool(key: PoolKey) -> Status {
    status::refusal(&quorate_state::Refusal::PoolNotFound(key))
}

fn history_failed(error: impl std::fmt::Display) -> Status {
    status::refused(Code::Internal, Reason::StorageFailed, &error)
}

fn view_member(id: u64, member: &Member, voter: bool, matched: Option<u64>) -> v1::Member {
    let (name, address) = (member.name.clone(), member.address.clone());
    v1::Member { id, name, address, voter, matched }
}

fn birth_failed(error: BirthError) -> Status {
    match &error {
        BirthError::Born { .. } => {
            status::refused(Code::AlreadyExists, Reason::AlreadyInitialized, &error)
        }
        BirthError::NoMembers | BirthError::Twice(_) | BirthError::WrongName { .. } => {
            status::malformed(&Malformed::new("members", "", error.to_string()))
        }
        BirthError::Address(_) => {
            status::malformed(&Malformed::new("members.address", "", error.to_string()))
        }
        BirthError::Unreachable { .. } => {
            status::refused(Code::Unavailable, Reason::NotInitialized, &error)
        }
        BirthError::Raft(_) | BirthError::NoLeader => {
            status::refused(Code::Unavailable, Reason::NoLeader, &error)
        }
    }
}
