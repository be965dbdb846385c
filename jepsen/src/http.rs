//! What a probe or a scraper asks a replica over HTTP.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(2);

/// Status code and body of `path` at `HOST:PORT`.
///
/// # Errors
/// There is no answer within two seconds, or none that is HTTP.
pub async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = timeout(PATIENCE, exchange).await.context("no answer in two seconds")??;
    let (head, body) = answer.split_once("\r\n\r\n").context("no end of the head")?;
    let code = head.split(' ').nth(1).context("no status code")?.parse()?;
    Ok((code, body.to_owned()))
}
