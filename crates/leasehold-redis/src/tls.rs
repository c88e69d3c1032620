//! TLS by rustls: who vouches for the server, and the handshake.

use std::{path::Path, sync::Arc};

use leasehold_core::{Fault, FaultKind};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::config::RedisConfig;

/// Shakes hands with the server that is to be called `name`.
pub(crate) async fn connect(
    tcp: TcpStream,
    name: &str,
    config: &RedisConfig,
) -> Result<TlsStream<TcpStream>, Fault> {
    let name = ServerName::try_from(name.to_owned()).map_err(|error| {
        Fault::new(FaultKind::Unsupported, format!("{config}: no name for TLS: {error}"))
    })?;
    // The certificates are many small files; reading them must not hold up who shares the runtime.
    let of_reader = config.clone();
    let roots = tokio::task::spawn_blocking(move || roots(&of_reader)).await;
    let roots = roots
        .map_err(|error| Fault::new(FaultKind::Unavailable, format!("{config}: TLS: {error}")))??;
    let settings = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| denied(config, error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(settings));
    connector.connect(name, tcp).await.map_err(|error| {
        // A certificate that nobody vouches for will not do in a moment either.
        let refused = error.kind() == std::io::ErrorKind::InvalidData;
        let kind = if refused { FaultKind::Denied } else { FaultKind::Unavailable };
        Fault::new(kind, format!("{config}: TLS: {error}")).with_source(error)
    })
}

fn roots(config: &RedisConfig) -> Result<RootCertStore, Fault> {
    let certificates = match &config.ca_file {
        Some(path) => from_file(path, config)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        let from = config.ca_file.as_deref().map_or("this system".into(), Path::to_string_lossy);
        let message = format!("{config}: no certificate to trust was found in {from}");
        return Err(Fault::new(FaultKind::Denied, message));
    }
    Ok(roots)
}

fn from_file(path: &Path, config: &RedisConfig) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| denied(config, format!("{}: {error}", path.display())))?;
    Ok(certificates)
}

fn denied(config: &RedisConfig, why: impl std::fmt::Display) -> Fault {
    Fault::new(FaultKind::Denied, format!("{config}: TLS: {why}"))
}
