//! `quoratectl pool …`

use ipnet::IpNet;
use quorate_proto::v1;

use super::pages;
use crate::cli::{PoolCommand, PoolFields, parse};
use crate::error::{Error, Result};
use crate::output;
use crate::session::Session;
use crate::view::{Deleted, Pool, PoolList};

pub(super) async fn run(session: &Session, command: PoolCommand) -> Result<()> {
    match command {
        PoolCommand::List { space } => list(session, space.unwrap_or_default()).await,
        PoolCommand::Show { name, space } => {
            let pool = get(session, &space, &name).await?;
            output::write(session.format, &Pool::from(pool))
        }
        PoolCommand::Create { name, space, cidr, fields } => {
            create(session, space, name, cidr, fields).await
        }
        PoolCommand::Update { name, space, fields } => update(session, space, name, fields).await,
        PoolCommand::Delete { name, space } => delete(session, space, name).await,
    }
}

async fn list(session: &Session, space: String) -> Result<()> {
    let pools = pages::all(session.budget(), |page_token, left| {
        let request = v1::ListPoolsRequest {
            space: space.clone(),
            page_size: pages::PAGE_SIZE,
            page_token,
            ..v1::ListPoolsRequest::default()
        };
        async move {
            let answer = session.client.list_pools(request, left).await;
            let answer = answer.map_err(Error::call("pools were not listed"))?;
            Ok((answer.pools, answer.next_page_token))
        }
    });
    let pools = pools.await?.into_iter().map(Pool::from).collect();
    output::write(session.format, &PoolList { pools })
}

async fn get(session: &Session, space: &str, name: &str) -> Result<v1::PoolStatus> {
    let request = v1::GetPoolRequest {
        space: space.to_owned(),
        name: name.to_owned(),
        ..v1::GetPoolRequest::default()
    };
    let answer = session.client.get_pool(request, session.budget()).await;
    let answer = answer.map_err(Error::call(format!("pool {space}:{name} was not read")))?;
    answer.pool.ok_or(Error::Incomplete("pool"))
}

async fn create(
    session: &Session,
    space: String,
    name: String,
    cidr: Option<IpNet>,
    fields: PoolFields,
) -> Result<()> {
    let cidr = match cidr {
        Some(cidr) => cidr,
        None => parse::cidr(&name).map_err(|_not_a_network| Error::NoCidr(name.clone()))?,
    };
    let what = format!("pool {space}:{name} was not created");
    let mut spec = v1::PoolSpec { space, name, cidr: cidr.to_string(), ..v1::PoolSpec::default() };
    fields.apply(&mut spec);
    let request = v1::CreatePoolRequest { spec: Some(spec) };
    let answer = session.client.create_pool(request, session.budget()).await;
    let pool = answer.map_err(Error::call(what))?.pool.ok_or(Error::Incomplete("pool"))?;
    output::write(session.format, &Pool::from(pool))
}

/// Reads the pool, changes what was given, and writes it if nobody did meanwhile.
async fn update(session: &Session, space: String, name: String, fields: PoolFields) -> Result<()> {
    if fields.is_empty() {
        return Err(Error::NothingToChange);
    }
    let before = get(session, &space, &name).await?;
    let if_revision = before.updated.or(before.created);
    if if_revision.is_none() {
        return Err(Error::Incomplete("revision of the pool"));
    }
    let mut spec = before.spec.ok_or(Error::Incomplete("definition of the pool"))?;
    fields.apply(&mut spec);
    let request = v1::UpdatePoolRequest { spec: Some(spec), if_revision };
    let answer = session.client.update_pool(request, session.budget()).await;
    let answer = answer.map_err(Error::call(format!("pool {space}:{name} was not updated")))?;
    let pool = answer.pool.ok_or(Error::Incomplete("pool"))?;
    output::write(session.format, &Pool::from(pool))
}

async fn delete(session: &Session, space: String, name: String) -> Result<()> {
    let deleted = format!("pool {space}:{name}");
    let request = v1::DeletePoolRequest { space, name };
    let answer = session.client.delete_pool(request, session.budget()).await;
    let answer = answer.map_err(Error::call(format!("{deleted} was not deleted")))?;
    let revision = answer.header.and_then(|header| header.revision).map(Into::into);
    output::write(session.format, &Deleted { deleted, revision })
}
