//! `quoratectl address …`

use quorate_proto::v1;

use super::pages;
use crate::cli::AddressCommand;
use crate::error::{Error, Result};
use crate::output;
use crate::session::Session;
use crate::view::{AddressDetail, AddressList};

pub(super) async fn run(session: &Session, command: AddressCommand) -> Result<()> {
    match command {
        AddressCommand::List { space, pool, node } => {
            let node = node.map(|(cluster, name)| v1::Node { cluster, name });
            list(session, &space, &pool.unwrap_or_default(), node.as_ref()).await
        }
        AddressCommand::Show { address, space } => show(session, space, address.to_string()).await,
    }
}

async fn list(session: &Session, space: &str, pool: &str, node: Option<&v1::Node>) -> Result<()> {
    let infos = pages::all(session.budget(), |page_token, left| {
        let request = v1::ListAddressesRequest {
            space: space.to_owned(),
            pool: pool.to_owned(),
            node: node.cloned(),
            page_size: pages::PAGE_SIZE,
            page_token,
            ..v1::ListAddressesRequest::default()
        };
        async move {
            let answer = session.client.list_addresses(request, left).await;
            let answer = answer.map_err(Error::call("addresses were not listed"))?;
            Ok((answer.addresses, answer.next_page_token))
        }
    });
    let list: AddressList = infos.await?.into_iter().collect();
    output::write(session.format, &list)
}

async fn show(session: &Session, space: String, address: String) -> Result<()> {
    let request = v1::GetAddressRequest {
        space: space.clone(),
        address: address.clone(),
        ..v1::GetAddressRequest::default()
    };
    let answer = session.client.get_address(request, session.budget()).await;
    let answer = answer.map_err(Error::call(format!("address {address} was not read")))?;
    output::write(session.format, &AddressDetail::new(space, address, answer))
}
