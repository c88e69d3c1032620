//! Certificates for a server that is spoken to over TLS: one that signs, made for this server alone,
//! and one for the loopback address.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes the server's certificate and key into its directory, and gives the certificate that
/// clients trust, as PEM.
pub(crate) fn write(directory: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut signing = CertificateParams::new(Vec::new())?;
    signing.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let root = signing.self_signed(&key)?;
    let issuer = Issuer::new(signing, key);

    let key = KeyPair::generate()?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    fs::write(directory.join("server.crt"), certificate.pem())?;
    fs::write(directory.join("server.key"), key.serialize_pem())?;
    fs::write(directory.join("ca.crt"), root.pem())?;
    Ok(root.pem())
}
