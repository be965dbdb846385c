//! What is still allocated, read linearizably from the service.

use std::time::Duration;

use anyhow::Result;
use quorate_client::Client;
use quorate_proto::v1::{AddressInfo, ListAddressesRequest};

const CALL: Duration = Duration::from_secs(10);

/// Every allocated address of the default space.
///
/// # Errors
/// The cluster does not answer.
pub async fn addresses(client: &Client) -> Result<Vec<AddressInfo>> {
    let mut all = Vec::new();
    let mut request = ListAddressesRequest::default();
    loop {
        let page = client.list_addresses(request.clone(), CALL).await?;
        all.extend(page.addresses);
        if page.next_page_token.is_empty() {
            return Ok(all);
        }
        request.page_token = page.next_page_token;
    }
}
